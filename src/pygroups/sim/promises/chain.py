"""Promise where a majority of each view decides the next one: primary-chain.

Under one history id views form one sequence.  More than half of each view, or half of it with its first member,
accepted the next view under one ballot.  Where another history begins, members that an operator vouches for and that
did not accept are left out of the count.  A member that learned that it is blocked (`Blocked`) delivers nothing until
`Unblocked`, with which a view comes.  Until then it learns each reason once.

A history may end in a view that only ended processes have installed, for which an operator vouches.  So a view has one
successor in each history.

A group that loses the majority for good begins anew, with another sequence.  Where several processes take part in a
birth, more than half of them accepted the first view.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from pygroups.core.address import Address
from pygroups.core.view import ViewId

from .facts import Check, Delivery, Rest, Viewed

Vote = tuple[ViewId, int, str]  # a view, and the ballot under which it was accepted


class Chain(Check):
    """Views are one chain, and a majority accepts each link."""

    promises = ("primary-chain",)

    def __init__(self) -> None:
        self.members: dict[ViewId, tuple[Address, ...]] = {}
        self.next: dict[ViewId, dict[str, Viewed]] = {}  # per view and history, the first known successor
        self.before: dict[ViewId, ViewId] = {}  # per view, the view that it follows
        self.histories: dict[ViewId, str] = {}
        self.births: dict[str, Viewed] = {}  # per history, its first view
        self.acceptors: dict[Vote, dict[Address, None]] = {}
        self.over: dict[Address, None] = {}  # members that have ended
        self.answered_for: dict[Address, None] = {}  # the ended members for which another process took part
        self.vouched_ones: dict[Address, None] = {}
        self.blocked_ones: dict[Address, None] = {}
        self.reasons: dict[Address, list[str]] = {}  # for which each member was blocked since its last view
        self.unblocked: dict[Address, None] = {}  # members that were unblocked since their last view
        self.passed = 0  # number of views, and of deliveries that were compared with a block

    def facts(self) -> dict[str, int]:
        return {"primary-chain": self.passed}

    def viewed(self, view: Viewed) -> None:
        self.passed += 1
        self.reasons.pop(view.member, None)
        self.unblocked.pop(view.member, None)
        self.members.setdefault(view.id, view.members)
        old = view.came_from
        self._history(view)
        if not view.primary:
            self.broken("primary-chain", "the view is not primary", member=view.member, view=view.id)
        if old is None:
            return
        first = self.next.setdefault(old, {}).setdefault(view.history, view)
        if first.id != view.id:
            detail = f"two views follow {old}: this one and {first.id}"
            self.broken("primary-chain", detail, member=view.member, other=first.member, view=view.id)
        before = self.before.setdefault(view.id, old)
        if before != old:
            detail = f"the view follows two views: {before} and {old}"
            self.broken("primary-chain", detail, member=view.member, view=view.id)

    def _history(self, view: Viewed) -> None:
        """One history id for each chain."""
        known = self.histories.setdefault(view.id, view.history)
        if not view.history:
            self.broken("primary-chain", "the view has no history id", member=view.member, view=view.id)
        if known != view.history:
            detail = f"the view has two history ids: {known} and {view.history}"
            self.broken("primary-chain", detail, member=view.member, view=view.id)
        anew = view.came_from is not None and view.history != self.histories[view.came_from]
        if anew and not self.vouched_ones and not self._may_have_lost(view):
            self.broken("primary-chain", "the view begins another history", member=view.member, view=view.id)
        if view.came_from is None and view.joined == view.members:
            first = self.births.setdefault(view.history, view)
            if first.id != view.id:
                detail = f"the history {view.history!r} has two beginnings: this view and {first.id}"
                self.broken("primary-chain", detail, member=view.member, other=first.member, view=view.id)

    def _may_have_lost(self, view: Viewed) -> bool:
        """Whether another view was accepted before this one, and a former incarnation took part: runs of its cut are
        lost with the processes that held them."""
        rivals = [next for next, *_ in self.acceptors if next != view.id and next > (view.came_from or next)]
        return bool(self.answered_for and rivals)

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        self.over[member] = None

    def accepts(self, member: Address, fields: dict[str, Any]) -> None:
        if member in self.over:
            self.answered_for[member] = None
        if fields["stage"] == "accepted":
            next = ViewId(fields["next_number"], fields["next_creator"])
            vote = (next, fields["ballot_number"], str(fields["ballot_leader"]))
            self.acceptors.setdefault(vote, {})[member] = None

    def vouched(self, member: Address) -> None:
        self.vouched_ones[member] = None

    def blocked(self, member: Address, reason: str | None) -> None:
        if reason is None:
            self.blocked_ones.pop(member, None)
            self.unblocked[member] = None
            return
        self.blocked_ones[member] = None
        reasons = self.reasons.setdefault(member, [])
        if member in self.unblocked:
            self.broken("primary-chain", "the member was unblocked, and no view came", member=member)
        if reason in reasons:
            self.broken("primary-chain", f"the member learns the same reason twice: {reason}", member=member)
        reasons.append(reason)

    def delivered(self, delivery: Delivery) -> None:
        if delivery.member in self.blocked_ones:
            message = (delivery.origin, delivery.first)
            detail = "the member delivers the message after it learned that it is blocked"
            self.broken("primary-chain", detail, member=delivery.member, message=message, view=delivery.view)

    def settled(self, rests: list[Rest]) -> None:
        for birth in self.births.values():
            accepted = [some for (view, *_), some in self.acceptors.items() if view == birth.id]
            if self.around.expect and not any(2 * len(some) > self.around.expect for some in accepted):
                detail = f"too few of {self.around.expect} processes accepted the first view under one ballot"
                self.broken("primary-chain", detail, view=birth.id)
        for id, old in self.before.items():
            votes = [some for (view, *_), some in self.acceptors.items() if view == id]
            gone: dict[Address, None] = {}
            if self.histories[id] != self.histories[old]:
                gone = self.vouched_ones
            if not any(is_majority(self.members[old], some, gone) for some in votes):
                detail = f"no majority of {old} accepted the view under one ballot"
                self.broken("primary-chain", detail, view=id)

    def last_of(self, view: ViewId, held: Container[ViewId]) -> tuple[Address, ...]:
        """The members of the last view in the chain from `view` on that is among `held`.  Only they can go on."""
        last, ahead = view, [view]
        while ahead:
            later = [one.id for one in self.next.get(ahead.pop(), {}).values()]
            ahead += later
            last = max([last, *(id for id in later if id in held)])
        return self.members[last]

    def last_members(self) -> list[Address]:
        """The members of all views that no view follows."""
        return [one for view, members in self.members.items() if view not in self.next for one in members]

    def waits_for(self, member: Address, other: Address) -> bool:
        """Whether `member` is blocked and was told that `other` is missing."""
        return member in self.blocked_ones and str(other) in self.reasons.get(member, [""])[-1]


def is_majority(members: tuple[Address, ...], some: Container[Address], gone: Container[Address] = ()) -> bool:
    """Whether `some` contains more than half of `members`, or half of them with the first.  Members that are `gone`,
    and not in `some`, are left out of the count."""
    rest = [member for member in members if member in some or member not in gone]
    twice = 2 * sum(member in some for member in rest)
    return twice > len(rest) or (twice == len(rest) and rest[:1] != [] and rest[0] in some)
