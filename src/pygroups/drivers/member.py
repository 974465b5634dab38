"""One member on an event loop: when it has a turn, and how it begins and ends.

Everything that comes in (frames, events of the network, timers, payloads, wishes of the application) marks a turn as
due; what is ready in one pass of the loop becomes one turn.  The order of its steps stands in core/turn.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final, Protocol

import msgspec

from pygroups.core import turn
from pygroups.core.driver_events import Found, Replied
from pygroups.core.events import Consumed, Event
from pygroups.core.layer import NEVER, Record
from pygroups.core.limits import SECOND, Config
from pygroups.core.records import PlainRecord, plain_records
from pygroups.core.stack import Stack
from pygroups.core.view import ViewId
from pygroups.journal.writer import JournalError

from .forks import watched
from .former_life import Former
from .local_socket import LocalSocket


class DriverNetwork(turn.Network, Protocol):
    """The connections of a member, and their end; see tcp.py."""

    def close(self) -> None: ...


class DriverDiscovery(turn.Discovery, Protocol):
    """The discovery of a member: it finds others and writes the member's entry; see directory.py."""

    def refresh(self) -> None: ...
    def close(self) -> None: ...


class Journal(Protocol):
    """The journal of a member; see journal/writer.py."""

    @property
    def lost(self) -> int: ...

    @property
    def next_index(self) -> int: ...
    def write(self, records: Sequence[PlainRecord], time_us: int, mono_us: int) -> None: ...
    def close(self) -> None: ...


class Clock(Protocol):
    """Two clocks, in microseconds."""

    def now(self) -> int:
        """The time of stacks, which never goes back."""

    def wall(self) -> int:
        """The wall clock."""


class Timer(Protocol):
    """A timer of the loop."""

    def cancel(self) -> None: ...


class Loop(Protocol):
    """The part of an event loop that a member uses."""

    def call_soon(self, callback: Callable[[], object], /) -> object: ...
    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer: ...


class Inbox(turn.Application, Protocol):
    """The receiver of all that a member has for its application, which is asked what was read of it."""

    def consumed(self) -> Consumed | None:
        """The messages that the application has consumed since the last call; None if there are none."""

    def turned(self) -> None:
        """A turn is over: there may be room to send again."""

    def journal_lost(self, reason: str) -> None: ...
    def crashed(self, error: BaseException) -> None: ...


class MachineClock:
    """The clocks of this machine."""

    def now(self) -> int:
        return time.monotonic_ns() // 1_000

    def wall(self) -> int:
        return time.time_ns() // 1_000


CLOCK: Final = MachineClock()


