"""The reading of one simulated application: when the application reads the delivered messages, and when its stack
learns of the read messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pygroups.core.address import Address
from pygroups.core.events import Consumed
from pygroups.core.layer import NEVER
from pygroups.core.limits import MILLISECOND

from ..promises.judge import Judge
from .agenda import Agenda
from .workload import SimulatedApplication

READ_TOLD: Final = 20 * MILLISECOND  # time until the stack learns of consumed messages, if no other turn comes


class Reading:
    """`at`: when the application reads; a past time means that the read is not yet recorded.  `since`: the messages
    that were read, and that the stack must still learn of.  `stopped`: the number of stops that are not undone.
    `turn` is called when a turn for the report alone is due; a member that is paused, or has a turn planned, ignores
    the call."""

    __slots__ = ("_agenda", "_judge", "_me", "_told_at", "_turn", "app", "at", "since", "stopped")

    def __init__(
        self, me: Address, app: SimulatedApplication, agenda: Agenda, judge: Judge, turn: Callable[[], None]
    ) -> None:
        self._me = me
        self.app = app
        self._agenda = agenda
        self._judge = judge
        self._turn = turn
        self.stopped = 0
        self._told_at = NEVER  # when a turn reports reads; an entry in the agenda for another time is stale
        self.at = NEVER
        self.since: Consumed | None = None

    def stop(self) -> None:
        """Read nothing until every `stop` has had its `go_on`."""
        if self.at <= self._agenda.now:
            self.read()
        self.stopped += 1

    def go_on(self) -> None:
        """Undo one `stop`; the application reads when all of them are undone."""
        self.stopped = max(0, self.stopped - 1)
        if not self.stopped and self.at <= self._agenda.now:
            self.read()
            self._tell(self._agenda.now + READ_TOLD)

    def heal(self) -> None:
        """Undo every `stop`."""
        while self.stopped:
            self.go_on()

    def plan(self) -> None:
        """Plan the next read, if something is unread.  The next turn reports it to the stack; a turn for the report
        alone comes only after READ_TOLD."""
        if self.at != NEVER or not self.app.has_unread():
            return
        pause = self.app.reading_time()
        if pause is not None:
            self.at = self._agenda.now + pause
            self._tell(self.at + READ_TOLD)

    def read(self) -> None:
        """Record the read whose time has come."""
        if not self.stopped:
            self.at = NEVER
            read = self.app.read()
            self._judge.consumed(self._me, read.marks)
            assert self.since is None, "a turn has told the stack of what was read before"
            self.since = read

    def _tell(self, when: int) -> None:
        self._told_at = when
        self._agenda.at(when, self._told, when)

    def _told(self, when: int) -> None:
        reads = self.at <= self._agenda.now and not self.stopped
        if when == self._told_at and (reads or self.since is not None):
            self._turn()
