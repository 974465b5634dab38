"""A few members with NAKACK, STABLE and FLOW_CONTROL below the real top, over a network that loses, repeats and
reorders everything, unicasts included.  Views are made by hand: there is no gms.

Time is simulated; one seed is one history.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Consumed, Event, NewView
from pygroups.core.layer import NEVER, Env, Layer, services_of
from pygroups.core.limits import ENTRY_BYTES, Config
from pygroups.core.run import Run, unpack
from pygroups.core.stack import Stack
from pygroups.core.top import Delivered, Top
from pygroups.core.view import AgreedView, ViewId
from pygroups.layers.flow_control.layer import FlowControl
from pygroups.layers.nakack import Nakack
from pygroups.layers.stable.layer import Stable
from pygroups.wire.codec import Codec


class Network(msgspec.Struct):
    """What it does to frames; times in microseconds."""

    loss: float = 0.0
    repeat: float = 0.0
    copies: int = 1  # how many more of a frame that is repeated
    delay_min: int = 100
    delay_max: int = 300


class Ground(Layer):
    """Promises what gms and the layers below it give, and gives nothing but what the network brings."""

    gives = frozenset({"MULTICAST", "FIFO_UNICAST", "MEMBERSHIP"})


class Process:
    """One member: its stack, its application, and what that saw."""

    def __init__(self, world: World, name: str, number: int) -> None:
        self.world = world
        self.address = Address(name, f"{number:016x}")
        self.env = Env(self.address, world.now, random.Random(f"{world.seed} {name}"), world.config, journaling=True)
        self.env.services = services_of((FlowControl, Stable, Nakack, Ground))
        self.top = Top(self.env)
        self.nakack, self.stable, self.flow_control = Nakack(self.env), Stable(self.env), FlowControl(self.env)
        layers: list[Layer] = [self.top, self.flow_control, self.stable, self.nakack, Ground(self.env)]
        codec = Codec("streams", [head for layer in layers for head in layer.heads])
        self.stack = Stack(self.env, layers, codec)
        self.view: AgreedView | None = None
        self.delivered: dict[str, list[bytes]] = {}  # by origin
        self.records: list[tuple[str, dict[str, object]]] = []
        self.told: list[Event] = []  # what else reached the application
        self.outbox: deque[bytes] = deque()  # what its application sends as soon as there is room
        self.unconsumed: dict[Address, int] = {}
        self.consumes = True
        self.alive = True

    def saw(self, events: Sequence[Run | Event]) -> None:
        for event in events:
            if isinstance(event, Delivered):
                assert event.run.origin is not None
                self.delivered.setdefault(event.run.origin.name, []).extend(unpack(event.run.body))
                self.unconsumed[event.run.origin] = event.run.next
            elif isinstance(event, Event):
                self.told.append(event)

    def fill(self) -> bool:
        """Send what there is room for.  Whether that was anything."""
        before = len(self.outbox)
        while self.outbox and self.top.room() >= len(self.outbox[0]) + ENTRY_BYTES:
            self.top.accept(self.outbox.popleft())
        return len(self.outbox) < before

    def numbers(self, origin: str) -> list[int]:
        """The payloads of `origin` as delivered here, which are numbers in these tests."""
        return [int(payload) for payload in self.delivered.get(origin, [])]

    def held(self) -> dict[str, int]:
        """The gauges that are not 0."""
        return {name: value for name, value in self.stack.gauges().items() if value}


class World:
    """See the module."""

    def __init__(self, names: str, *, seed: int = 1, config: Config | None = None, network: Network | None = None):
        self.seed = seed
        self.config = config or Config()
        self.network = network or Network()
        self.rng = random.Random(seed)
        self.now = 0
        self.frames_sent = 0
        self.lose_if: Callable[[str, str, Run], bool] = lambda src, dest, run: False
        self.flight: list[tuple[int, int, Process, bytes]] = []
        self._sent = 0
        self.members = {name: Process(self, name, number) for number, name in enumerate(names, 1)}

    def __getitem__(self, name: str) -> Process:
        return self.members[name]

    def install(self, names: str, number: int) -> AgreedView:
        """A view of these, in this order, at all of them at once."""
        members = tuple(self[name].address for name in names)
        view = AgreedView(ViewId(number, members[0]), members, tuple(names))
        for name in names:
            self.install_at(name, view)
        return view

    def install_at(self, name: str, view: AgreedView) -> None:
        process = self[name]
        old = process.view
        before = old.members if old else ()
        with_me = tuple(member for member in view.members if member in before or member == process.address)
        joined = tuple(member for member in view.members if member not in before)
        left = tuple(member for member in before if member not in view.members)
        event = NewView(view, old.id if old else None, with_me, joined, left, True, None)
        process.view = view
        process.stack.outlet.peers = tuple(member for member in view.members if member != process.address)
        self.happened(name, event)

    def happened(self, name: str, event: Event) -> None:
        self[name].stack.happened(event, self.now)
        self.end_turn(self[name])

    def send(self, name: str, *payloads: int) -> None:
        """The application of `name` multicasts these in one turn."""
        process = self[name]
        for payload in payloads:
            process.top.accept(b"%d" % payload)
        self.end_turn(process)

    def end_turn(self, process: Process) -> None:
        process.fill()
        output = process.stack.end_turn(self.now)
        process.records += [(kind, fields) for kind, _, fields in output.records]
        self._check_purges(process, [fields["digest"] for kind, _, fields in output.records if kind == "purge"])
        process.saw(output.events)
        for dests, frames in output.frames:
            for dest in dests:
                for frame in frames:
                    self._post(process, self.members[dest.name], frame)
        if process.consumes and process.unconsumed:
            marks, process.unconsumed = process.unconsumed, {}
            process.stack.asked(Consumed(marks), self.now)
            self.end_turn(process)
        elif process.fill():
            self.end_turn(process)

    def _check_purges(self, process: Process, digests: Sequence[dict[Address, int]]) -> None:
        """STB-I1: what is forgotten anywhere was delivered by every member of that view."""
        assert process.view is not None or not digests
        for digest in digests:
            for other in self.members.values():
                if other.view == process.view:
                    had = other.stable.delivered
                    assert all(had[stream] >= seq for stream, seq in digest.items()), f"{other.address} lacks {digest}"

    def _post(self, src: Process, dest: Process, frame: bytes) -> None:
        network, rng = self.network, self.rng
        self.frames_sent += 1
        runs = dest.stack.codec.decode(frame, dest.address)
        if any(self.lose_if(src.address.name, dest.address.name, run) for run in runs):
            return
        copies = 1 + (network.copies if rng.random() < network.repeat else 0)
        for _ in range(copies):
            if rng.random() >= network.loss:
                self._sent += 1
                when = self.now + rng.randint(network.delay_min, network.delay_max)
                heapq.heappush(self.flight, (when, self._sent, dest, frame))

    def run(self, until: int) -> None:
        """Let everything happen up to that time."""
        while True:
            living = [process for process in self.members.values() if process.alive]
            wake = min((process.stack.wake() for process in living), default=NEVER)
            arrival = self.flight[0][0] if self.flight else NEVER
            when = max(self.now, min(wake, arrival))
            if when > until:
                self.now = until
                return
            self.now = when
            if arrival <= wake:
                _, _, process, frame = heapq.heappop(self.flight)
                if process.alive:
                    process.stack.receive(frame, self.now)
                    self.end_turn(process)
                continue
            for process in living:
                if process.stack.wake() <= self.now:
                    process.stack.advance(self.now)
                    self.end_turn(process)

    def settle(self, seconds: float = 30) -> None:
        """Run until nothing is in flight and nobody waits for anything; AssertionError if that does not come."""
        end = self.now + int(seconds * 1_000_000)
        while self.flight or any(process.stack.wake() < NEVER for process in self.members.values() if process.alive):
            assert self.now < end, f"no rest after {seconds} s: {[p.held() for p in self.members.values()]}"
            self.run(min(end, self.now + 100_000))
