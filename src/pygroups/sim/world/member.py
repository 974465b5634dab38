"""One life of one simulated process: when it has a turn, in virtual time, and what keeps it from one.

The turn itself is that of every driver (core/turn.py); pauses, slow loops, clocks that drift, timers that overtake
frames, and deaths between two steps are faults of this world.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final, Protocol

from pygroups.core.address import Address
from pygroups.core.driver_events import Found
from pygroups.core.events import (
    Block,
    Consumed,
    Event,
    Excluded,
    Join,
    Leave,
    NewView,
    StateArrived,
    StateWanted,
    Undelivered,
)
from pygroups.core.layer import NEVER, Env, Record
from pygroups.core.limits import MILLISECOND
from pygroups.core.run import Run
from pygroups.core.stack import Output, Stack
from pygroups.core.top import Delivered, Reached, Top
from pygroups.core.turn import Discovery, Network, Source, deal, settle
from pygroups.core.view import AgreedView, ViewId
from pygroups.journal.writer import MemoryJournal

from ..promises.judge import Judge
from ..schedules.schedule import Habits
from ..schedules.stages import Watched
from .agenda import Agenda
from .loop import ProcessLoop, local_time
from .state import StateKeeper
from .story import Sent, Story
from .traps import Armed
from .virtual import Waiting
from .workload import Application, Order

READ_TOLD: Final = 20 * MILLISECOND  # until the stack hears that something was consumed, if nothing else happens


class Died(Exception):
    """The process ends between two steps of its turn: nothing after that happens."""


class Around(Protocol):
    """What a process needs of the world that it lives in."""

    agenda: Agenda
    judge: Judge
    changes: int  # how often a process began, ended or stood still because the schedule says so
    judges_journals: bool
    story: Story | None

    def count(self, what: str) -> None: ...
    def tell(self, who: str, what: str | Event) -> None: ...
    def trapped(self, member: SimulatedMember, output: Output) -> Output:
        """The layers have left this in a turn: let the faults happen that waited for it.  What is left to deal out."""

    def write(self, member: SimulatedMember, records: Sequence[Record]) -> None: ...
    def crash(self, member: SimulatedMember) -> None: ...
    def gone(self, member: SimulatedMember) -> None: ...


class SimulatedMember(ProcessLoop):
    """A process that runs, is paused or has ended.  What arrives waits for its next turn."""

    network: Network  # of this process, as its world has it
    discovery: Discovery

    def __init__(self, world: Around, address: Address, env: Env, stack: Stack, habits: Habits, rng: Random) -> None:
        super().__init__(world.agenda, stack, habits, rng)
        top = stack.layers[0]
        assert isinstance(top, Top)
        self.world = world
        self.judge = world.judge
        self.count = world.count
        self.address = address
        self.env = env
        self.top = top
        self.habits = habits
        self.journal: MemoryJournal | None = None
        self.view: AgreedView | None = None
        self.born = world.agenda.now
        self.leaving = False
        self.blocked = False
        self.armed: list[Armed] = []
        self.watched = stack.codec if isinstance(stack.codec, Watched) else None
        self.unread = 0  # how often its application was told not to read
        self.routes: dict[Address, None] = {}  # who can be reached: told of, or heard
        self.app = Application(address, top, habits.reads_after, self.rng)
        if habits.state == "keeps none":
            env.keeps_state = False
            self.judge.keeps_no_state(address)
        self.state = StateKeeper(self)
        self.inbox = self
        self.dies_unwritten = False  # in this turn, right before its journal is written
        self._waiting: list[Waiting] = []
        self._read_since: Consumed | None = None  # what the application has read, and no turn has told the stack
        self._reads_at = NEVER  # its application consumes what it has, or has done so and nobody has asked yet
        self._told_at = NEVER  # when there is a turn for that alone; an entry in the agenda for another time is stale

    # -- when it runs

    def arrive(self, item: Waiting) -> None:
        """A frame, a happening or a wish of the application for the next turn."""
        if self.ended:
            return
        if self._reads_at <= self.agenda.now:
            self._read()
        self._waiting.append(item)
        if self.turn_at == NEVER:
            self.soon()

    def found(self, found: Found) -> None:
        """Discovery has an answer."""
        self.network.learn(found.members, Source.DIRECTORY)
        self.arrive(found)

    def changed(self) -> None:
        self.world.changes += 1

    def resume(self) -> None:
        if self.paused == 1 and not self.ended:
            self.world.tell(self.address.name, "runs again")
        super().resume()

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
            self._receive(now, timers_due=self.wakes_at <= true)
        if self.timer_at <= true:
            self.timer_at = NEVER
        if self.app.orders and self.view is not None and not self.leaving:
            self._send()
        consumed, self._read_since = self._read_since, None
        output = settle(self.stack, consumed, now)
        if self.armed:
            output = self.world.trapped(self, output)
        try:
            deal(output, now, self)
        except Died:
            self.world.crash(self)
            return
        if output.records:
            self.judge.recorded(self.address, output.records)
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
            self.judge.accepted(self.address, to, number, payload)
        if app.is_held_up():
            self.judge.held_up(self.address)

    def write(self, records: Sequence[Record], now: int) -> None:
        """The records of a turn go to the journal; a process that is to die before that dies here."""
        if self.dies_unwritten:
            raise Died
        if self.journal is not None:
            self.world.write(self, records)
        if self.world.judges_journals:
            self.judge.written(self.address, records)

    def note(self, kind: str, view: ViewId | None, fields: dict[str, Any]) -> None:
        """One more line for the journal, at once."""
        self.world.write(self, [(kind, view, fields)])

    def _turned(self) -> None:
        """A turn is over: see when the next one is."""
        if self._reads_at == NEVER and self.app.has_unread():
            self._will_read()
        if self.app.orders and self.turn_at == NEVER and self._may_send():
            self.soon()
        self.arm()

    def _may_send(self) -> bool:
        return self.view is not None and not self.leaving and self.app.may_send()

    # -- the application

    def arrived(self, events: Sequence[Run | Event]) -> None:
        """All that a turn has for the application, of which the judge and the story hear too."""
        world, judge = self.world, self.judge
        for event in events:
            if type(event) is Delivered:
                if world.story is not None:
                    world.tell(self.address.name, event)
                judge.delivered(self.address, event)
                self.app.given(event)
            elif type(event) is Reached:
                judge.reached(self.address, event.delivered, event.stable)
            elif isinstance(event, Event):
                self._news(event)

    def _news(self, event: Event) -> None:
        world = self.world
        world.tell(self.address.name, event)
        if isinstance(event, NewView):
            self.view, self.blocked = event.view, False
            if event.with_state:
                self.state.begins()
            self.judge.viewed(self.address, event)
        elif isinstance(event, Block):
            self.blocked = True
        elif isinstance(event, Excluded):
            self.ended = event.reason
            self.judge.stopped(self.address, event.reason, self.top.unknown())
            self.agenda.at(self.agenda.now, world.gone, self)
        elif isinstance(event, StateWanted):
            self.state.wanted(event)
        elif isinstance(event, StateArrived):
            self.state.arrived(event)
        elif isinstance(event, Undelivered):
            self.judge.undelivered(self.address, event.to, event.numbers)

    def ask(self, event: Event) -> None:
        """The application asks its stack for something, in the next turn."""
        if isinstance(event, Consumed):
            self.judge.consumed(self.address, event.marks)
        self.arrive(lambda: self.stack.asked(event, self.clock()))

    def join(self) -> None:
        """Begin."""
        self.ask(Join())

    def leave(self) -> None:
        """Begin to leave; nothing is sent any more."""
        self.leaving = True
        self.world.changes += 1
        self.judge.leaving(self.address)
        self.app.orders.clear()
        self.ask(Leave())

    def order(self, count: int, size: int, to: Address | None) -> None:
        """The application wants to send."""
        self.app.orders.append(Order(count, size, to))
        self.soon()

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
            self.judge.consumed(self.address, read.marks)
            assert self._read_since is None, "a turn has told the stack of what was read before"
            self._read_since = read

    def _read_told(self, when: int) -> None:
        if when != self._told_at or self.ended or self.paused or self.turn_at < NEVER:
            return
        reads = self._reads_at <= self.agenda.now and not self.unread
        if reads or self._waiting or self._read_since is not None:
            self.turn()
