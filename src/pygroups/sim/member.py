"""One life of one simulated process: the loop around a stack, as a driver has it, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pygroups.core.address import Address
from pygroups.core.events import (
    Block,
    Event,
    Excluded,
    Join,
    Leave,
    NewView,
    StateArrived,
    StateWanted,
    Undelivered,
)
from pygroups.core.layer import NEVER, Env
from pygroups.core.stack import Output, Stack
from pygroups.core.top import Delivered, Reached, Top
from pygroups.core.view import View
from pygroups.journal.writer import MemoryJournal

from .schedule import Action, Habits, Moment, stream
from .state import StateKeeper
from .story import Sent
from .workload import Application, Order

if TYPE_CHECKING:
    from .world import World

WALL_CLOCK: Final = 1_700_000_000_000_000  # what the simulated wall clocks show when the world begins
Arrival = tuple[Address, bytes]


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
        self.journal: MemoryJournal | None = None
        self.view: View | None = None
        self.ended = ""  # why, once it has
        self.leaving = False
        self.blocked = False
        self.armed: list[tuple[Moment, Action]] = []  # faults that wait for what this member does next
        self.paused = 0  # how many pauses lie on it
        self.routes: dict[Address, None] = {}  # who can be reached: told of, or heard
        self.rng = stream(world.schedule.seed, "process", address.name, address.incarnation)
        self.app = Application(address, top, habits.reads_after, self.rng)
        self.state = StateKeeper(self)
        self._inbox: list[Arrival | Event | Callable[[], None]] = []
        self._turn_at = NEVER
        self._timer_at = NEVER

    # -- when it runs

    def arrive(self, item: Arrival | Event | Callable[[], None]) -> None:
        """A frame, a happening or a wish of the application for the next turn."""
        if self.ended:
            return
        self._inbox.append(item)
        if self._turn_at == NEVER and not self.paused:
            self._soon()

    def _soon(self) -> None:
        self._turn_at = self.agenda.now + int(self.rng.random() * self.habits.loop_delay)
        self.agenda.at(self._turn_at, self._turn_due)

    def _turn_due(self) -> None:
        self._turn_at = NEVER
        if not self.ended and not self.paused:
            self.turn()

    def _timer_due(self, when: int) -> None:
        if when != self._timer_at:
            return
        self._timer_at = NEVER
        if self.ended or self.paused:
            return
        if self.stack.wake() <= self.agenda.now:
            self.turn()
        else:
            self._arm()

    def _arm(self) -> None:
        wake = self.stack.wake()
        if wake < self._timer_at:
            self._timer_at = wake
            self.agenda.at(wake, self._timer_due, wake)

    def pause(self) -> None:
        """It does not run any more, until as many resumes have come."""
        self.paused += 1

    def resume(self) -> None:
        """It runs again, with everything that waited."""
        self.paused = max(0, self.paused - 1)
        if not self.paused and not self.ended:
            self.world.tell(self.address.name, "runs again")
            self.turn()

    # -- a turn

    def turn(self) -> None:
        """Receive, layers, journal, network, application."""
        now, stack = self.agenda.now, self.stack
        inbox, self._inbox = self._inbox, []
        timers = stack.wake() <= now
        timers_first = timers and bool(inbox) and self.rng.random() < 0.5
        if timers_first:
            stack.advance(now)
        for item in inbox:
            if isinstance(item, tuple):
                self.routes.setdefault(item[0])
                stack.receive(item[1], now)
            elif isinstance(item, Event):
                stack.happened(item, now)
            else:
                item()
        if timers and not timers_first:
            stack.advance(now)
        if self.app.orders and self.view is not None and not self.leaving:
            for number, payload, to in self.app.send():
                self.world.tell(self.address.name, Sent(number, to))
                self.world.judge.accepted(self.address, to, number, payload)
        self._deal(stack.end_turn(now))
        if self.ended:
            return
        if self.app.may_send() and self.view is not None and not self.leaving and self._turn_at == NEVER:
            self._soon()
        self._arm()

    def _deal(self, output: Output) -> None:
        if self.journal is not None and output.records:
            self.world.write(self, output.records)
        for event in output.events:
            if isinstance(event, Delivered):
                self._delivered(event)
            elif isinstance(event, Event) and not isinstance(event, Reached):
                self._on_event(event)
            elif isinstance(event, Reached):
                self.world.judge.reached(self.address, event.delivered, event.stable)
        frames = output.frames
        if self.armed:
            frames = self.world.at_moments(self.world, self, output)
        for dests, batch in frames:
            for dest in dests:
                self.world.send(self, dest, batch)
        for command in output.commands:
            self.world.command(self, command)
        if self.ended:
            return
        pause = self.app.reading_time()
        if pause is not None:
            self.agenda.after(pause, self._read)

    def _delivered(self, event: Delivered) -> None:
        self.world.tell(self.address.name, event)
        self.world.judge.delivered(self.address, event)
        if event.position >= 0:
            self.app.given(event)

    def _on_event(self, event: Event) -> None:
        world = self.world
        world.tell(self.address.name, event)
        if isinstance(event, NewView):
            self.view, self.blocked = event.view, False
            if event.digest is not None:
                self.state.begins()
            world.judge.viewed(self.address, event)
        elif isinstance(event, Block):
            self.blocked = True
        elif isinstance(event, Excluded):
            self.ended = event.reason
            world.judge.stopped(self.address, event.reason, self.top.unknown())
            self.agenda.at(self.agenda.now, world.gone, self)
        elif isinstance(event, StateWanted):
            self.state.wanted(event)
        elif isinstance(event, StateArrived):
            self.state.arrived(event)
        elif isinstance(event, Undelivered):
            world.judge.undelivered(self.address, event.to, event.numbers)

    # -- the application

    def ask(self, event: Event) -> None:
        """The application asks its stack for something, in the next turn."""
        self.arrive(lambda: self.stack.asked(event, self.agenda.now))

    def join(self) -> None:
        """Begin."""
        self.ask(Join())

    def leave(self) -> None:
        """Begin to leave; nothing is sent any more."""
        self.leaving = True
        self.world.judge.leaving(self.address)
        self.app.orders.clear()
        self.ask(Leave())

    def order(self, count: int, size: int, to: Address | None) -> None:
        """The application wants to send."""
        self.app.orders.append(Order(count, size, to))
        if self._turn_at == NEVER and not self.paused:
            self._soon()

    def _read(self) -> None:
        self.ask(self.app.read())
