"""One life of one simulated process: when it has a turn, in virtual time, and what keeps it from one.

The turn itself is that of every driver (core/turn.py); pauses, slow loops, clocks that drift, timers that overtake
frames, and deaths between two steps are faults of this world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Consumed, Event, Join, Leave
from pygroups.core.layer import NEVER, Env, Record
from pygroups.core.limits import MILLISECOND
from pygroups.core.stack import Stack
from pygroups.core.top import Top
from pygroups.core.turn import deal, settle
from pygroups.core.view import AgreedView
from pygroups.journal.writer import MemoryJournal

from ..schedules.schedule import Habits, stream
from ..schedules.stages import Watched
from ..schedules.steps import Aimed
from .outside import Finder, Inbox, Wires
from .state import StateKeeper
from .story import Sent
from .workload import Application, Order

if TYPE_CHECKING:
    from .world import World

MILLION: Final = 1_000_000
READ_TOLD: Final = 20 * MILLISECOND  # until the stack hears that something was consumed, if nothing else happens
Arrival = tuple[Address, bytes]
Waiting = Arrival | Event | Callable[[], None]  # for the next turn


def local_time(now: int, drift: int) -> int:
    """What a clock that runs `drift` millionths too fast shows at `now`."""
    return now + now * drift // MILLION


def true_time(shown: int, drift: int) -> int:
    """When such a clock shows this, to the microsecond at which it does."""
    return -(-shown * MILLION // (MILLION + drift))


class Trap(msgspec.Struct):
    """A fault that waits for what a member does, or several."""

    fault: Aimed
    left: int  # so often it has to happen yet
    over: bool = False  # it has struck


class Armed(msgspec.Struct):
    """What this member does is counted for a trap."""

    trap: Trap
    sent: int  # how many heads with that label the member has sent so far


class Died(Exception):
    """The process ends between two steps of its turn: nothing after that happens."""


class Member:
    """A process that runs, is paused or has ended.  What arrives waits for its next turn."""

    def __init__(self, world: World, address: Address, env: Env, stack: Stack, habits: Habits) -> None:
        top = stack.layers[0]
        assert isinstance(top, Top)
        self.world = world
        self.agenda = world.agenda
        self.address = address
        self.env = env
        self.stack = stack
        self.top = top
        self.habits = habits
        self.drift = habits.drift
        self.journal: MemoryJournal | None = None
        self.view: AgreedView | None = None
        self.born = world.agenda.now
        self.ended = ""  # why, once it has
        self.leaving = False
        self.blocked = False
        self.armed: list[Armed] = []
        self.watched = stack.codec if isinstance(stack.codec, Watched) else None
        self.paused = 0  # how many pauses lie on it
        self.delays = [habits.loop_delay]  # the longest counts; more than the first while something makes it slow
        self.unread = 0  # how often its application was told not to read
        self.routes: dict[Address, None] = {}  # who can be reached: told of, or heard
        self.rng = stream(world.schedule.seed, "process", address.name, address.incarnation)
        self.app = Application(address, top, habits.reads_after, self.rng)
        if habits.state == "keeps none":
            env.keeps_state = False
            world.judge.keeps_no_state(address)
        self.state = StateKeeper(self)
        self.network, self.discovery, self.inbox = Wires(self), Finder(self), Inbox(self)
        self.dies_unwritten = False  # in this turn, right before its journal is written
        self._waiting: list[Waiting] = []
        self._read_since: Consumed | None = None  # what the application has read, and no turn has told the stack
        self._turn_at = NEVER
        self._wakes_at = NEVER  # when its layers want to be called, as of the last turn; by the true clock
        self._timer_at = NEVER  # the next entry in the agenda that sees to it; never later than that
        self._reads_at = NEVER  # its application consumes what it has, or has done so and nobody has asked yet
        self._told_at = NEVER  # when there is a turn for that alone; an entry in the agenda for another time is stale

    # -- when it runs

    def clock(self) -> int:
        """What its layers take for the time."""
        now = self.agenda.now
        return local_time(now, self.drift) if self.drift else now

    def arrive(self, item: Waiting) -> None:
        """A frame, a happening or a wish of the application for the next turn."""
        if self.ended:
            return
        if self._reads_at <= self.agenda.now:
            self._read()
        self._waiting.append(item)
        if self._turn_at == NEVER and not self.paused:
            turn_at = self._turn_at = self.agenda.now + int(self.rng.random() * self.delays[-1])
            self.agenda.at(turn_at, self._turn_due)

    def _soon(self) -> None:
        self._turn_at = self.agenda.now + int(self.rng.random() * self.delays[-1])
        self.agenda.at(self._turn_at, self._turn_due)

    def _turn_due(self) -> None:
        self._turn_at = NEVER
        if not self.ended and not self.paused:
            self.turn()

    def _timer_due(self, when: int) -> None:
        if when != self._timer_at or self.ended or self.paused:
            return  # a turn has seen to it, or the one in which it runs again will
        if self._wakes_at > when:
            self._timer_at = self._wakes_at
            self.agenda.at(self._timer_at, self._timer_due, self._timer_at)
        elif len(self.delays) == 1:
            self.turn()
        elif self._turn_at == NEVER:
            self._soon()

    def _arm(self) -> None:
        wake = self.stack.wake()
        if self.drift and wake < NEVER:
            wake = true_time(wake, self.drift)
        self._wakes_at = wake
        if wake < self._timer_at:
            self._timer_at = wake
            self.agenda.at(wake, self._timer_due, wake)

    def pause(self) -> None:
        """It does not run any more, until as many resumes have come."""
        self.paused += 1
        self.world.changes += 1

    def resume(self) -> None:
        """It runs again, with everything that waited."""
        self.paused = max(0, self.paused - 1)
        self.world.changes += 1
        if not self.paused and not self.ended:
            self.world.tell(self.address.name, "runs again")
            self.turn()

    def slow_down(self, delay: int) -> None:
        """Until `speed_up` it is late for everything by up to `delay`, unless it is so by more."""
        self.delays = [self.delays[0], *sorted([*self.delays[1:], delay])]

    def speed_up(self, delay: int) -> None:
        """One such slowness is over."""
        if delay in self.delays[1:]:
            self.delays.remove(delay)

    def heal(self) -> None:
        """Nothing keeps it from running and reading any more."""
        self.armed = []
        del self.delays[1:]
        while self.unread:
            self.read_again()
        while self.paused:
            self.resume()

    # -- a turn

    def turn(self) -> None:
        """Receive what has waited; then everything goes as in every driver (core/turn.py), unless a fault is due."""
        true = self.agenda.now
        now = local_time(true, self.drift) if self.drift else true
        if self._reads_at <= true:
            self._read()
        if self._waiting or self._read_since is not None:
            self._receive(now, timers_due=self._wakes_at <= true)
        if self._timer_at <= true:
            self._timer_at = NEVER
        if self.app.orders and self.view is not None and not self.leaving:
            self._send()
        consumed, self._read_since = self._read_since, None
        output = settle(self.stack, consumed, now)
        if self.armed:
            output = self.world.at_moments(self.world, self, output)
        try:
            deal(output, now, self)
        except Died:
            self.world.crash(self)
            return
        if output.records:
            self.world.judge.recorded(self.address, output.records)
        if not self.ended:
            self._turned()

    def _receive(self, now: int, *, timers_due: bool) -> None:
        """Everything that waits; timers that are due come before it, or after it with the rest of the turn."""
        stack = self.stack
        waiting, self._waiting = self._waiting, []
        if timers_due and self.rng.random() < 0.5:
            stack.advance(now)
        for item in waiting:
            if type(item) is tuple:
                self.routes.setdefault(item[0])
                stack.receive(item[1], now)
            elif isinstance(item, Event):
                stack.happened(item, now)
            elif callable(item):
                item()

    def _send(self) -> None:
        """The application hands over what it was to send, as far as there is room."""
        world, app = self.world, self.app
        for number, payload, to in app.send():
            world.tell(self.address.name, Sent(number, to))
            world.judge.accepted(self.address, to, number, payload)
        if app.is_held_up():
            world.judge.held_up(self.address)

    def write(self, records: Sequence[Record], now: int) -> None:
        """The records of a turn go to the journal; a process that is to die before that dies here."""
        if self.dies_unwritten:
            raise Died
        if self.journal is not None:
            self.world.write(self, records)
        if self.world.judges_journals:
            self.world.judge.written(self.address, records)

    def _turned(self) -> None:
        """A turn is over: see when the next one is."""
        if self._reads_at == NEVER and self.app.has_unread():
            self._will_read()
        if self.app.orders and self._turn_at == NEVER and self._may_send():
            self._soon()
        self._arm()

    def _may_send(self) -> bool:
        return self.view is not None and not self.leaving and self.app.may_send()

    # -- the application

    def ask(self, event: Event) -> None:
        """The application asks its stack for something, in the next turn."""
        if isinstance(event, Consumed):
            self.world.judge.consumed(self.address, event.marks)
        self.arrive(lambda: self.stack.asked(event, self.clock()))

    def join(self) -> None:
        """Begin."""
        self.ask(Join())

    def leave(self) -> None:
        """Begin to leave; nothing is sent any more."""
        self.leaving = True
        self.world.changes += 1
        self.world.judge.leaving(self.address)
        self.app.orders.clear()
        self.ask(Leave())

    def order(self, count: int, size: int, to: Address | None) -> None:
        """The application wants to send."""
        self.app.orders.append(Order(count, size, to))
        if self._turn_at == NEVER and not self.paused:
            self._soon()

    def read_nothing(self) -> None:
        """Its application lets everything lie, until as many `read_again` have come."""
        if self._reads_at <= self.agenda.now:
            self._read()
        self.unread += 1
        self.world.changes += 1

    def read_again(self) -> None:
        """Its application reads, if it was to."""
        self.unread = max(0, self.unread - 1)
        self.world.changes += 1
        if not self.unread and self._reads_at <= self.agenda.now:
            self._read()
            self._tell_read(self.agenda.now + READ_TOLD)

    def _will_read(self) -> None:
        """What was consumed is told in the next turn; for it alone there is one only after a while."""
        pause = self.app.reading_time()
        if pause is not None:
            self._reads_at = self.agenda.now + pause
            self._tell_read(self._reads_at + READ_TOLD)

    def _tell_read(self, when: int) -> None:
        self._told_at = when
        self.agenda.at(when, self._read_told, when)

    def _read(self) -> None:
        """The time at which it reads has come, or is over and nobody could tell."""
        if not self.unread:
            self._reads_at = NEVER
            read = self.app.read()
            self.world.judge.consumed(self.address, read.marks)
            assert self._read_since is None, "a turn has told the stack of what was read before"
            self._read_since = read

    def _read_told(self, when: int) -> None:
        if when != self._told_at:
            return
        reads = self._reads_at <= self.agenda.now and not self.unread
        if (
            (reads or self._waiting or self._read_since is not None)
            and self._turn_at == NEVER
            and not self.ended
            and not self.paused
        ):
            self.turn()
