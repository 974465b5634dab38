"""confirmed: what `until=` confirmed is given to the program of each member, or is in a state that it was given."""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import Gap, Marks
from pygroups.core.view import ViewId

from .facts import Check, Rest, Viewed


class Confirmed(Check):
    """The messages of each origin reach a program without holes, from the start of its member, whether the states for
    which the member waited came or not.  A gap that the program gets begins right after the messages that it has."""

    promises = ("confirmed",)

    def __init__(self) -> None:
        self.has: dict[Address, Marks] = {}  # per program and origin, the first number that the program does not have
        self.confirmed: dict[Address, tuple[int, int]] = {}  # own messages below are delivered here, stable everywhere
        self.views: dict[Address, ViewId] = {}
        self.waits: dict[Address, None] = {}  # programs that wait for a state
        self.without: dict[Address, None] = {}  # programs that take no state
        self.given: dict[Address, list[Marks]] = {}  # the contents of the states that a program handed on
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"confirmed": self.judged}

    def viewed(self, view: Viewed) -> None:
        self.views[view.member] = view.id
        self.has.setdefault(view.member, dict(view.digest or {}))
        if view.digest is not None and view.member not in self.without:
            self.waits[view.member] = None

    def program_given(self, member: Address, origin: Address, first: int, count: int) -> None:
        has = self.has.setdefault(member, {})
        self.judged += 1
        if first != has.get(origin, 1):
            detail = f"the program gets message {first}, and has the messages below {has.get(origin, 1)}"
            self.broken("confirmed", detail, member=member, message=(origin, first))
        has[origin] = first + count

    def program_skips(self, member: Address, gap: Gap) -> None:
        has = self.has.setdefault(member, {})
        self.judged += 1
        if gap.first != has.get(gap.origin, 1) and not (gap.first == 1 and len(has) > self.around.config.marks_max):
            detail = f"a gap begins at message {gap.first}, and the program has those below {has.get(gap.origin, 1)}"
            self.broken("confirmed", detail, member=member, message=(gap.origin, gap.first))
        has[gap.origin] = gap.next

    def state_set(self, member: Address, view: ViewId, provider: Address, digest: Marks, data: bytes) -> None:
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

    def reached(self, member: Address, delivered: int, stable: int) -> None:
        self.confirmed[member] = (delivered, stable)

    def settled(self, rests: list[Rest]) -> None:
        for rest in rests:
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
