"""The sides of a merge, and the choice of the side whose state the merged view takes: the option `on_merge`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from .address import Address
from .view import ViewId

KEEP: Final = "keep"  # no side wins: each member goes on with its state
PRIMARY: Final = "primary"
FUNCTION: Final = "function"


class MergeSide(msgspec.Struct, frozen=True):
    """One of the views that a merge joins: its id, the members that come from it, and its hint `primary`.

    `members` are in the order of the addresses.  `whole` is False if the state of this side began without the group's
    state, after a `StateLost`.
    """

    view: ViewId
    members: tuple[Address, ...]
    primary: bool
    whole: bool = True


Sides = tuple[MergeSide, ...]
OnMerge = Callable[[Sides], object]
Chooses = Callable[[Sides], MergeSide | None]


def primary_side(sides: Sequence[MergeSide]) -> MergeSide:
    """The side of the newest primary view.  Among equals, and without a primary view: the largest side, and of equally
    large ones the one with the lowest address.  A side that is not whole comes after all that are."""

    def rank(side: MergeSide) -> tuple[bool, bool, int, int, Address]:
        number = side.view.number if side.primary else 0
        return (not side.whole, not side.primary, -number, -len(side.members), min(side.members))

    return min(sides, key=rank)


class Choice:
    """Calls the application's function `choose`, and checks its result.  `complain` gets a sentence about each result
    that names no side; no side wins then."""

    def __init__(self, choose: OnMerge, complain: Callable[[str], None]) -> None:
        self.choose = choose
        self.complain = complain

    def __call__(self, sides: Sides) -> MergeSide | None:
        """The side that wins, or None."""
        try:
            chosen = self.choose(sides)
        except Exception as error:  # noqa: BLE001 (an error of the application: it must not end the member)
            self.complain(f"on_merge raised {type(error).__name__}: {error}")
            return None
        found = next((side for side in sides if side == chosen), None)
        if found is None:
            self.complain(f"on_merge returned {type(chosen).__name__}, and not one of the sides that it was given")
        return found


def choice_of(on_merge: str | OnMerge, complain: Callable[[str], None]) -> tuple[str, Chooses | None]:
    """The setting on which all members agree, and the function that chooses the side; None: no side wins."""
    if on_merge == KEEP:
        return KEEP, None
    if on_merge == PRIMARY:
        return PRIMARY, primary_side
    assert not isinstance(on_merge, str), f"on_merge={on_merge!r} is not known"
    return FUNCTION, Choice(on_merge, complain)
