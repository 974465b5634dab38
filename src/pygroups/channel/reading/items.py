"""The items that wait in an inbox, and the pure functions that divide them when a state arrives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pygroups.core.address import Address
from pygroups.core.top import Delivered

from ..channel_events import Event, Gap, JournalLost, Undelivered, View, first_view, folded
from ..state.loading import Loading
from ..state.states import StateRequest


class Raised(NamedTuple):
    """An error for the reader.  A `final` error is the last item."""

    error: BaseException
    final: bool


class Opened(NamedTuple):
    """A run whose messages the application is reading."""

    item: Delivered
    payloads: list[bytes]
    at: int  # messages given so far


Item = Delivered | Event | StateRequest | Loading | Raised


def awaited(queue: Iterable[Item]) -> int | None:
    """The index of the first state that is not complete.  None: there is no such state."""
    waiting = [n for n, item in enumerate(queue) if isinstance(item, Loading) and not item.is_complete]
    return waiting[0] if waiting else None


def with_its_state(me: Address, began: bool, loading: Loading, queue: Iterable[Item]) -> tuple[list[Item], list[Item]]:
    """The events behind `loading` when its state is set, and the items that the state replaces.

    One view takes the place of its view and of the views that the application skips.  The gaps are those of the state.
    """
    items = list(queue)
    begin = items.index(loading) + 1
    end = (
        next(n for n in range(begin, len(items)) if isinstance(item := items[n], View) and item.id == loading.view) + 1
    )
    while end < len(items) and isinstance(items[end], Gap):
        end += 1
    skipped = [item for item in items[begin:end] if isinstance(item, View)][:-1]
    view, gaps = loading.begins[0], loading.gaps
    kept = [item for item in items[begin:end] if outlives_a_state(item)]
    replaced = [item for item in items[begin:end] if not outlives_a_state(item)]
    first = folded(skipped, view) if began else first_view(me, skipped, view)
    return [*items[:begin], first, *gaps, *kept, *items[end:]], replaced


def outlives_a_state(item: Item) -> bool:
    """Whether no state contains the item: messages and news for this member alone."""
    if isinstance(item, Delivered):
        return item.position < 0
    return isinstance(item, JournalLost | Undelivered | Raised)
