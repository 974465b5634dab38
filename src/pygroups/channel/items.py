"""The items that wait in an inbox, and the pure functions that divide them when a state arrives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pygroups.core.address import Address
from pygroups.core.top import Delivered

from .channel_events import Event, JournalLost, Undelivered
from .loading import Loading
from .states import StateRequest


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


def divided(queue: Iterable[Item], otherwise: int = 0) -> tuple[list[Item], list[Item]]:
    """The items before the first state that is not complete, and the items from this state on.  Without such a state
    the queue is divided at index `otherwise`."""
    items = list(queue)
    waiting = [n for n, item in enumerate(items) if isinstance(item, Loading) and not item.is_complete]
    at = waiting[0] if waiting else otherwise
    return items[:at], items[at:]


def own(items: Iterable[Item], me: Address) -> list[range]:
    """The numbers of the multicasts of `me` among the items."""
    runs = [item.run for item in items if isinstance(item, Delivered) and item.position >= 0]
    return [range(run.first, run.next) for run in runs if run.origin == me]


def outlives_a_state(item: Item) -> bool:
    """Whether no state contains the item: messages and news for this member alone."""
    if isinstance(item, Delivered):
        return item.position < 0
    return isinstance(item, JournalLost | Undelivered | Raised)
