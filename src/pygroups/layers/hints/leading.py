"""The queue of a leader: joiners, leavers, and members that are suspected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.layer import NEVER, Layer
from pygroups.core.limits import MEMBERS_MAX, PATIENCE_MAX
from pygroups.core.suspicion_events import VerifyLife
from pygroups.core.tables import Tables
from pygroups.core.view import AgreedView

from ..gms.decisions.decide import when_to_start
from ..gms.heads import Join


def _note(times: dict[Address, int], process: Address, time: int) -> None:
    """Note a time of `process`, which may be in no view; the oldest of too many goes."""
    times.pop(process, None)
    times[process] = time
    if len(times) > MEMBERS_MAX:
        del times[next(iter(times))]


class Changes:
    """The changes of membership that wait for the next view of this leader."""

    __slots__ = (
        "accused",
        "asked",
        "config",
        "contested",
        "ended",
        "env",
        "joiners",
        "layer",
        "leavers",
        "made",
        "probed",
        "since",
        "took",
    )

    tables: ClassVar[Tables] = {
        "accused": "members",
        "asked": "members_max",
        "contested": "members",
        "ended": "members",
        "joiners": "members_max",
        "leavers": "members",
        "made": "views_per_second",
        "probed": "members_max",
        "took": "members_max",
    }

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.env = layer.env
        self.config = layer.env.config
        self.asked: dict[Address, Join] = {}  # joiners that have not answered yet
        self.joiners: dict[Address, str] = {}  # those that have, and where each listens
        self.leavers: dict[Address, None] = {}
        self.ended: dict[Address, None] = {}  # members that answer neither this member nor their accusers
        self.accused: dict[Address, int] = {}  # members that are asked for a sign of life, and until when
        self.contested: dict[Address, Join] = {}  # per member that is asked, a joiner under its name
        self.since = 0  # when the first of the waiting changes came
        self.made: list[int] = []  # times of the last views
        self.probed: dict[Address, int] = {}  # when each accused process was asked last that has not answered yet
        self.took: dict[Address, int] = {}  # how long the last answer of each took, also one that came too late

    @property
    def wanted(self) -> bool:
        """Whether a change waits."""
        return bool(self.joiners or self.leavers or self.ended)

    def _queued(self) -> None:
        if not self.wanted:
            self.since = self.env.now

    def join(self, head: Join, view: AgreedView) -> None:
        """A joiner asks.  A member that has the joiner's name is asked for a sign of life first."""
        joiner = head.joiner
        former = next((m for m in (*view.members, *self.joiners) if m.name == joiner.name and m != joiner), None)
        if former is not None and former not in self.ended:
            if former in view.members:
                self.contested[former] = head
                self.layer.below.append(VerifyLife(former))
        elif joiner in self.joiners:
            return
        elif len(view.members) + len(self.joiners) < MEMBERS_MAX:
            self._ask(head)
        else:
            self.env.drop("too many joiners")

    def _ask(self, head: Join) -> None:
        """Ask a joiner for an answer.  One that is heard and cannot be reached would be in and out of view after view;
        it asks again, and is asked again."""
        self.asked.pop(head.joiner, None)
        self.asked[head.joiner] = head
        if len(self.asked) > MEMBERS_MAX:
            del self.asked[next(iter(self.asked))]
        self.layer.below.append(VerifyLife(head.joiner))

    def leave(self, member: Address) -> None:
        """`member` wants to leave."""
        self._queued()
        self.leavers[member] = None

    def suspect(self, member: Address) -> None:
        """This member suspects `member` by its own evidence."""
        self._queued()
        self.ended[member] = None
        self.accused.pop(member, None)
        contender = self.contested.pop(member, None)
        if contender is not None:
            self._ask(contender)

    def accuse(self, member: Address) -> None:
        """Another member suspects `member`: ask it for a sign of life.  One that is far gets twice its last time."""
        if member not in self.ended and member not in self.accused:
            now, took = self.env.now, min(PATIENCE_MAX, 2 * self.took.get(member, 0))
            self.accused[member] = now + max(self.config.verify_timeout, took)
            _note(self.probed, member, now)
            self.layer.below.append(VerifyLife(member))

    def answered(self, member: Address) -> Join | None:
        """`member` is alive.  Returns the joiner that must be refused, because `member` has its name."""
        head = self.asked.pop(member, None)
        if head is not None:
            self._queued()
            self.joiners[member] = head.contact
        probed = self.probed.pop(member, None)
        if probed is not None:
            # An answer to an earlier question seems quick: so the time shrinks little by little.
            took = self.took.get(member, 0)
            _note(self.took, member, max(self.env.now - probed, took - took // 8))
        self.accused.pop(member, None)
        self.ended.pop(member, None)
        return self.contested.pop(member, None)

    def look(self) -> None:
        """Take the members that gave no sign of life in time as ended."""
        for member in [member for member, until in self.accused.items() if until <= self.env.now]:
            self.suspect(member)

    def due(self) -> int:
        """The time for the next look, or for the next view."""
        waits = min(self.accused.values(), default=NEVER)
        if not self.wanted:
            return waits
        if self.ended:
            return min(waits, self.since + self.config.batch)
        return min(waits, when_to_start(self.since, self.config.batch, self.made, self.config.views_per_second))

    def installed(self, members: Iterable[Address], *, led: bool) -> None:
        """A new view.  A view of this leader counts for the pace of joins and leaves."""
        here = dict.fromkeys(members)
        if led:
            self.made = [*self.made, self.env.now][-self.config.views_per_second :]
        self.joiners = {joiner: contact for joiner, contact in self.joiners.items() if joiner not in here}
        self.leavers = {member: None for member in self.leavers if member in here}
        self.ended = {member: None for member in self.ended if member in here}
        self.accused = {member: until for member, until in self.accused.items() if member in here}
        self.contested = {member: head for member, head in self.contested.items() if member in here}
        self.since = self.env.now

    def forget(self) -> None:
        """Another member leads: joiners, leavers and accusers tell that member."""
        self.joiners, self.leavers, self.contested, self.asked = {}, {}, {}, {}
        self.ended, self.accused = {}, {}
