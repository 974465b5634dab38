"""Promises of merged views: merge-agreement, merge-announced."""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import Marks
from pygroups.core.view import ViewId

from .facts import Check, Delivery, Viewed
from .messages import Messages


class Merging(Check):
    """The subgroups of a merged view are the groups of its members by their earlier views.  Every member announces
    exactly the messages that it lacks and that members of another subgroup may have, so all begin with equal marks."""

    promises = ("merge-agreement", "merge-announced")

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.merged: dict[ViewId, Viewed] = {}  # the first member's observation of each merged view
        self.delivered_below: Marks = {}  # per origin, the number after the last message that any member delivered
        self.lists: dict[ViewId, tuple[Address, ...]] = {}
        self.judged = 0
        self.announced = 0

    def facts(self) -> dict[str, int]:
        return {"merge-agreement": self.judged, "merge-announced": self.announced}

    def delivered(self, delivery: Delivery) -> None:
        high = delivery.first + delivery.count
        if high > self.delivered_below.get(delivery.origin, 1):
            self.delivered_below[delivery.origin] = high

    def viewed(self, view: Viewed) -> None:
        self.lists.setdefault(view.id, view.members)
        if not view.subgroups:
            if view.gaps:
                self.broken("merge-announced", "a gap without a merge", member=view.member, view=view.id)
            return
        self.judged += 1
        first = self.merged.setdefault(view.id, view)
        if first.subgroups != view.subgroups:
            detail = "two members list different subgroups"
            self.broken("merge-agreement", detail, member=view.member, other=first.member, view=view.id)
        self._check_subgroups(view)
        self._check_marks(view)

    def _check_subgroups(self, view: Viewed) -> None:
        earlier = [side.view for side in view.subgroups]
        listed = [member for side in view.subgroups for member in side.members]
        mine = [side for side in view.subgroups if view.member in side.members]
        problem = None
        if len(earlier) < 2 or len(dict.fromkeys(earlier)) < len(earlier):
            problem = "its subgroups do not come from two or more different views"
        elif sorted(listed) != sorted(view.members):
            problem = "its subgroups are no partition of its members"
        elif view.members != tuple(sorted(view.members)):
            problem = "its members are not sorted by address"
        elif not mine or mine[0].view != view.came_from or mine[0].members != view.transitional:
            problem = "its own subgroup is not the one that comes with it"
        elif any(id >= view.id for id in earlier):
            problem = "its id is not above those of the earlier views"
        else:
            for side in view.subgroups:
                if any(member not in self.lists.get(side.view, ()) for member in side.members):
                    problem = f"a subgroup has a member that was not in {side.view}"
        if problem is not None:
            self.broken("merge-agreement", problem, member=view.member, view=view.id)

    def _check_marks(self, view: Viewed) -> None:
        """Messages has taken the gaps over before."""
        marks = self.messages.next.get(view.member, {})
        for origin, (mark, side) in view.merged.items():
            self.announced += 1
            message = (origin, marks.get(origin, 1))
            if marks.get(origin, 1) != mark:
                detail = f"it begins the view at number {marks.get(origin, 1)}, and the merge at {mark}"
                self.broken("merge-announced", detail, member=view.member, message=message, view=view.id)
            if mark > self.delivered_below.get(origin, 1):
                detail = "the merge skips messages that no member delivered"
                self.broken("merge-announced", detail, member=view.member, message=message, view=view.id)
            if side >= len(view.subgroups):
                detail = "it names a subgroup that is none"
                self.broken("merge-announced", detail, member=view.member, message=message, view=view.id)
