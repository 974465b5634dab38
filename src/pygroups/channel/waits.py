"""The waits of a session that the watchdog reports: for the join, for a view change, and for room to send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from pygroups.core import events as core
from pygroups.core.address import Address
from pygroups.core.suspicion_events import Suspect, Unsuspect
from pygroups.core.tables import Tables

from .channel_events import Slow
from .join_wait import JoinWait
from .log import Log, not_received, reads_slowly, send_waits
from .options import Options
from .reading.inbox import Inbox
from .sending.outbox import Outbox
from .standstill import Standstill
from .view_line import why_suspected


class Waits:
    """Learns of suspicions and views, and names the members that a wait depends on.

    `announced`: the address for the other members; None if it is that of bind=.  `alone`: the log line for a member
    whose view has no other member, or None.
    """

    tables: ClassVar[Tables] = {
        "join.found": "members_max",
        "standstill.alone": "members",
        "standstill.progress": "fixed",
        "standstill.slow": "slowest",
        "suspected": "members",
    }

    def __init__(
        self,
        me: Address,
        options: Options,
        sending: Outbox,
        reading: Inbox,
        log: Log,
        announced: Callable[[], str | None],
        alone: Callable[[], str | None],
    ) -> None:
        self.me = me
        self.window = options.limits.window
        self.reading = reading
        self.log = log
        self.announced = announced
        self.alone = alone
        self.chosen = options.advertise is None
        self.joining = True
        self.ended = False
        self.join = JoinWait(options.expect, options.min_members)
        self.members = 0  # of the view
        self.changing = False  # a view change is in progress
        self.suspected: dict[Address, bool] = {}  # and whether the end of its process is proven
        self.standstill = Standstill(sending, reading, me)

    def on_event(self, event: object) -> None:
        """Discovery, or the stack, reports an event."""
        self.join.on_event(event)
        if isinstance(event, core.Block):
            self.changing = True
        elif isinstance(event, Suspect):
            self.log.info("%s is suspected: %s", event.member, why_suspected(event.proven))
            self.suspected[event.member] = event.proven
        elif isinstance(event, Unsuspect):
            self.log.info("%s is heard again", event.member)
            self.suspected.pop(event.member, None)
        elif isinstance(event, core.NewView):
            self.changing, self.suspected = False, {}
            self.members = len(event.view.members)

    # -- the questions of the watchdog

    def waits_to_join(self) -> str | None:
        return self.join.text(self.announced(), chosen=self.chosen) if self.joining else None

    def changes_view(self) -> str | None:
        if not self.changing or self.ended:
            return None
        names = ", ".join([str(member) for member in self.suspected]) or "none"
        return f"a view change is in progress, and no message is sent until it ends; suspected members: {names}"

    def awaits_state(self) -> str | None:
        return None if self.ended else self.reading.states.waits()

    def is_alone(self) -> str | None:
        return self.alone() if self.members == 1 and not self.ended else None

    def holders(self) -> Sequence[Address]:
        return () if self.ended else self.standstill.holders()

    def report_slow(self, member: Address, seconds: float) -> None:
        if self.standstill.lacks_messages(member):
            self.log.warning("%s", not_received(member, seconds, self.window))
        else:
            self.log.warning("%s", send_waits(member, self.me, seconds, self.window))
        if member != self.me:
            self.reading.put(Slow(member, seconds))

    def slow_readers(self) -> Sequence[Address]:
        return () if self.ended else self.standstill.slow_readers()

    def report_slow_reader(self, member: Address, seconds: float) -> None:
        self.log.info("%s", reads_slowly(member, self.me, seconds, self.window))

    def end_deadlocks(self, now: int) -> None:
        self.reading.end_deadlocks(now)
