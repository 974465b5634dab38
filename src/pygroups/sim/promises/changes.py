"""Promises about the change that led to a view: left-and-joined, primary-hint."""

from __future__ import annotations

from typing import Any

from pygroups.core.address import Address
from pygroups.core.services import PRIMARY
from pygroups.core.view import ViewId

from .facts import Check, Viewed


class Changes(Check):
    """A member that comes from a view learns exactly which members left and joined since.  All members of a view
    receive the same primary hint.  The view is primary if more than half of the members of the last primary view took
    part, or exactly half including its first member, without those that left.  It is not primary if fewer took part,
    unless all the others have ended."""

    promises = ("left-and-joined", "primary-hint")

    def __init__(self) -> None:
        self.last: dict[Address, Viewed] = {}
        self.hints: dict[ViewId, Viewed] = {}  # the first hint for each view
        self.electors: dict[ViewId, Viewed] = {}  # per view, the last primary view that it follows, perhaps itself
        self.accepted_views: dict[Address, dict[ViewId, None]] = {}  # per member, the views that it accepted
        self.leavers: dict[Address, None] = {}  # leaving members take part in the change that releases them
        self.over: dict[Address, None] = {}  # members that have ended
        self.judged = 0
        self.hinted = 0

    def facts(self) -> dict[str, int]:
        return {"left-and-joined": self.judged, "primary-hint": self.hinted}

    def leaving(self, member: Address) -> None:
        self.leavers[member] = None

    def asked_out(self, member: Address, other: Address, if_silent: bool) -> None:
        self.leavers[other] = None  # it takes part in the same way

    def replaced(self, member: Address) -> None:
        self.leavers[member] = None

    def vouched(self, member: Address) -> None:
        self.leavers[member] = None  # the member counts as taking part

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        self.over[member] = None

    def accepts(self, member: Address, fields: dict[str, Any]) -> None:
        if member in self.over:  # a later process of that name answers for it
            self.leavers[member] = None
        if fields["stage"] == "accepted":
            self._accepted(member, ViewId(fields["next_number"], fields["next_creator"]))

    def merge_accepted(self, member: Address, view: ViewId, merged: ViewId) -> None:
        self._accepted(member, merged)

    def _accepted(self, member: Address, view: ViewId) -> None:
        self.accepted_views.setdefault(member, {})[view] = None

    def viewed(self, view: Viewed) -> None:
        before = self.last.get(view.member)
        self.last[view.member] = view
        self._lists(view, before)
        self._hint(view, before)

    def _lists(self, view: Viewed, before: Viewed | None) -> None:
        self.judged += 1
        left, joined = _difference(before.members if before else (), view.members)
        if view.left != left:
            detail = f"the view reports that {_names(view.left)} left; in fact {_names(left)} left"
            self.broken("left-and-joined", detail, member=view.member, view=view.id)
        if before is not None and view.joined != joined:
            detail = f"the view reports that {_names(view.joined)} joined; in fact {_names(joined)} joined"
            self.broken("left-and-joined", detail, member=view.member, view=view.id)

    def _hint(self, view: Viewed, before: Viewed | None) -> None:
        first = self.hints.setdefault(view.id, view)
        if view.primary:
            self.electors.setdefault(view.id, view)
        if first.primary != view.primary:
            detail = "one member learned that the view is primary, another that it is not"
            self.broken("primary-hint", detail, member=view.member, other=first.member, view=view.id)
        expected = self._expected(view, before)
        if expected is None:
            return
        self.hinted += 1
        if view.primary != expected:
            detail = (
                f"the member learned that the view is {'' if view.primary else 'not '}primary, and the opposite is true"
            )
            self.broken("primary-hint", detail, member=view.member, view=view.id)

    def _expected(self, view: Viewed, before: Viewed | None) -> bool | None:
        """Whether the view is primary; None if that depends on facts that only its members know."""
        if before is None and not view.subgroups:
            return view.members == (view.member,) or None
        sources = [side.view for side in view.subgroups] or [before.id if before else view.id]
        known = [self.electors.get(source) for source in sources]
        if None in known or PRIMARY in self.around.services:
            return None
        electors = max([one for one in known if one is not None], key=lambda one: one.id)
        here = [member for side in view.subgroups for member in side.members] or list(view.transitional)
        self.electors.setdefault(view.id, view if view.primary else electors)
        staying = tuple(member for member in electors.members if member in here or member not in self.leavers)
        enough = [_is_majority(here, electors.members), _is_majority(here, staying)]
        if all(enough):
            doubt = any(id > electors.id and id != view.id for m in here for id in self.accepted_views.get(m, ()))
            return None if doubt else True
        lacks = any(member not in here and member not in self.over for member in staying)
        return False if lacks and not any(enough) else None


def _is_majority(some: list[Address] | tuple[Address, ...], of: tuple[Address, ...]) -> bool:
    here = [member for member in of if member in some]
    twice, all_members = 2 * len(here), len(of)
    return twice > all_members or (twice == all_members and of[:1] == tuple(here[:1]))


def _difference(
    before: tuple[Address, ...], after: tuple[Address, ...]
) -> tuple[tuple[Address, ...], tuple[Address, ...]]:
    """The members that left and those that joined, in the orders of their views."""
    left = tuple(member for member in before if member not in after)
    return left, tuple(member for member in after if member not in before)


def _names(members: tuple[Address, ...]) -> str:
    return "[" + " ".join(member.name for member in members) + "]"
