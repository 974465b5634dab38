"""state-cut: the given state contains exactly the messages that the provider delivered before the state's view."""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import Marks
from pygroups.core.view import ViewId

from .facts import Check, Rest, Viewed
from .messages import Messages


class StatesOfViews(Check):
    """The provider's state contains all messages that it delivered before the view; the joiner continues right after
    them."""

    promises = ("state-cut",)

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.given: dict[tuple[Address, ViewId], tuple[Marks, bytes]] = {}
        self.begun: dict[tuple[Address, ViewId], Marks] = {}  # the digest with which a member begins a view
        self.waits: dict[Address, ViewId] = {}  # members that began with a digest and have no state for it yet
        self.since: dict[Address, int] = {}  # the time since which a member waits for a state, over several views
        self.stateless: dict[Address, None] = {}  # members without a state
        self.in_vain: dict[Address, None] = {}  # of them, those that waited for one; a merge may give them one
        self.none: dict[Address, ViewId] = {}  # members that began a view with no state
        self.first: dict[Address, ViewId] = {}  # the view in which each member had a state first, if it waited for one
        self.refusing: dict[Address, None] = {}  # members that have a state and did not give it
        self.members: dict[ViewId, tuple[Address, ...]] = {}
        self.installed: dict[ViewId, dict[Address, None]] = {}  # of each view, the members that have installed it
        self.joined: dict[ViewId, tuple[Address, ...]] = {}  # of each view, its joiners
        self.losers: dict[ViewId, tuple[Address, ...]] = {}  # of merged views that a side won: those of other sides
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"state-cut": self.judged}

    def viewed(self, view: Viewed) -> None:
        self.members[view.id] = view.members
        self.installed.setdefault(view.id, {})[view.member] = None
        if not view.subgroups:  # members of another side have states
            self.joined.setdefault(view.id, view.joined)
        if view.digest is not None and view.member in (view.losers or ()) and view.member in self.in_vain:
            del self.in_vain[view.member], self.stateless[view.member]  # the member stands like a joiner again
        self._check_winner(view)
        if view.digest is None:
            return
        if view.member not in self.stateless:
            self.waits[view.member] = view.id
            self.since.setdefault(view.member, view.at)
        begun = self.begun[view.member, view.id] = view.digest
        held = self.messages.next.get(view.member, {})
        if view.came_from is not None and not view.subgroups and not self._agree(begun, held, view.members):
            detail = f"the view begins after {_text(begun)}; the member had delivered {_text(held)}"
            self.broken("state-cut", detail, member=view.member, view=view.id)

    def _check_winner(self, view: Viewed) -> None:
        """If a side won a merge, the members of the other sides take a state, and its own members keep theirs."""
        if view.losers is None:
            return
        self.losers[view.id] = view.losers
        if view.member in self.stateless:
            return
        self.judged += 1
        if view.member in view.losers and view.digest is None:
            self.broken(
                "state-cut",
                "the side of the member lost the merge, and the member keeps its state",
                member=view.member,
                view=view.id,
            )
        if view.member not in (*view.losers, *self.waits) and view.digest is not None:
            self.broken(
                "state-cut",
                "the side of the member won the merge, and the member takes a state",
                member=view.member,
                view=view.id,
            )

    def state_given(self, member: Address, view: ViewId, digest: Marks, data: bytes) -> None:
        self.judged += 1
        held = self.messages.next.get(member, {})
        if not self._agree(digest, held, (member,)):  # the members of the coming view are not known here yet
            detail = f"the state contains {_text(digest)}; its provider had delivered {_text(held)}"
            self.broken("state-cut", detail, member=member, view=view)
        self.given[member, view] = (_without_ones(digest), data)

    def state_set(self, member: Address, view: ViewId, provider: Address, digest: Marks, data: bytes) -> None:
        self.judged += 1
        self.since.pop(member, None)
        self.first.setdefault(member, view)
        if self.waits.pop(member, None) != view:
            self.broken(
                "state-cut",
                "the member received a state that it did not wait for",
                member=member,
                other=provider,
                view=view,
            )
        if provider in self.losers.get(view, ()):
            self.broken("state-cut", "the provider's side lost the merge", member=member, other=provider, view=view)
        given = self.given.get((provider, view))
        if given is None or given[0] != _without_ones(digest):
            self.broken("state-cut", "no provider gave this state", member=member, other=provider, view=view)
        elif given[1] != data:
            self.broken(
                "state-cut", "the received state differs from the given one", member=member, other=provider, view=view
            )
        begun = self.begun.get((member, view))
        if begun is None or not self._agree(begun, digest, self.members.get(view, ())):
            detail = f"the view begins after {_text(begun or {})}; the state contains {_text(digest)}"
            self.broken("state-cut", detail, member=member, other=provider, view=view)

    def _agree(self, some: Marks, others: Marks, members: tuple[Address, ...]) -> bool:
        return _agree(some, others, members, self.around.config.marks_max)

    def keeps_no_state(self, member: Address) -> None:
        self.stateless[member] = None
        self.waits.pop(member, None)

    def state_late(self, member: Address) -> None:
        self.stateless[member] = self.in_vain[member] = None
        self.waits.pop(member, None)

    def state_refused(self, member: Address) -> None:
        self.refusing[member] = None

    def state_none(self, member: Address, view: ViewId) -> None:
        """No other member of the view may have a state and give it.  A provider that is silent for `state_timeout`,
        because it is cut off or late, counts as one that fails."""
        self.judged += 1
        self.waits.pop(member, None)
        self.none[member] = view
        self.first.setdefault(member, view)
        now = self.around.clock()
        in_vain = now - self.since.pop(member, now) >= self.around.config.state_timeout
        same = [other for other, began in self.none.items() if began == view]  # these members share one history
        absent = [other for other in self.joined.get(view, ()) if other not in self.installed[view]]  # or elsewhere
        later = [other for other, had in self.first.items() if had > view and other in self.installed[view]]
        lost = self.losers.get(view, ())  # a member that installs the merged view later has its old state until then
        without = {**self.waits, **self.stateless, **dict.fromkeys([*same, *absent, *later, *lost])}
        for other in self.members.get(view, ()):
            if other in self.refusing or in_vain:
                self.stateless[member] = self.in_vain[member] = (
                    None  # another member has a state: no member asks this one
                )
            elif other not in without:
                detail = "the member begins with no state, although another member has one"
                self.broken("state-cut", detail, member=member, other=other, view=view)

    def settled(self, rests: list[Rest]) -> None:
        """If any state was given, every member has its state at the end."""
        for rest in rests:
            if self.given and rest.member in self.waits:
                self.broken(
                    "state-cut", "the member never received its state", member=rest.member, view=self.waits[rest.member]
                )


def _without_ones(marks: Marks) -> Marks:
    return {origin: mark for origin, mark in sorted(marks.items()) if mark > 1}


def _agree(some: Marks, others: Marks, members: tuple[Address, ...], most: int) -> bool:
    """Whether two sets of marks agree: no mark differs.  A side that knows `most` origins outside the view
    (`marks_max`) may omit others."""
    return all(
        some.get(one, 1) == others.get(one, 1)
        or forgotten(one, some, members, most)
        or forgotten(one, others, members, most)
        for one in {**some, **others}
    )


def forgotten(one: Address, marks: Marks, members: tuple[Address, ...], most: int) -> bool:
    """Whether these marks may omit the origin `one`, because they contain `most` other origins outside the view."""
    outside = [origin for origin in marks if origin not in members]
    return one not in marks and one not in members and len(outside) >= most


def _text(marks: Marks) -> str:
    return "{" + ", ".join(f"{origin}: {mark}" for origin, mark in _without_ones(marks).items()) + "}"
