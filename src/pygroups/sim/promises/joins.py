"""A duty of time while faults last: join-in-time.

A process that joins a group without faults, and reaches all its members, is in the view soon.  Another process that
asks to join and that no member can reach must not delay the join: attempts at a view must not wait for that process
repeatedly.
"""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.detection import detection
from pygroups.core.limits import MILLISECOND, SECOND

from .facts import MEMBERS, Check, Situation, Stand, Viewed
from .progress import linked

SPARE = 60 * MILLISECOND
TRIPS = 10  # number of transits for all messages of a join


class Joins(Check):
    """A lone join takes no longer than the exchange of its messages and the time in which the group collects joins for
    one view."""

    promises = ("join-in-time",)

    def __init__(self) -> None:
        self.views: dict[Address, int] = {}  # time of each member's first view
        self.viewed_at = 0  # time of the last view of any member
        self.viewed_since: list[int] = []  # times of views since the last observation
        self.changes = -1  # number of changes at the last observation
        self.looked_at = 0
        self.calm = False  # whether every process was in a view at that time, without a change in progress
        self.joining: Stand | None = None
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"join-in-time": self.judged}

    def viewed(self, view: Viewed) -> None:
        self.views.setdefault(view.member, view.at)
        self.viewed_at = view.at
        self.viewed_since.append(view.at)

    def looked(self, situation: Situation) -> None:
        if situation.changes != self.changes:
            self.joining = self._newcomer(situation) if self.calm else None
            self.changes = situation.changes
        self._judge(situation)
        self.looked_at, self.viewed_since = situation.now, []
        config = self.around.config
        noticed = situation.since + detection(config, MEMBERS)  # end of earlier faults
        settled = situation.now > max(noticed, self.viewed_at + SECOND)
        misled = situation.misled_until > situation.now
        self.calm = settled and not situation.distant and not misled and _is_well(situation)

    def _newcomer(self, situation: Situation) -> Stand | None:
        """The process that began to join after the last observation, if nothing else changed.  The restart of an
        excluded process is no counted change.  Views before the start of the process belong to earlier events."""
        born = [stand for stand in situation.stands if stand.born > self.looked_at]
        if len(born) != 1 or situation.changes != self.changes + 1:
            return None
        return born[0] if all(at >= born[0].born for at in self.viewed_since) else None

    def _judge(self, situation: Situation) -> None:
        joining = self.joining
        if joining is None or joining.member not in self.views:
            return
        self.joining = None
        if situation.misled_until > joining.born:
            return
        inside = [stand for stand in situation.stands if stand.view is not None]
        if not all(linked(joining, stand, situation.cut) for stand in inside if stand.member != joining.member):
            return
        config, took = self.around.config, self.views[joining.member] - joining.born
        self.judged += 1
        if took > config.batch + SPARE + TRIPS * (self.around.trip + self.around.overtaken_by):
            detail = f"the join took {took} us, although the joiner reaches all members"
            self.broken("join-in-time", detail, member=joining.member)


def _is_well(situation: Situation) -> bool:
    """Whether all members are in one view and reach each other, and no member is blocked, is leaving or is paused."""
    inside = [stand for stand in situation.stands if stand.view is not None]
    hindered = any(stand.blocked or stand.leaving or not stand.runs for stand in inside)
    linked_all = all(linked(one, other, situation.cut) for one in inside for other in inside if one is not other)
    whole = all(len(stand.members) == len(inside) for stand in inside)
    return bool(inside) and not hindered and whole and linked_all
