"""A duty of time: merge-in-time.

When all processes reach each other and nothing fails any more, all members are in one view soon.  `progress` asks for
this too, within a bound that also holds beside cut links and right after a fault: MERGE2 may lose its way several times
there.
"""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.detection import detection
from pygroups.core.services import MERGING

from .facts import MEMBERS, Check, Situation
from .progress import MERGES


class MergesInTime(Check):
    """Views of which all members reach each other are one view within MERGES intervals.

    The time begins when no process joins, leaves, or waits for a state, and when nothing has changed for so long that a
    silent process would have been noticed.  It begins anew when one of these happens.
    """

    promises = ("merge-in-time",)

    def __init__(self) -> None:
        self.apart_since: int | None = None  # since when nothing disturbs the merge of several views
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"merge-in-time": self.judged}

    def looked(self, situation: Situation) -> None:
        views = {stand.view: stand.member for stand in situation.stands}
        if not self._is_calm(situation):
            self.apart_since = None
        elif len(views) < 2:
            self.judged += self.apart_since is not None
            self.apart_since = None
        elif self.apart_since is None:
            self.apart_since = situation.now
        else:
            noticed = situation.since + detection(self.around.config, MEMBERS)  # a process that had ended before
            self._judge(situation.now - max(self.apart_since, noticed), list(views.values()))

    def _is_calm(self, situation: Situation) -> bool:
        """Whether all members reach each other, and nothing happened lately that a merge has to wait for."""
        around = self.around
        hindered = any(
            stand.view is None or stand.leaving or stand.stateless or not stand.runs for stand in situation.stands
        )
        misled = situation.misled_until > situation.now
        unclear = situation.cut or situation.distant or misled or around.restless()
        return MERGING in around.services and not hindered and not unclear

    def _judge(self, lasts: int, members: list[Address]) -> None:
        if lasts > MERGES * (self.around.config.merge_interval + self.around.trip):
            detail = f"the members are in different views for {lasts} us, although all of them reach each other"
            self.broken("merge-in-time", detail, member=members[0], other=members[1])