class Member:
    """Owns a stack and everything it touches the world with.  All its methods are called from one event loop."""

    def __init__(
        self,
        stack: Stack,
        network: DriverNetwork,
        discovery: DriverDiscovery,
        journal: Journal | None,
        inbox: Inbox,
        loop: Loop,
        clock: Clock = CLOCK,
    ) -> None:
        self.stack = stack
        self.network = network
        self.discovery = discovery
        self.journal = journal
        self.inbox = inbox
        self.loop = loop
        self.clock = clock
        self.due = False  # a turn is on its way
        self.timer: Timer | None = None
        self.timer_at = NEVER
        self.stats_timer: Timer | None = None
        self.closed = False
        self.local: LocalSocket | None = None  # where an operator's word is taken
        self.former: Former | None = None  # the former life that this process answers for
        watched(self)

    # -- what comes in

    def receive(self, frame: memoryview) -> None:
        """A frame came in."""
        if self.closed:
            return
        try:
            self.stack.receive(frame, self.clock.now())
        except Exception as error:  # noqa: BLE001 (the driver's outermost loop: what ends up here is a fault of ours)
            self.crash(error)
        if not self.due:
            self.schedule()

    def happened(self, event: Event) -> None:
        """The network, or discovery, has something to say."""
        if isinstance(event, Found):
            self.network.learn(event.members, turn.Source.DIRECTORY)
        elif isinstance(event, Replied) and event.presence.member:
            self.network.learn({event.presence.process: event.presence.contact}, turn.Source.DIRECTORY)
        self._tell(self.stack.happened, event)

    def ask(self, event: Event) -> None:
        """The application wants something."""
        self._tell(self.stack.asked, event)

    def record(self, kind: str, fields: dict[str, object], view: ViewId | None = None) -> None:
        """Write a record of the driver's own with the next turn; without `view` it happened in the one of now."""
        env = self.stack.env
        if env.journaling:
            env.records.append((kind, view or env.view, fields))
            self.schedule()

    def schedule(self) -> None:
        """Have a turn in the next pass of the loop."""
        if not self.due and not self.closed:
            self.due = True
            self.loop.call_soon(self.turn)

    def _tell(self, handler: Callable[[Event, int], None], event: Event) -> None:
        if self.closed:
            return
        try:
            handler(event, self.clock.now())
        except Exception as error:  # noqa: BLE001 (as in receive)
            self.crash(error)
        self.schedule()

    # -- the pump

    def turn(self) -> None:
        """Let the stack finish what came in, and let out what it leaves."""
        if self.closed:
            return
        self.due = False
        try:
            self._pump()
        except Exception as error:  # noqa: BLE001 (as in receive)
            self.crash(error)

    def _pump(self) -> None:
        now = self.clock.now()
        turn.play(self.stack, self.inbox.consumed(), now, self)
        self.inbox.turned()
        if not self.closed:
            self._arm(self.stack.wake())

    def write(self, records: Sequence[Record], now: int) -> None:
        """Write the records of a turn into the journal; the journal reports an outage, and the member goes on.  If an
        answer for a former life cannot be written, the member ends, because the answer must not leave."""
        if self.former is not None:
            records = self.former.write(records, self.clock.wall(), now)
        if self.journal is None:
            return
        try:
            self.journal.write(plain_records(records), self.clock.wall(), now)
        except JournalError as error:
            self.stack.env.count("journal outages")
            self.inbox.journal_lost(str(error))

    def _arm(self, when: int) -> None:
        """Have a turn at `when`.  A timer that is earlier stays: it finds nothing to do and sets the next."""
        if when >= self.timer_at or when >= NEVER:
            return
        if self.timer is not None:
            self.timer.cancel()
        self.timer_at = when
        self.timer = self.loop.call_later(max(0, when - self.clock.now()) / SECOND, self._ring)

    def _ring(self) -> None:
        self.timer, self.timer_at = None, NEVER
        self.turn()

    # -- the beginning, statistics, and the end

    def begin(self) -> None:
        """Record the start of this incarnation, and its promises about time."""
        bound = liveness_bound(self.stack.env.config)
        self.record("start", {"gauges": {"bound_us": bound, "epsilon_ppm": 0}})
        self._begin_statistics()

    def _begin_statistics(self) -> None:
        """Write a `stats` record every `stats_period`, and keep the entry of discovery young."""
        period = self.stack.env.config.stats_period / SECOND
        self.stats_timer = self.loop.call_later(period, self._statistics_again)

    def _statistics_again(self) -> None:
        self.discovery.refresh()
        self.write_statistics()
        self._begin_statistics()

    def write_statistics(self) -> None:
        """Write down what the stack holds, which is all 0 when it is quiet, and what was counted."""
        env = self.stack.env
        counters = msgspec.json.encode(env.counters).decode()
        self.record("stats", {"gauges": self.stack.gauges(), "detail": counters})

    def answers_for(self, former: Former | None) -> None:
        """Answer for this former life, if there is one."""
        self.former = former
        self.stack.env.former = None if former is None else former.life

    def crash(self, error: BaseException) -> None:
        """A fault of ours, or of the machine: this member ends here, as if its process had, and says so."""
        if not self.closed:
            try:
                self.close()
            finally:
                self.inbox.crashed(error)

    def forked(self) -> None:
        """In a child nothing of this member goes on; its parent's connections, entry and journal are left alone."""
        self.closed = True
        for journal in (self.journal, self.former):
            if journal is not None:
                journal.close()

    def close(self) -> None:
        """Stop at once: no more turns, no connections, no entry, no journal."""
        self.closed = True
        for timer in (self.timer, self.stats_timer):
            if timer is not None:
                timer.cancel()
        with ExitStack() as rest:  # whatever breaks, the others are closed
            for part in (self.journal, self.former):
                if part is not None:
                    rest.callback(part.close)
            rest.callback(self.discovery.close)
            if self.local is not None:
                rest.callback(self.local.close)  # before discovery, which removes an empty folder
            rest.callback(self.network.close)


def liveness_bound(config: Config) -> int:
    """Microseconds after the last fault within which all has settled, by the time-outs in force: twice a silence and
    its verification, and the rounds of some view changes that came to nothing."""
    return 2 * (config.heartbeat_timeout + config.verify_timeout) + 10 * (config.ready_timeout + config.flush_timeout)
