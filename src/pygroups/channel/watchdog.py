"""Looks twice a second at what should not last: a blocked event loop, a join or a view change that waits, a member that
reads nothing, tasks that wait for each other.  It logs a warning, and tells the program what the program can act on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from pygroups.core.address import Address
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.drivers.member import Clock, Loop, Timer

from .log import Log

PERIOD: Final = 500 * MILLISECOND
STALL: Final = 500 * MILLISECOND  # the loop was blocked so long: worth a warning
QUIET: Final = 30 * SECOND  # a further warning of a blocked loop, unless it was blocked twice as long
PATIENCE: Final = 5 * SECOND  # what lasts so long is worth a warning, and again when it has lasted twice as long


class Watched(Protocol):
    """What the watchdog looks at; see session.py."""

    def waits_to_join(self) -> str | None:
        """For whom the join waits, in words; None when it is over."""

    def changes_view(self) -> str | None:
        """Who is taken to be gone while a view change is under way, in words; None while there is none."""

    def holders(self) -> Sequence[Address]:
        """Who has not read anything since this was asked last, and holds the full window of this member shut."""

    def is_slow(self, member: Address, seconds: float) -> None:
        """This member has held the window shut for so long."""

    def answers(self, now: int) -> None:
        """End sends that wait for the task which waits for them."""


class Lasting:
    """Something that should not last: since when it does, and when to speak of it next."""

    def __init__(self, now: int) -> None:
        self.since = now
        self.due = now + PATIENCE

    def seconds(self, now: int) -> float | None:
        """For how long it lasts, when that is to be said now."""
        if now < self.due:
            return None
        self.due = now + (now - self.since)
        return (now - self.since) / SECOND


class Watchdog:
    """See the module.  `limit`: a loop that is blocked for so many seconds loses the membership."""

    def __init__(self, watched: Watched, loop: Loop, clock: Clock, log: Log, limit: float) -> None:
        self.watched = watched
        self.loop = loop
        self.clock = clock
        self.log = log
        self.limit = limit
        self.stalls = 0
        self.longest_stall = 0  # microseconds
        self.warned_at: int | None = None  # when the last warning of a blocked loop was logged, and how long it was
        self.warned = 0
        self.due = 0
        self.timer: Timer | None = None
        self.lasting: dict[object, Lasting] = {}

    def start(self) -> None:
        """Look from now on, until stop()."""
        self.due = self.clock.now() + PERIOD
        self.timer = self.loop.call_later(PERIOD / SECOND, self._look)

    def stop(self) -> None:
        """Look no more; the end may have come because the loop was blocked."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
            self._on_lateness(self.clock.now() - self.due)

    def _look(self) -> None:
        now = self.clock.now()
        self._on_lateness(now - self.due)
        self._on_wait("join", self.watched.waits_to_join(), now)
        self._on_wait("view", self.watched.changes_view(), now)
        self._on_holders(now)
        self.watched.answers(now)
        self.start()

    def _on_lateness(self, late: int) -> None:
        if late < STALL:
            return
        self.stalls += 1
        self.longest_stall = max(self.longest_stall, late)
        now = self.clock.now()
        if self.warned_at is not None and now - self.warned_at < QUIET and late < 2 * self.warned:
            return  # counted, and no news
        self.warned_at, self.warned = now, late
        self.log.warning(
            "the event loop was blocked for %.1f s; after heartbeat_timeout, %g s, the other members remove this one: "
            "run what takes long with asyncio.to_thread",
            late / SECOND,
            self.limit,
        )

    def _on_wait(self, what: str, waits: str | None, now: int) -> None:
        if waits is None:
            self.lasting.pop(what, None)
        elif (seconds := self._lasts(what, now)) is not None:
            self.log.warning("%s, %.0f s", waits, seconds)

    def _on_holders(self, now: int) -> None:
        holders = self.watched.holders()
        for key in [key for key in self.lasting if isinstance(key, Address) and key not in holders]:
            del self.lasting[key]
        for member in holders:
            if (seconds := self._lasts(member, now)) is not None:
                self.watched.is_slow(member, seconds)

    def _lasts(self, what: object, now: int) -> float | None:
        lasting = self.lasting.get(what)
        if lasting is None:
            lasting = self.lasting[what] = Lasting(now)
        return lasting.seconds(now)
