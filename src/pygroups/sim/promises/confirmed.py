"""confirmed: what `until=` confirmed is given to the program of each member, or is in a state that it was given, or the
program is told that its state lacks it."""

from __future__ import annotations

from typing import Final

from pygroups.core.address import Address
from pygroups.core.events import Gap, Marks
from pygroups.core.view import ViewId

from .facts import Check, Rest, Viewed

Lacking = dict[Address, list[range]]  # per origin, the numbers below a mark that a state does not contain
RANGES_MAX: Final = 8  # ranges of an origin that a member keeps apart: see docs/layers/state_transfer.md


class Confirmed(Check):
    """The messages of each origin reach a program without holes, from the start of its member, whether the states for
    which the member waited came or not.  A gap that the program gets begins right after the messages that it has.

    A state that replaces another one can lack messages that the program had.  A gap names each of them, and no message
    that the state contains.  The contents of the states follow from what their programs got, and from nothing that a
    member says about them.
    """

    promises = ("confirmed",)

    def __init__(self) -> None:
        self.has: dict[Address, Marks] = {}  # per program and origin, the first number that the program does not have
        self.confirmed: dict[Address, tuple[int, int]] = {}  # own messages below are delivered here, stable everywhere
        self.views: dict[Address, ViewId] = {}
        self.waits: dict[Address, None] = {}  # programs that wait for a state
        self.without: dict[Address, None] = {}  # programs that take no state
        self.given: dict[Address, list[Marks]] = {}  # the contents of the states that a program handed on
        self.lacks: dict[Address, Lacking] = {}  # per program, the messages below `has` that its state does not contain
        self.contents: dict[tuple[Address, ViewId], Lacking] = {}  # the same of a state that was given, by its view
        self.untold: dict[Address, Lacking] = {}  # what a new state lacks, and no gap has named yet
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"confirmed": self.judged}

    def viewed(self, view: Viewed) -> None:
        self.views[view.member] = view.id
        if view.member not in self.has:
            begun = self.has[view.member] = dict(view.digest or {})
            self.lacks[view.member] = {origin: [range(1, mark)] for origin, mark in begun.items() if mark > 1}
        if view.digest is not None and view.member not in self.without:
            self.waits[view.member] = None

    def program_given(self, member: Address, origin: Address, first: int, count: int) -> None:
        has = self.has.setdefault(member, {})
        self.judged += 1
        self._check_told(member)
        if first != has.get(origin, 1):
            detail = f"the program gets message {first}, and has the messages below {has.get(origin, 1)}"
            self.broken("confirmed", detail, member=member, message=(origin, first))
        has[origin] = first + count

    def program_skips(self, member: Address, gap: Gap) -> None:
        has = self.has.setdefault(member, {})
        self.judged += 1
        if gap.next <= has.get(gap.origin, 1):
            self._told(member, gap)
            return
        if gap.first != has.get(gap.origin, 1) and not (gap.first == 1 and len(has) > self.around.config.marks_max):
            detail = f"a gap begins at message {gap.first}, and the program has those below {has.get(gap.origin, 1)}"
            self.broken("confirmed", detail, member=member, message=(gap.origin, gap.first))
        has[gap.origin] = gap.next
        self.lacks.setdefault(member, {}).setdefault(gap.origin, []).append(range(gap.first, gap.next))

    def _told(self, member: Address, gap: Gap) -> None:
        """A gap below the marks of the program: its state does not contain these messages."""
        named = range(gap.first, gap.next)
        lacks = self.lacks.get(member, {}).get(gap.origin, [])
        there = _without([named], lacks)
        if there and len(lacks) < RANGES_MAX:
            detail = f"a gap names message {there[0].start}, which the program has"
            self.broken("confirmed", detail, member=member, message=(gap.origin, there[0].start))
        untold = self.untold.get(member, {})
        untold[gap.origin] = _without(untold.get(gap.origin, []), [named])

    def _check_told(self, member: Address) -> None:
        for origin, ranges in self.untold.get(member, {}).items():
            for one in ranges:
                detail = f"the new state lacks message {one.start}, which the program had, and no gap names it"
                self.broken("confirmed", detail, member=member, message=(origin, one.start))

    def state_set(self, member: Address, view: ViewId, provider: Address, digest: Marks, data: bytes) -> None:
        self._check_told(member)
        had, lacked = self.has.get(member, {}), self.lacks.get(member, {})
        lacks = {origin: list(ranges) for origin, ranges in self.contents.get((provider, view), {}).items()}
        lost = {
            one: _without(ranges, [*lacked.get(one, []), range(had.get(one, 1), 1 << 62)])
            for one, ranges in lacks.items()
        }
        self.untold[member], self.lacks[member] = lost, lacks
        self.has[member] = dict(digest)
        self.waits.pop(member, None)

    def state_none(self, member: Address, view: ViewId) -> None:
        self.waits.pop(member, None)

    def state_late(self, member: Address) -> None:
        self.waits.pop(member, None)

    def keeps_no_state(self, member: Address) -> None:
        self.without[member] = None

    def state_given(self, member: Address, view: ViewId, digest: Marks, data: bytes) -> None:
        self.given.setdefault(member, []).append(digest)
        lacks = self.lacks.get(member, {})
        self.contents[member, view] = {origin: list(lacks.get(origin, [])) for origin in digest}

    def reached(self, member: Address, delivered: int, stable: int) -> None:
        self.confirmed[member] = (delivered, stable)

    def settled(self, rests: list[Rest]) -> None:
        for rest in rests:
            if self.judged:
                self._check_told(rest.member)
            if rest.member not in self.waits:
                here = self.views.get(rest.member)  # sides that never merge have not confirmed the same messages
                self._check(rest.member, [one.member for one in rests if self.views.get(one.member) == here])

    def _check(self, member: Address, members: list[Address]) -> None:
        has = self.has.get(member, {})
        for origin in members if self.judged else ():
            delivered, stable = self.confirmed.get(origin, (1, 1))
            below = max(delivered, stable) if origin == member else stable
            if has.get(origin, 1) < below:
                detail = f"messages below {below} were confirmed, and the program has those below {has.get(origin, 1)}"
                self.broken("confirmed", detail, member=member, message=(origin, below - 1))
            for digest in self.given.get(member, ()):
                if has.get(origin, 1) < digest.get(origin, 1):
                    detail = "the program handed on a state for messages that it does not have"
                    self.broken("confirmed", detail, member=member, message=(origin, digest[origin] - 1))


def _without(ranges: list[range], others: list[range]) -> list[range]:
    """The numbers of `ranges` that are in none of `others`."""
    for other in others:
        parts = [
            (range(one.start, min(one.stop, other.start)), range(max(one.start, other.stop), one.stop))
            for one in ranges
        ]
        ranges = [part for pair in parts for part in pair if part]
    return ranges
