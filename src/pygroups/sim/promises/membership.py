"""checks-membership: a member that was paused for long delivers nothing in a view that the others have left behind.

The others suspect a member whose process is paused for longer than they need to detect a silence, and go on without it.
When the process runs again, the member first checks its membership: it delivers a message in its old view only if the
members of this view were still in it after the pause.  All of these members must have been in the view; where a
majority decides, a majority of them, this member included.  A view change and the end of the membership are no reason
to wait: the messages that a member delivers right before them belong to the cut of the old view.
"""

from __future__ import annotations

from typing import NamedTuple

from pygroups.core.address import Address
from pygroups.core.services import PRIMARY
from pygroups.core.view import ViewId

from .chain import is_majority
from .facts import Check, Delivery, Rest, Situation, Viewed


class EarlyOrder(NamedTuple):
    """A delivery that is right only if the member's view ends in the same turn."""

    at: int
    delivery: Delivery
    missing: Address  # a member of the view that had left it before the pause ended, or has not installed it


class ChecksMembership(Check):
    """Checks that a member delivers nothing after a long pause in a view that the other members have left behind."""

    promises = ("checks-membership",)

    def __init__(self) -> None:
        self.views: dict[Address, ViewId] = {}
        self.members: dict[ViewId, tuple[Address, ...]] = {}
        self.left: dict[ViewId, dict[Address, int]] = {}  # when each member left a view that it had installed
        self.woke: dict[Address, int] = {}  # members that were paused in their present view, and when they ran again
        self.early: dict[Address, EarlyOrder] = {}
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"checks-membership": self.judged}

    def paused(self, member: Address) -> None:
        if member in self.views:
            self.woke[member] = self.around.clock()

    def delivered(self, delivery: Delivery) -> None:
        member, view = delivery.member, delivery.view
        if member not in self.woke or view is None:
            return
        self._judge(member)
        self.judged += 1
        missing = self._missing(member, view)
        if missing is not None and member not in self.early:
            self.early[member] = EarlyOrder(self.around.clock(), delivery, missing)

    def _missing(self, member: Address, view: ViewId) -> Address | None:
        """A member of the view that cannot have confirmed the view, if too few members can have done so."""
        woke, members, left = self.woke[member], self.members[view], self.left.get(view, {})
        here = [one for one in members if one == member or self.views.get(one) == view or left.get(one, -1) >= woke]
        enough = is_majority(members, here) if PRIMARY in self.around.services else len(here) == len(members)
        return None if enough else next(one for one in members if one not in here)

    def _judge(self, member: Address) -> None:
        """An early delivery is wrong if its turn is over."""
        early = self.early.get(member)
        if early is None or early.at == self.around.clock():
            return
        del self.early[member]
        delivery = early.delivery
        detail = "after a long pause the member delivers the message in a view that the other one has left behind"
        message = (delivery.origin, delivery.first)
        self.broken(
            "checks-membership", detail, member=member, other=early.missing, message=message, view=delivery.view
        )

    def viewed(self, view: Viewed) -> None:
        self._leaves(view.member)
        self.views[view.member] = view.id
        self.members[view.id] = view.members

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        self._leaves(member)

    def _leaves(self, member: Address) -> None:
        self._judge(member)
        self.early.pop(member, None)
        self.woke.pop(member, None)
        before = self.views.pop(member, None)
        if before is not None:
            self.left.setdefault(before, {})[member] = self.around.clock()

    def looked(self, situation: Situation) -> None:
        for member in list(self.early):
            self._judge(member)

    def settled(self, rests: list[Rest]) -> None:
        for member in list(self.early):
            self._judge(member)
