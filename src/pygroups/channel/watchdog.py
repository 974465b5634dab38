"""The watchdog of a channel.

Twice a second it checks for a blocked event loop, a join, a view change or a state that waits, a member that is alone,
a member that reads nothing, and tasks that wait for each other. The watchdog logs warnings, and gives the program the
events that the program can act on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Protocol

from pygroups.core.address import Address
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.core.tables import Tables
from pygroups.drivers.member import Clock, Loop, Timer

from .log import Log

PERIOD: Final = 500 * MILLISECOND
STALL: Final = 500 * MILLISECOND  # a blocking of the loop that causes a warning
QUIET: Final = 30 * SECOND  # between two warnings of a blocked loop, unless it was blocked twice as long
ALONE: Final = 60 * SECOND  # between two warnings of a member that is alone
PATIENCE: Final = 5 * SECOND  # the duration of a condition that causes a warning; again after twice the duration


class StateReporter(Protocol):
    """The conditions that the watchdog checks; see waits.py."""

    def waits_to_join(self) -> str | None:
        """A sentence about the join that waits; None after the join."""

    def changes_view(self) -> str | None:
        """A sentence about the view change in progress; None if there is none."""

    def awaits_state(self) -> str | None:
        """A sentence about the state that has not arrived; None if the program waits for none."""

    def is_alone(self) -> str | None:
        """A sentence about a member that is alone and expects other members; None if there is no reason to warn."""

    def holders(self) -> Sequence[Address]:
        """The members that keep this member's window full, and have read nothing since the last call."""

    def report_slow(self, member: Address, seconds: float) -> None:
        """Report that `member` has kept the window full for `seconds`."""

    def slow_readers(self) -> Sequence[Address]:
        """The members that keep this member's window full now, because they read slowly or not at all."""

    def report_slow_reader(self, member: Address, seconds: float) -> None:
        """Report that the window has been full for `seconds`, although `member` reads."""

    def end_deadlocks(self, now: int) -> None:
        """Raise WouldDeadlock in each send that waits for a task which waits for the send."""


class Lasting:
    """A condition that should not last: its start, and the time of the next warning."""

    def __init__(self, now: int) -> None:
        self.since = now
        self.due = now + PATIENCE

    def seconds(self, now: int) -> float | None:
        """The duration so far if a warning is due now, otherwise None."""
        if now < self.due:
            return None
        self.due = now + (now - self.since)
        return (now - self.since) / SECOND


class Watchdog:
    """The watchdog.  `limit`: a member whose loop is blocked for so many seconds is removed from the group."""

    tables: ClassVar[Tables] = {
        "lasting": "members_max",
    }

    def __init__(self, reporter: StateReporter, loop: Loop, clock: Clock, log: Log, limit: float) -> None:
        self.reporter = reporter
        self.loop = loop
        self.clock = clock
        self.log = log
        self.limit = limit
        self.stalls = 0
        self.longest_stall = 0  # microseconds
        self.warned_at: int | None = None  # the time of the last warning of a blocked loop
        self.warned = 0  # the duration of that blocking
        self.due = 0
        self.alone_due = 0  # the time of the next warning of a member that is alone
        self.timer: Timer | None = None
        self.also: Callable[[], None] = _nothing  # a further check
        self.lasting: dict[object, Lasting] = {}

    def start(self) -> None:
        """Check periodically from now on, until stop()."""
        self.due = self.clock.now() + PERIOD
        self.timer = self.loop.call_later(PERIOD / SECOND, self._look)

    def stop(self) -> None:
        """Stop the checks, after a last check of the loop, because a blocked loop may have caused the end."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
            self._on_lateness(self.clock.now() - self.due)

    def _look(self) -> None:
        now = self.clock.now()
        self._on_lateness(now - self.due)
        self._on_wait("join", self.reporter.waits_to_join(), now)
        self._on_wait("view", self.reporter.changes_view(), now)
        self._on_wait("state", self.reporter.awaits_state(), now)
        self._on_alone(self.reporter.is_alone(), now)
        self._on_holders(now)
        self.reporter.end_deadlocks(now)
        self.also()
        self.start()

    def _on_lateness(self, late: int) -> None:
        if late < STALL:
            return
        self.stalls += 1
        self.longest_stall = max(self.longest_stall, late)
        now = self.clock.now()
        if self.warned_at is not None and now - self.warned_at < QUIET and late < 2 * self.warned:
            return  # counted, without a further warning
        self.warned_at, self.warned = now, late
        self.log.warning(
            "the event loop was blocked for %.1f s; after heartbeat_timeout (%g s) the other members remove this "
            "member: run slow calls with asyncio.to_thread",
            late / SECOND,
            self.limit,
        )

    def _on_wait(self, what: str, waits: str | None, now: int) -> None:
        if waits is None:
            self.lasting.pop(what, None)
        elif (seconds := self._lasts(what, now)) is not None:
            self.log.warning("%s (for %.0f s)", waits, seconds)

    def _on_alone(self, alone: str | None, now: int) -> None:
        if alone is None:
            self.alone_due = 0
        elif now >= self.alone_due:
            self.alone_due = now + ALONE
            self.log.warning("%s", alone)

    def _on_holders(self, now: int) -> None:
        holders = self.reporter.holders()
        self._on_members("holds", holders, self.reporter.report_slow, now)
        slow = [member for member in self.reporter.slow_readers() if member not in holders]
        self._on_members("reads slowly", slow, self.reporter.report_slow_reader, now)

    def _on_members(
        self, what: str, members: Sequence[Address], report: Callable[[Address, float], None], now: int
    ) -> None:
        keys = {(what, member): member for member in members}
        for key in [key for key in self.lasting if isinstance(key, tuple) and key[0] == what and key not in keys]:
            del self.lasting[key]
        for key, member in keys.items():
            if (seconds := self._lasts(key, now)) is not None:
                report(member, seconds)

    def _lasts(self, what: object, now: int) -> float | None:
        lasting = self.lasting.get(what)
        if lasting is None:
            lasting = self.lasting[what] = Lasting(now)
        return lasting.seconds(now)


def _nothing() -> None:
    """No further check."""
