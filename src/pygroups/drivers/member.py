"""One member on an event loop: when it has a turn, and how it begins and ends.

Each input (a frame, an event of the network, a timer, a payload, a request of the application) makes a turn due.  One
turn handles all inputs of one pass of the event loop.  While the application sends in every pass, as a task does that
yields after each message, one turn handles several passes.  core/turn.py has the steps of a turn, in their order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from pygroups.core import turn
from pygroups.core.events import Consumed, Event
from pygroups.core.layer import NEVER, Record
from pygroups.core.limits import MILLISECOND, SECOND, Config
from pygroups.core.records import PlainRecord, plain_records
from pygroups.core.stack import Stack
from pygroups.core.top import Top
from pygroups.core.view import ViewId
from pygroups.journal.errors import JournalError

from .forks import watched

SENDING_TURNS: Final = 8  # turns in a row before which the application sent: it sends in every pass of the loop
SENDING_PASSES: Final = 64  # for which a turn then waits while that goes on
SENDING_WAIT: Final = 4 * MILLISECOND  # the same in time

if TYPE_CHECKING:
    from .former_life import Former
    from .late_store import LateStore
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
    """The receiver of the events for the application.  The inbox also reports the messages that the application has
    read."""

    def consumed(self) -> Consumed | None:
        """The messages that the application has consumed since the last call; None if there are none."""

    def turned(self) -> None:
        """A turn has ended, so the application may have room to send again."""

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
    """Owns a stack, its network, its discovery and its journal.  One event loop calls all methods."""

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
        top = stack.layers[0]
        assert isinstance(top, Top)
        self.top = top
        self.due = False  # the loop will call turn()
        self.seen = 0  # the number of the next payload, at the end of the last turn or the last wait of this one
        self.sending = 0  # turns in a row before which the application sent
        self.passes = 0  # for which this turn has waited
        self.waits_until = NEVER  # the end of that
        self.timer: Timer | None = None
        self.timer_at = NEVER
        self.wanted_at = NEVER  # the time of the next turn, if the stack needs none before
        self.stats_timer: Timer | None = None
        self.closed = False
        self.local: LocalSocket | None = None  # for commands of an operator
        self.late: LateStore | None = None  # of a late-join handler with a folder
        self.former: Former | None = None  # the former incarnation that this process answers for
        watched(self)

    # -- inputs

    def receive(self, frame: memoryview) -> bool:
        """Pass a received frame to the stack.  Returns whether the frame is authentic."""
        if self.closed:
            return True
        authentic = True
        try:
            authentic = self.stack.receive(frame, self.clock.now())
        except Exception as error:  # noqa: BLE001 (the driver's outermost loop: any error here is a bug in pygroups)
            self.crash(error)
        if not self.due:
            self.schedule()
        return authentic

    def happened(self, event: Event) -> None:
        """Pass an event of the network or of discovery to the stack."""
        turn.learn_found(event, self.network)
        self._pass(self.stack.happened, event)

    def ask(self, event: Event) -> None:
        """Pass a request of the application to the stack."""
        self._pass(self.stack.asked, event)

    def losses(self) -> tuple[int, int]:
        """The runs that this member has sent, once for each receiver, and those of them that were requested again."""
        return self.stack.env.sent, self.stack.env.requested

    def record(self, kind: str, fields: dict[str, object], view: ViewId | None = None) -> None:
        """Write a record of the driver with the next turn.  Without `view` the record belongs to the present view."""
        env = self.stack.env
        if env.journaling:
            env.records.append((kind, view or env.view, fields))
            self.schedule()

    def schedule(self) -> None:
        """Play a turn in the next pass of the loop."""
        if not self.due and not self.closed:
            self.due = True
            self.loop.call_soon(self.turn)

    def schedule_later(self) -> None:
        """Play a turn within half of `stable_period`: the next vote then has what the application has consumed."""
        if not self.due and not self.closed:
            self.wanted_at = self.stack.env.now + self.stack.env.config.stable_period // 2
            self._arm(self.wanted_at)

    def _pass(self, handler: Callable[[Event, int], None], event: Event) -> None:
        if self.closed:
            return
        try:
            handler(event, self.clock.now())
        except Exception as error:  # noqa: BLE001 (as in receive)
            self.crash(error)
        self.schedule()

    # -- a turn

    def turn(self) -> None:
        """Play one turn, or put it off."""
        if self.closed:
            return
        opened = self.top.open
        if not opened.payloads or opened.first + len(opened.payloads) == self.seen:
            self.sending = 0
        elif self.sending < SENDING_TURNS:
            self.sending += 1
        elif self._put_off():
            return
        self.due, self.passes = False, 0
        try:
            self._play()
        except Exception as error:  # noqa: BLE001 (as in receive)
            self.crash(error)

    def _put_off(self) -> bool:
        """Put this turn off to the next pass of the loop, in which the application probably sends again.  Returns False
        if the turn has waited long enough."""
        now = self.clock.now()
        if not self.passes:
            self.waits_until = now + SENDING_WAIT
        if self.passes == SENDING_PASSES or now >= self.waits_until:
            return False
        self.passes += 1
        self.seen = self.top.open.first + len(self.top.open.payloads)
        self.due = True
        self.loop.call_soon(self.turn)
        return True

    def _play(self) -> None:
        now = self.clock.now()
        self.wanted_at = NEVER
        turn.play(self.stack, self.inbox.consumed(), now, self)
        if self.late is not None and (kept := self.stack.env.kept):
            self.late.write(kept, self.clock.wall())
            kept.clear()
        self.inbox.turned()
        opened = self.top.open
        self.seen = opened.first + len(opened.payloads) if opened.payloads else opened.first
        if not self.closed:
            self._arm(self.stack.wake())

    def write(self, records: Sequence[Record], now: int) -> None:
        """Write the records of a turn into the journal.  If that fails, the application gets an event, and the member
        goes on.  If an answer for a former incarnation cannot be written, the member ends, because it must not send the
        answer."""
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
        """Play a turn at `when`.  An earlier timer stays, and starts the next one if no turn is needed when it ends."""
        if when >= self.timer_at or when >= NEVER:
            return
        if self.timer is not None:
            self.timer.cancel()
        self.timer_at = when
        self.timer = self.loop.call_later(max(0, when - self.clock.now()) / SECOND, self._timer_ended)

    def _timer_ended(self) -> None:
        self.timer, self.timer_at = None, NEVER
        when = min(self.stack.wake(), self.wanted_at)
        if when > self.clock.now() and not self.closed:
            self._arm(when)  # an earlier turn has done the work
        elif not self.due:
            self.turn()  # a turn that is due does the work too, and sets the next timer

    # -- the beginning, statistics, and the end

    def begin(self) -> None:
        """Record the start of this incarnation, and the bound within which the group settles after a fault."""
        env = self.stack.env
        self.record("start", turn.start_fields(liveness_bound(env.config), env))
        self._begin_statistics()

    def _begin_statistics(self) -> None:
        """Write a `stats` record and renew the entry of discovery every `stats_period`."""
        period = self.stack.env.config.stats_period / SECOND
        self.stats_timer = self.loop.call_later(period, self._statistics_again)

    def _statistics_again(self) -> None:
        self.discovery.refresh()
        self.write_statistics()
        self._begin_statistics()

    def write_statistics(self) -> None:
        """Write a record with the sizes of the stack's tables, which are 0 in a quiet group, and with the counters."""
        env = self.stack.env
        counters = msgspec.json.encode(env.counters).decode()
        self.record("stats", {"gauges": self.stack.gauges(), "detail": counters})

    def answers_for(self, former: Former | None) -> None:
        """Answer for this former incarnation, if there is one."""
        self.former = former
        self.stack.env.former = None if former is None else former.life

    def crash(self, error: BaseException) -> None:
        """End this member after an internal error, as the end of its process would, and report the error to the
        application."""
        if not self.closed:
            try:
                self.close()
            finally:
                self.inbox.crashed(error)

    def forked(self) -> None:
        """In a forked child this member takes no turn.  The connections, entry and journal belong to the parent."""
        self.closed = True
        for file in (self.journal, self.former, self.late):
            if file is not None:
                file.close()

    def close(self) -> None:
        """Stop immediately: take no turn, and close the connections, the entry and the journal."""
        self.closed = True
        for timer in (self.timer, self.stats_timer):
            if timer is not None:
                timer.cancel()
        with ExitStack() as rest:  # if one part fails to close, the others are closed
            for part in (self.journal, self.former, self.late):
                if part is not None:
                    rest.callback(part.close)
            rest.callback(self.discovery.close)
            if self.local is not None:
                rest.callback(self.local.close)  # before discovery, which removes an empty folder
            rest.callback(self.network.close)


def liveness_bound(config: Config) -> int:
    """The time in microseconds within which a group settles after its last fault, with these timeouts: twice the time
    to notice and verify a silent member, and the time of some view changes that fail."""
    return 2 * (config.heartbeat_timeout + config.verify_timeout) + 10 * (config.ready_timeout + config.flush_timeout)
