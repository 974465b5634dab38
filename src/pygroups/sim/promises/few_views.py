"""few-views: while links stay cut, sides form and stay.  A member installs only a few views in each bound of time.

Decision 0107 has the measurements from which the limit follows.
"""

from __future__ import annotations

from typing import Final

from pygroups.core.address import Address

from .facts import Check, Situation, Viewed

VIEWS_MAX: Final = 3  # in one bound


class FewViews(Check):
    """In a period without changes, after a first bound for the sides to form, a member installs at most VIEWS_MAX views
    in any further bound.  `bound` is that of `progress`, which contains the time for sides that merge.

    An application that gives no state in time is a reason for further views, so such members are not judged.  Neither
    are stacks without MERGE2: a joiner that one member does not reach is admitted, left out, and joins again.
    """

    promises = ("few-views",)

    def __init__(self) -> None:
        self.times: dict[Address, list[int]] = {}  # of the last views of each member
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"few-views": self.judged}

    def viewed(self, view: Viewed) -> None:
        times = self.times.setdefault(view.member, [])
        times.append(view.at)
        del times[: -VIEWS_MAX - 1]

    def looked(self, situation: Situation) -> None:
        if not self.around.merges:
            return
        if situation.now < situation.since + 2 * situation.bound:
            return
        for stand in situation.stands:
            if stand.view is None or stand.stateless:
                continue
            self.judged += 1
            late = [at for at in self.times.get(stand.member, ()) if at > situation.now - situation.bound]
            if len(late) > VIEWS_MAX:
                detail = "the member goes from view to view, although no link and no process changes"
                self.broken("few-views", detail, member=stand.member, view=stand.view)
