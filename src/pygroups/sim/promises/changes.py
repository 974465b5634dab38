"""Promises about the change that led to a view: left-and-joined, primary-hint."""

from __future__ import annotations

from typing import Any

from pygroups.core.address import Address
from pygroups.core.view import ViewId

from .facts import Check, Viewed


class Changes(Check):
    """A member that comes from a view learns exactly which members left and joined since.  All members of a view
    receive the same primary hint.  The view is primary if the previous view was primary and more than half of its
    members took part, or exactly half including its first member."""

    promises = ("left-and-joined", "primary-hint")

    def __init__(self) -> None:
        self.last: dict[Address, Viewed] = {}
        self.hints: dict[ViewId, Viewed] = {}  # the first hint for each view
        self.known: dict[ViewId, Viewed] = {}  # all views
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

    def viewed(self, view: Viewed) -> None:
        before = self.last.get(view.member)
        self.last[view.member] = view
        self.known.setdefault(view.id, view)
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
        if first.primary != view.primary:
            detail = "one member learned that the view is primary, another that it is not"
            self.broken("primary-hint", detail, member=view.member, other=first.member, view=view.id)
        if view.subgroups:
            expected = self._expected_of_merge(view)
        else:
            expected = view.members == (view.member,) or None if before is None else self._expected(view, before)
        if expected is None:
            return
        self.hinted += 1
        if view.primary != expected:
            detail = (
                f"the member learned that the view is {'' if view.primary else 'not '}primary, and the opposite is true"
            )
            self.broken("primary-hint", detail, member=view.member, view=view.id)

    def _expected_of_merge(self, view: Viewed) -> bool | None:
        """Whether one of the merged views was primary, and a majority of it takes part."""
        sides = [(self.known.get(side.view), side.members) for side in view.subgroups]
        known = [(side, members) for side, members in sides if side is not None]
        if any(side.primary and _is_majority(members, side) for side, members in known):
            return True
        return False if len(known) == len(sides) else None

    def _expected(self, view: Viewed, before: Viewed) -> bool | None:
        """Whether the view is primary; None if that depends on whether a leaving member took part."""
        together = view.transitional
        at_most = [member for member in before.members if member in together or member in self.leavers]
        if not before.primary or not _is_majority(at_most, before):
            return False
        return True if _is_majority(together, before) else None


def _is_majority(some: list[Address] | tuple[Address, ...], of: Viewed) -> bool:
    twice, all_members = 2 * len(some), len(of.members)
    return twice > all_members or (twice == all_members and of.members[0] in some)


def _difference(
    before: tuple[Address, ...], after: tuple[Address, ...]
) -> tuple[tuple[Address, ...], tuple[Address, ...]]:
    """The members that left and those that joined, in the orders of their views."""
    left = tuple(member for member in before if member not in after)
    return left, tuple(member for member in after if member not in before)


def _names(members: tuple[Address, ...]) -> str:
    return "[" + " ".join(member.name for member in members) + "]"
