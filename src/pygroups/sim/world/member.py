"""One incarnation of one simulated process: the times of its turns, in virtual time, and the faults that delay a turn.

The turn itself is the turn of every driver (core/turn.py).  The faults of this world are pauses, slow loops, drifting
clocks, timers before frames, and crashes between two steps of a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, Protocol

from pygroups.core.address import Address
from pygroups.core.detection import detection
from pygroups.core.driver_events import Answered, Ended, Found
from pygroups.core.events import (
    Block,
    Blocked,
    ConnectionClosed,
    Consumed,
    Event,
    Excluded,
    Gap,
    Join,
    Leave,
    NewView,
    Unblocked,
    Undelivered,
    VouchedFor,
)
from pygroups.core.layer import NEVER, Env, Record
from pygroups.core.run import Run
from pygroups.core.services import MEMBERSHIP
from pygroups.core.stack import Output, Stack
from pygroups.core.state_events import StateArrived, StateWanted
from pygroups.core.top import Delivered, Reached, Top
from pygroups.core.turn import Discovery, Network, hand_out, learn_found, run_layers
from pygroups.core.view import AgreedView, ViewId
from pygroups.journal.writer import MemoryJournal

from ..promises.judge import Judge
from ..schedules.schedule import Habits
from ..schedules.stages import Watched
from .agenda import Agenda
from .folders import Folder
from .loop import ProcessLoop, local_time
from .passing import seen_by
from .reading import Reading
from .state import StateKeeper
from .story import Sent, Story
from .traps import Armed
from .virtual import Waiting
from .workload import PayloadsToSend, SimulatedApplication

MILLE: Final = 1_000  # a clock can run faster by one in so many
ANSWERS: Final = 0.1  # chance that an application without a group answers a run


class Died(Exception):
    """The process crashes between two steps of its turn: the remaining steps do not happen."""


class ProcessWorld(Protocol):
    """The parts of the world that a process uses."""

    agenda: Agenda
    folders: dict[str, Folder]  # of journals, by the names of processes
    judge: Judge
    changes: int  # number of starts, ends, pauses and slow times of processes that the schedule causes
    judges_journals: bool
    story: Story | None

    def count(self, what: str) -> None: ...
    def tell(self, who: str, what: str | Event) -> None: ...
    def trapped(self, member: SimulatedMember, output: Output) -> Output:
        """Let the faults happen that waited for this turn.  Returns the output that is left to distribute."""

    def write(self, member: SimulatedMember, records: Sequence[Record]) -> None: ...
    def crash(self, member: SimulatedMember) -> None: ...
    def meet(self, process: SimulatedMember, name: str, met: Callable[[Address], None]) -> None: ...
    def gone(self, member: SimulatedMember) -> None: ...


class SimulatedMember(ProcessLoop):
    """A process that runs, is paused or has ended.  Arriving frames and events wait for its next turn."""

    network: Network  # the network as this process sees it
    discovery: Discovery

    def __init__(
        self, world: ProcessWorld, address: Address, env: Env, stack: Stack, habits: Habits, rng: Random
    ) -> None:
        super().__init__(world.agenda, stack, habits, rng)
        top = stack.layers[0]
        assert isinstance(top, Top)
        self.world = world
        self.judge = world.judge.of(address.name)
        self.count = world.count
        self.address = address
        self.env = env
        self.top = top
        self.habits = habits
        self.journal: MemoryJournal | None = None
        self.view: AgreedView | None = None
        self.born = self.turned_at = world.agenda.now
        self.suspected_after = detection(env.config, 2) + detection(env.config, 2) // MILLE
        self.leaving = False
        self.why_ended = ""  # the detail of its end, if its stack ended it
        self.blocked = False
        self.told = ""  # why it is blocked, as its program was told last; empty: it is not
        self.seen = seen_by(stack.layers)  # the views that reached each layer
        self.armed: list[Armed] = []
        self.watched = stack.codec if isinstance(stack.codec, Watched) else None
        self.places: dict[str, Address] = {}  # without a group: the processes that answered, by their names
        self.routes: dict[Address, None] = {}  # reachable peers: those that the process learned of, or received from
        self.app = SimulatedApplication(address, top, habits.reads_after, self.rng)
        self.reading = Reading(address, self.app, self.agenda, self.judge, self._tells_read)
        if habits.state == "keeps none":
            env.keeps_state = False
            self.judge.keeps_no_state(address)
        self.state = StateKeeper(self)
        self.inbox = self
        self.dies_unwritten = False  # the process crashes in this turn, right before it writes its journal
        self.disk_full = 0  # number of faults because of which the journal cannot be written
        self.leaves_without_journal = False
        self.outage = False  # the member knows that the journal cannot be written
        self._waiting: list[Waiting] = []

    # -- when the process runs

    def arrive(self, item: Waiting) -> None:
        """Queue a frame, an event or a call of the application for the next turn."""
        if self.ended:
            return
        if self.reading.at <= self.agenda.now:
            self.reading.read()
        self._waiting.append(item)
        if self.turn_at == NEVER:
            self.soon()

    def found(self, found: Found) -> None:
        """Take the answer of the discovery."""
        learn_found(found, self.network)
        self.arrive(found)

    def changed(self) -> None:
        self.world.changes += 1

    def resume(self) -> None:
        if self.paused == 1 and not self.ended:
            self.world.tell(self.address.name, "runs again")
        super().resume()

    def heal(self) -> None:
        """Remove every fault that keeps this process from running and reading."""
        self.armed = []
        del self.delays[1:]
        self.reading.heal()
        while self.disk_full:
            self.free_disk()
        while self.paused:
            self.resume()

    # -- a turn

    def turn(self) -> None:
        """Receive the queued items, then play the steps of every driver's turn (core/turn.py), with the faults that
        are due."""
        true = self.agenda.now
        if true - self.turned_at > self.suspected_after:
            self.judge.paused(self.address)
        self.turned_at = true
        now = local_time(true, self.drift) if self.drift else true
        reading = self.reading
        if reading.at <= true:
            reading.read()
        if self._waiting or reading.since is not None:
            self._receive(now, timers_due=self.wakes_at <= true)
        if self.timer_at <= true:
            self.timer_at = NEVER
        if self.app.orders and self.is_in and not self.leaving:
            self._send()
        consumed, reading.since = reading.since, None
        output = run_layers(self.stack, consumed, now)
        if self.armed:
            output = self.world.trapped(self, output)
        asked = [record for record in output.records if record[0] == "suspect"]  # a view may follow
        if asked:
            self.judge.recorded(self.address, asked)
        try:
            hand_out(output, now, self)
        except Died:
            self.world.crash(self)
            return
        if output.records:
            self.judge.recorded(self.address, [record for record in output.records if record[0] != "suspect"])
        if not self.ended:
            self._turned()

    def _receive(self, now: int, *, timers_due: bool) -> None:
        """Hand the queued items to the stack.  Due timers run before these items, or after the items with the rest of
        the turn."""
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
        """Send the application's payloads, as far as there is room."""
        world, app = self.world, self.app
        for number, payload, to in app.send():
            world.tell(self.address.name, Sent(number, to))
            self.judge.accepted(self.address, to, number, payload)
        if app.is_held_up():
            self.judge.held_up(self.address)

    def write(self, records: Sequence[Record], now: int) -> None:
        """Write the records of a turn to the journal.  A process with `dies_unwritten` crashes here, before that."""
        if self.dies_unwritten:
            raise Died
        if self.journal is not None:
            self.world.write(self, records)
        folder = self.world.folders.get(self.address.name)
        if folder is not None:
            folder.take(self.address, records, lost=self.disk_full > 0)
        if self.disk_full:
            self._journal_lost()
        elif self.world.judges_journals:
            self.judge.written(self.address, records)

    def _journal_lost(self) -> None:
        """The records of this turn are lost: the member learns of it once, and may leave."""
        if self.outage:
            return
        self.outage = True
        self.env.count("journal outages")
        self.judge.journal_lost(self.address)
        if not self.leaves_without_journal or self.leaving:
            return
        self.world.tell(self.address.name, "leaves, because its journal is lost")
        if self.view is None:
            self.agenda.at(self.agenda.now, self.world.crash, self)  # the join fails, and the process ends
        else:
            self.leave()

    def free_disk(self) -> None:
        """Undo one cause of `disk_full`."""
        self.disk_full = max(0, self.disk_full - 1)
        self.outage = self.outage and self.disk_full > 0

    def note(self, kind: str, view: ViewId | None, fields: dict[str, Any]) -> None:
        """Write one more line to the journal, at once."""
        self.world.write(self, [(kind, view, fields)])

    def _turned(self) -> None:
        """Plan the next turn at the end of a turn."""
        self.reading.plan()
        if self.app.orders and self.turn_at == NEVER and self._may_send():
            self.soon()
        self.arm()

    def _may_send(self) -> bool:
        return self.is_in and not self.leaving and self.app.may_send()

    @property
    def is_in(self) -> bool:
        """Whether the application can send: the process is in a view, or needs none."""
        return self.view is not None or MEMBERSHIP not in self.env.services

    # -- the application

    def arrived(self, events: Sequence[Run | Event]) -> None:
        """Give the events of a turn to the application, the judge and the story."""
        world, judge = self.world, self.judge
        for event in events:
            if type(event) is Delivered:
                if world.story is not None:
                    world.tell(self.address.name, event)
                judge.delivered(self.address, event)
                self.app.given(event)
                self.state.delivered(event)
                if MEMBERSHIP not in self.env.services:
                    self._answer(event)
            elif type(event) is Reached:
                judge.reached(self.address, event.delivered, event.stable)
            elif isinstance(event, Event):
                self._news(event)

    def _news(self, event: Event) -> None:
        world = self.world
        world.tell(self.address.name, event)
        if isinstance(event, NewView):
            self.view, self.blocked = event.view, False
            self.judge.passed_layers(self.address, event.view.id, self.seen)
            self.judge.viewed(self.address, event)
            self.state.viewed(event)
        elif isinstance(event, Gap):
            self.judge.gap_announced(self.address, event)
        elif isinstance(event, Block):
            self.blocked = True
        elif isinstance(event, Blocked | Unblocked):
            self.told = event.reason if isinstance(event, Blocked) else ""
            self.judge.blocked(self.address, event.reason if isinstance(event, Blocked) else None)
        elif isinstance(event, Excluded):
            self.ended, self.why_ended = event.reason, event.detail
            self.judge.stopped(self.address, event.reason, self.top.unknown())
            self.agenda.at(self.agenda.now, world.gone, self)
        elif isinstance(event, StateWanted):
            self.state.wanted(event)
        elif isinstance(event, StateArrived):
            self.state.arrived(event)
        elif isinstance(event, Undelivered):
            self.judge.undelivered(self.address, event.to, event.numbers)
        elif isinstance(event, VouchedFor) and event.answer == "taken":
            self.judge.vouched(event.member)
        elif isinstance(event, Ended | ConnectionClosed):
            self.places = {place: peer for place, peer in self.places.items() if peer != event.peer}

    def _answer(self, event: Delivered) -> None:
        """Sometimes the application answers a message, by the address of its sender."""
        if self.rng.random() < ANSWERS and not self.leaving:
            self.order(1, 20, event.run.origin)

    def ask(self, event: Event) -> None:
        """Queue a request of the application for the stack, for the next turn."""
        if isinstance(event, Consumed):
            self.judge.consumed(self.address, event.marks)
        self.arrive(lambda: self.stack.asked(event, self.clock()))

    def join(self) -> None:
        """Ask the stack to join the group, if there is one."""
        if MEMBERSHIP in self.env.services:
            self.ask(Join())

    def leave(self) -> None:
        """Begin to leave; the application sends nothing afterwards."""
        self.leaving = True
        self.world.changes += 1
        self.judge.leaving(self.address)
        self.app.orders.clear()
        self.ask(Leave())

    def order(self, count: int, size: int, to: Address | None) -> None:
        """Queue `count` payloads of `size` bytes that the application sends when there is room."""
        self.app.orders.append(PayloadsToSend(count, size, to))
        self.soon()

    def order_at(self, count: int, size: int, place: str) -> None:
        """Queue payloads, as `order` does, for the process at `place`, without a group.  If the network finds no such
        process, nothing is sent."""
        known = self.places.get(place)
        if known is not None:
            self.order(count, size, known)
        else:
            self.world.meet(self, place, lambda peer: self._met(count, size, place, peer))

    def _met(self, count: int, size: int, place: str, peer: Address) -> None:
        if not self.ended and not self.leaving:
            self.routes.setdefault(peer)
            self.places[place] = peer
            self.arrive(Answered(peer))
            self.order(count, size, peer)

    def read_nothing(self) -> None:
        """Stop the application's reading until every `read_nothing` has had its `read_again`."""
        self.reading.stop()
        self.world.changes += 1

    def read_again(self) -> None:
        """Undo one `read_nothing`; the application reads when all of them are undone."""
        self.reading.go_on()
        self.world.changes += 1

    def _tells_read(self) -> None:
        """Play a turn that reports reads, unless another turn will report them."""
        if not self.ended and not self.paused and self.turn_at == NEVER:
            self.turn()
