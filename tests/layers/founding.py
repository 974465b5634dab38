"""Processes that find each other over a network in virtual time: the real layer DISCOVERY, a simple group above it.

Each process has a list of places, which may name hosts where no process runs and hosts that answer nothing, and need
not name all processes.  Questions and answers take random times.  Processes start, end and stand still.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

from pygroups.core.address import Address
from pygroups.core.driver_events import Announce, Answer, Ask, Asked, Find, Found, Looked, Nobody, Presence, Replied
from pygroups.core.events import Event, Gone, NewView
from pygroups.core.layer import NEVER, Env
from pygroups.core.limits import MILLISECOND, SECOND, Config
from pygroups.core.view import AgreedView, ViewId
from pygroups.layers.discovery.layer import Discovery

RETRY = 300 * MILLISECOND
CONFIG = Config()
PATIENCE = 3 * SECOND  # after a stand-still


class Process:
    """One process: the layer, and above it a group that takes in each process that asks."""

    def __init__(self, world: World, name: str, places: tuple[str, ...]) -> None:
        self.world = world
        self.me = Address(name, f"{world.rng.getrandbits(32):08x}")
        self.layer = Discovery(Env(self.me, world.now, Random(world.rng.random()), CONFIG))
        self.layer.env.contact, self.layer.env.asks = name, True
        self.places = places
        self.member = False
        self.ended = False
        self.asleep_until = -SECOND * 10
        self.slow = world.rng.random() < 0.3  # its driver takes a while to allow the founding
        self.joined_at = NEVER

    def find(self) -> None:
        """What gms does: look for members until there is a view."""
        if not self.member and not self.ended:
            self.tell(lambda: self.layer.down_event(Find()))
            self.world.after(RETRY, self.find)

    def tell(self, do: Callable[[], None]) -> None:
        """Call the layer now, or when the process runs again, and obey its commands."""
        if self.ended:
            return
        if self.world.now < self.asleep_until:
            self.world.after(self.asleep_until - self.world.now, lambda: self.tell(do))
            return
        layer = self.layer
        layer.env.now = self.world.now
        do()
        if layer.wake <= self.world.now:
            layer.timer()
        while layer.above or layer.below:
            above, layer.above = layer.above, []
            for event in above:
                if isinstance(event, Found):
                    self.found(event)
            below, layer.below = layer.below, []
            for command in below:
                self.obey(command)
        if layer.wake < NEVER:
            self.world.after(layer.wake - self.world.now, lambda: self.tell(lambda: None), timer=self)

    def found(self, event: Found) -> None:
        if self.member:
            return
        if event.may_found:
            self.world.founded(self)
            self.enter()
        for member in sorted(event.members)[:3]:
            self.world.after(self.world.delay(), partial(self.world.join, self, member))

    def enter(self) -> None:
        self.member, self.joined_at = True, self.world.now
        view = AgreedView(ViewId(1, self.me), (self.me,), (self.me.name,))
        self.layer.down_event(NewView(view, None, (self.me,), (), (), True, None))

    def obey(self, command: object) -> None:
        world = self.world
        if isinstance(command, Find):
            if not command.members_only:  # a folder beside the network answers a moment later
                delay = world.folder_delay or world.delay()
                world.after(delay if self.slow else 0, lambda: self.happened(Found({}, True)))
            world.after(world.delay(), lambda: self.happened(Looked(self.places, (), True)))
        elif isinstance(command, Ask):
            asked = world.now
            delay = world.question_delays.get((self.me.name, command.place), world.delay())
            world.after(delay, lambda: world.asks(self, command, asked))
        elif isinstance(command, Answer):
            world.answers(self, command)
        else:
            assert isinstance(command, Announce | NewView | Gone), command

    def happened(self, event: Event) -> None:
        self.tell(lambda: self.layer.up_event(event))


class Liar:
    """A process that answers each question: it looks for a group, or is a member, and listens at `contact`."""

    def __init__(self, world: World, contact: str, *, seeks: bool) -> None:
        self.world = world
        self.me = Address("a", "01")
        self.presence = Presence(self.me, contact, not seeks, seeks, self.me if seeks else None, contact)
        self.ended = True  # it is no process of the group

    def happened(self, event: Event) -> None:
        if isinstance(event, Asked):
            self.world.answers(self, Answer(event.token, self.presence))


@dataclass
class World:
    """The hosts, the time, and the rule: no process founds a group while a member of another one lives."""

    rng: Random
    delay_max: int = 60 * MILLISECOND
    now: int = 0
    agenda: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)
    here: dict[str, Process | Liar] = field(default_factory=dict)  # by place
    silent: set[str] = field(default_factory=set)  # hosts that drop everything
    refusal_delays: dict[str, int] = field(default_factory=dict)  # of places; others answer after delay()
    question_delays: dict[tuple[str, str], int] = field(default_factory=dict)  # from a process to a place
    folder_delay: int = 0  # of drivers that take a while to allow the founding; 0: drawn
    asked: dict[int, tuple[Process, str, int]] = field(default_factory=dict)
    foundings: list[tuple[int, Process, list[Process]]] = field(default_factory=list)
    timers: dict[Process, int] = field(default_factory=dict)
    count: int = 0

    def after(self, delay: int, do: Callable[[], None], timer: Process | None = None) -> None:
        when = self.now + max(0, delay)
        if timer is not None:
            if self.timers.get(timer) == when:
                return
            self.timers[timer] = when
        self.count += 1
        heapq.heappush(self.agenda, (when, self.count, do))

    def delay(self) -> int:
        return self.rng.randint(100, self.delay_max)

    def run(self, until: int) -> None:
        while self.agenda and self.agenda[0][0] <= until:
            self.now, _, do = heapq.heappop(self.agenda)
            do()
        self.now = until

    def start(self, name: str, places: tuple[str, ...]) -> Process:
        process = self.here[name] = Process(self, name, places)
        process.find()
        return process

    def end(self, process: Process | Liar) -> None:
        process.ended = True
        if self.here.get(process.me.name) is process:
            del self.here[process.me.name]

    def living(self) -> list[Process]:
        return [one for one in self.here.values() if isinstance(one, Process) and not one.ended]

    def founded(self, process: Process) -> None:
        """A process founds a group."""
        # A member that stood still a moment ago was silent, and silence counts as an end.
        awake = [other for other in self.living() if other.asleep_until < self.now - PATIENCE]
        self.foundings.append((self.now, process, [other for other in awake if other.member]))

    def join(self, process: Process, member: Address) -> None:
        one = self.here.get(member.name)
        if isinstance(one, Process) and one.member and one.me == member and not process.member and not process.ended:
            process.tell(process.enter)

    # -- questions

    def asks(self, process: Process, ask: Ask, at: int) -> None:
        if ask.place in self.silent:
            return
        there = self.here.get(ask.place)
        if there is None:
            delay = self.refusal_delays.get(ask.place, self.delay())
            self.after(delay, lambda: process.happened(Nobody(ask.place, at)))
            return
        self.count += 1
        self.asked[token := self.count] = (process, ask.place, at)
        there.happened(Asked(token, ask.presence))

    def answers(self, process: Process | Liar, answer: Answer) -> None:
        asker, place, at = self.asked.pop(answer.token)
        self.after(self.delay(), lambda: asker.happened(Replied(place, answer.presence, at)))


def drawn(seed: int) -> World:
    """A world in which some processes start within a moment, with lists and faults that the seed draws."""
    rng = Random(seed)
    world = World(rng, delay_max=rng.choice((1, 5, 20, 60)) * MILLISECOND)
    names = [f"p{number:02}" for number in range(rng.randint(1, 8))]
    rng.shuffle(names)
    nowhere = [f"n{number}" for number in range(rng.randint(0, 3))]
    world.silent = {place for place in nowhere if rng.random() < 0.3}
    hubs = names if rng.random() < 0.5 else names[: rng.randint(1, 2)]
    span = rng.choice((0, 1, 20, 300, 2_000)) * MILLISECOND
    for name in names:
        # A hub runs before the others ask for it: a list that names only hubs needs one that runs.
        at = 0 if len(hubs) < len(names) and name == hubs[0] else rng.randint(0, span)
        places = tuple(rng.sample([*hubs, *nowhere], len(hubs) + len(nowhere)))
        world.after(at, partial(_again, world, name, places))
        keeps = len(hubs) < len(names) and name == hubs[0]
        if rng.random() < 0.2 and not keeps:
            world.after(at + rng.randint(0, 600) * MILLISECOND, partial(_ends, world, name))
            if rng.random() < 0.5:
                world.after(at + SECOND, partial(_again, world, name, places))
        elif rng.random() < 0.2 and not keeps:
            pause = rng.choice((20, 200, 1_000, 3_000)) * MILLISECOND
            world.after(at + rng.randint(0, 300) * MILLISECOND, partial(_sleeps, world, name, pause))
    return world


def _ends(world: World, name: str) -> None:
    if name in world.here:
        world.end(world.here[name])


def _again(world: World, name: str, places: tuple[str, ...]) -> None:
    if name not in world.here:
        world.start(name, places)


def _sleeps(world: World, name: str, pause: int) -> None:
    process = world.here.get(name)
    if isinstance(process, Process):
        process.asleep_until = world.now + pause
