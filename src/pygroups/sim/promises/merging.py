"""Promises of merged views: merge-agreement, merge-announced."""

from __future__ import annotations

from typing import Final

from pygroups.core.address import Address
from pygroups.core.events import Gap, Marks
from pygroups.core.view import Subgroup, ViewId

from .facts import Check, Delivery, Viewed
from .messages import Messages

Move = tuple[Address, ViewId]
RANGES_MAX: Final = 8  # ranges of an origin that a member keeps apart: see docs/layers/flush.md


class MergedViews(Check):
    """The subgroups of a merged view are the groups of its members by their earlier views.  Every member announces
    exactly the messages that it lacks and that members of another subgroup may have, so all begin with equal marks.  A
    gap names those members of this subgroup that delivered its messages.

    Of the members that come from one view and accept a merged view, all install the merged view, or none of them does.
    A fault may divide these members, so the check judges only members that accept the merged view after all faults have
    healed.
    """

    promises = ("merge-agreement", "merge-announced")

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.merged: dict[ViewId, Viewed] = {}  # the first member's observation of each merged view
        self.delivered_below: Marks = {}  # per origin, the number after the last message that any member delivered
        self.had: dict[tuple[Address, Address], list[range]] = {}  # per member and origin, the delivered numbers
        self.entered: dict[ViewId, list[Address]] = {}  # the members that installed each merged view
        self.said: dict[ViewId, list[tuple[Address, Gap, tuple[Address, ...]]]] = {}  # the gaps announced with it, each
        # with its member, and with the side that has the mark
        self.lists: dict[ViewId, tuple[Address, ...]] = {}
        self.calm = False
        self.agreed: dict[Move, dict[ViewId, None]] = {}  # of a member in a view: merged views it accepted in calm
        self.next: dict[Move, ViewId] = {}  # of a member in a view: the view that it installed after it
        self.taken: dict[tuple[ViewId, ViewId], Address] = {}  # the member that came first from a view to a merged one
        self.came: dict[ViewId, Viewed] = {}  # of each view, the first member that came from another view into it
        self.judged = 0
        self.announced = 0

    def facts(self) -> dict[str, int]:
        return {"merge-agreement": self.judged, "merge-announced": self.announced}

    def delivered(self, delivery: Delivery) -> None:
        high = delivery.first + delivery.count
        had = self.had.setdefault((delivery.member, delivery.origin), [])
        if had and had[-1].stop == delivery.first:
            had[-1] = range(had[-1].start, high)
        else:
            had.append(range(delivery.first, high))
        if high > self.delivered_below.get(delivery.origin, 1):
            self.delivered_below[delivery.origin] = high

    def disturbed(self) -> None:
        self.calm = False
        self.agreed.clear()

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        if unknown is None:
            self.disturbed()

    def healed(self, deadline: int) -> None:
        self.calm = True

    def merge_accepted(self, member: Address, view: ViewId, merged: ViewId) -> None:
        if self.calm:
            self.agreed.setdefault((member, view), {})[merged] = None
            self._together(view, merged)

    def viewed(self, view: Viewed) -> None:
        self.lists.setdefault(view.id, view.members)
        if view.came_from is not None:
            self.next.setdefault((view.member, view.came_from), view.id)
            if view.subgroups:
                self.taken.setdefault((view.came_from, view.id), view.member)
            merges = [view.id, *self.agreed.get((view.member, view.came_from), ())]
            for merged in dict.fromkeys(merges):
                self._together(view.came_from, merged)
            self._check_untold(view)
        if not view.subgroups:
            return
        self.judged += 1
        first = self.merged.setdefault(view.id, view)
        if first.subgroups != view.subgroups:
            detail = "two members list different subgroups"
            self.broken("merge-agreement", detail, member=view.member, other=first.member, view=view.id)
        if first.losers != view.losers:
            detail = "two members know different winners"
            self.broken("merge-agreement", detail, member=view.member, other=first.member, view=view.id)
        if {one: mark for one, (mark, _) in first.merged.items()} != {
            one: mark for one, (mark, _) in view.merged.items()
        }:
            detail = "two members begin with different marks"
            self.broken("merge-announced", detail, member=view.member, other=first.member, view=view.id)
        fit = self._subgroups_fit(view)
        self._check_marks(view)
        if fit and first.subgroups == view.subgroups:
            self._check_named(view)

    def _check_untold(self, view: Viewed) -> None:
        """A view into which members came from two views is a merged one; a majority decides its chain itself."""
        first = self.came.setdefault(view.id, view)
        if first.came_from != view.came_from and not view.subgroups and not view.history:
            detail = f"the view has no subgroups, and another member came from view {first.came_from}"
            self.broken("merge-agreement", detail, member=view.member, other=first.member, view=view.id)

    def _together(self, view: ViewId, merged: ViewId) -> None:
        """Judge the members that accepted the merged view in `view` and installed another view.  They are at fault if
        some member from `view` installed the merged view."""
        taker = self.taken.get((view, merged))
        if taker is None:
            return
        for member, came_from in [move for move, merges in self.agreed.items() if merged in merges]:
            if came_from == view and self.next.get((member, view), merged) != merged:
                del self.agreed[member, view][merged]
                detail = "the member accepted the merged view and installed another view; a member of its view did not"
                self.broken("merge-agreement", detail, member=member, other=taker, view=merged)

    def _subgroups_fit(self, view: Viewed) -> bool:
        """Check the subgroups.  Returns whether they are right."""
        earlier = [side.view for side in view.subgroups]
        listed = [member for side in view.subgroups for member in side.members]
        mine = [side for side in view.subgroups if view.member in side.members]
        problem = None
        if len(earlier) < 2 or len(dict.fromkeys(earlier)) < len(earlier):
            problem = "the subgroups do not come from two or more different views"
        elif not all(side.members for side in view.subgroups):
            problem = "a subgroup has no member"
        elif sorted(listed) != sorted(view.members):
            problem = "the subgroups are no partition of the members"
        elif view.members != tuple(sorted(view.members)):
            problem = "the members are not sorted by address"
        elif not mine or mine[0].view != view.came_from or mine[0].members != view.transitional:
            problem = "the member's own subgroup is not that of the members that came along"
        elif any(id >= view.id for id in earlier):
            problem = "the id is not above those of the earlier views"
        else:
            for side in view.subgroups:
                if any(member not in self.lists.get(side.view, ()) for member in side.members):
                    problem = f"a subgroup has a member that was not in {side.view}"
        if problem is not None:
            self.broken("merge-agreement", problem, member=view.member, view=view.id)
        return problem is None

    def _check_marks(self, view: Viewed) -> None:
        """Check the marks and gaps with which a merged view begins.  The check `Messages` has taken over these gaps
        before."""
        marks = self.messages.next.get(view.member, {})
        for origin, (mark, _) in view.merged.items():
            self.announced += 1
            message = (origin, marks.get(origin, 1))
            if marks.get(origin, 1) != mark:
                detail = f"the member begins at number {marks.get(origin, 1)} of the origin, and the merge at {mark}"
                self.broken("merge-announced", detail, member=view.member, message=message, view=view.id)
            if mark > self.delivered_below.get(origin, 1):
                detail = "the merge skips messages that no member delivered"
                self.broken("merge-announced", detail, member=view.member, message=message, view=view.id)
        for gap in view.gaps:
            problem = None
            if gap.origin not in view.merged:
                problem = "the gap is of an origin that the merge does not name"
            elif not any(set(gap.subgroup) <= set(side.members) for side in _ahead(view, gap.origin)):
                problem = "the gap names a subgroup that is none of this view"
            if problem is not None:
                message = (gap.origin, gap.first)
                self.broken("merge-announced", problem, member=view.member, message=message, view=view.id)

    def _check_named(self, view: Viewed) -> None:
        """A gap names the members that delivered its messages.  A member has delivered what it ever will of these when
        it installs the view, which can be before or after another member announces the gap.  A member whose deliveries
        have many holes keeps them as fewer, longer ranges, and may not be named."""
        said, entered = self.said.setdefault(view.id, []), self.entered.setdefault(view.id, [])
        for member, gap, there in said:
            self._judge_named(view, member, gap, there, view.member)
        entered.append(view.member)
        for gap in view.gaps:
            for side in _ahead(view, gap.origin):
                said.append((view.member, gap, side.members))
                for other in entered:
                    self._judge_named(view, view.member, gap, side.members, other)

    def _judge_named(self, view: Viewed, member: Address, gap: Gap, side: tuple[Address, ...], other: Address) -> None:
        ranges = self.had.get((other, gap.origin), [])
        had = sum([len(range(max(one.start, gap.first), min(one.stop, gap.next))) for one in ranges])
        message, problem = (gap.origin, gap.first), None
        if other in gap.subgroup and had < gap.count:
            problem = "the gap names a member that did not deliver the messages"
        elif other in side and other not in gap.subgroup and had == gap.count and len(ranges) < RANGES_MAX:
            problem = "the gap does not name a member that delivered the messages"
        if problem is not None:
            self.broken("merge-announced", problem, member=member, other=other, message=message, view=view.id)


def _ahead(view: Viewed, origin: Address) -> tuple[Subgroup, ...]:
    """The subgroup that has the mark of `origin`, if there is one."""
    _, index = view.merged.get(origin, (0, len(view.subgroups)))
    return view.subgroups[index : index + 1]
