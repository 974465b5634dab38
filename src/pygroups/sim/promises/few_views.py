"""few-views: while links stay cut, sides form and stay.  A member installs only a few views in each bound of time.

Decisions 0107 and 0124 have the measurements from which the limits follow.
"""

from __future__ import annotations

from typing import Final

from pygroups.core.address import Address
from pygroups.core.services import MERGING, PRIMARY

from .facts import Check, Situation, Viewed

VIEWS_MAX: Final = 3  # in one bound, where views merge
VIEWS_OF_MAJORITY_MAX: Final = 6  # in one bound, where a majority decides: each join of an excluded process costs views


class FewViews(Check):
    """In a period without changes, after a first bound for the sides to form, a member installs only so many views in
    any further bound.  `bound` is that of `progress`, which contains the time for sides that merge.

    An application that gives no state in time is a reason for further views.  So members that wait for a state are not
    judged, and each change of the members may ask every other member for the state, in a view of the same members.
    Where a majority decides, a joiner that one member does not reach is admitted, left out, and joins again, ever more
    rarely.  Stacks in which views neither merge nor need a majority are not judged.
    """

    promises = ("few-views",)

    def __init__(self) -> None:
        self.last: dict[Address, list[tuple[int, bool]]] = {}  # views: when, and whether the members are others
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"few-views": self.judged}

    def viewed(self, view: Viewed) -> None:
        last = self.last.setdefault(view.member, [])
        last.append((view.at, bool(view.joined or view.left)))
        del last[: -VIEWS_OF_MAJORITY_MAX * len(view.members) - 1]

    def looked(self, situation: Situation) -> None:
        if not (MERGING in self.around.services or PRIMARY in self.around.services):
            return
        most = VIEWS_MAX if MERGING in self.around.services else VIEWS_OF_MAJORITY_MAX
        if situation.now < situation.since + 2 * situation.bound:
            return
        for stand in situation.stands:
            if stand.view is None or stand.stateless:
                continue
            self.judged += 1
            late = [new for at, new in self.last.get(stand.member, ()) if at > situation.now - situation.bound]
            changes = sum(late)
            asked = (changes + 1) * (len(stand.members) - 1) if situation.withheld else 0
            if changes + max(0, len(late) - changes - asked) > most:
                detail = "the member goes from view to view, although no link and no process changes"
                self.broken("few-views", detail, member=stand.member, view=stand.view)
