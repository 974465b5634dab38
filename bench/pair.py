"""Two members of one profile in one process: the real stacks, and between them nothing but lists."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from pygroups.core.address import Address
from pygroups.core.driver_events import Announce, Answered, Find, Found, Probe
from pygroups.core.events import Consumed, Event, Join, Marks
from pygroups.core.layer import Env, Layer
from pygroups.core.limits import MILLISECOND, SECOND, Config
from pygroups.core.run import Run
from pygroups.core.stack import Codec as AnyCodec
from pygroups.core.stack import Stack
from pygroups.core.state_events import StateChunk, StateWanted
from pygroups.core.top import Delivered, Top
from pygroups.layers.profiles import PROFILES, Profile, build_stack
from pygroups.wire.codec import Codec

UNLIMITED: Final = 1 << 40  # bytes a second: what a layer costs, and not how long it waits


class NoCodec:
    """Hands runs over as they are, from the point of view of whoever receives them: what is left are the layers."""

    def encode(self, me: Address, dest: Address | None, runs: Sequence[Run]) -> list[Any]:
        return [runs]

    def decode(self, frame: Any, me: Address) -> list[Run]:
        return [Run(r.src, r.dest, r.heads, r.origin, r.first, r.index, r.count, r.body) for r in frame]


def a_codec(heads: Sequence[type]) -> AnyCodec:
    return Codec("pair", heads)


def no_codec(heads: Sequence[type]) -> AnyCodec:
    return NoCodec()


class Spent:
    """Nanoseconds in each layer, gathered by subclasses that look at the clock around every call."""

    def __init__(self) -> None:
        self.ns: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.look = self._what_looking_costs()

    def clocked(self, layer: type[Layer]) -> type[Layer]:
        """`layer`, timed."""
        name = layer.__name__
        self.ns[name] = self.calls[name] = 0

        def around(method: Callable[..., None]) -> Callable[..., None]:
            ns, calls, clock = self.ns, self.calls, time.perf_counter_ns

            def timed(*args: Any) -> None:
                began = clock()
                method(*args)
                ns[name] += clock() - began
                calls[name] += 1

            return timed

        names = ("down", "up", "down_event", "up_event", "timer", "end_turn")
        own = {n: around(getattr(layer, n)) for n in names if n != "end_turn" or layer.end_turn is not Layer.end_turn}
        return type(name, (layer,), {"__slots__": (), **own})

    def _what_looking_costs(self) -> float:
        clock, rounds = time.perf_counter_ns, 100_000
        best = 1e9
        for _ in range(5):
            total = 0
            for _ in range(rounds):
                began = clock()
                total += clock() - began
            best = min(best, total / rounds)
        return best

    def us(self, name: str, units: int) -> float:
        """Microseconds in that layer per unit, without what looking at the clock adds."""
        return max(0.0, self.ns[name] - self.calls[name] * self.look) / 1_000 / units

    def forget(self) -> None:
        for name in self.ns:
            self.ns[name] = self.calls[name] = 0


class End:
    """One of the two: a stack, and an application that consumes what it gets without looking at it."""

    def __init__(
        self,
        pair: Pair,
        name: str,
        codec: Callable[[Sequence[type]], AnyCodec],
        spent: Spent | None,
        profile: Profile,
    ) -> None:
        self.pair = pair
        self.address = Address(name, f"{ord(name):016x}")
        self.env = Env(self.address, 0, random.Random(name), Config(gossip_rate=UNLIMITED, gossip_burst=UNLIMITED))
        self.env.contact = name
        if spent is None:
            self.stack = build_stack(profile, self.env, codec)
            top = self.stack.layers[0]
            assert isinstance(top, Top)
        else:
            self.env.fingerprint = "clocked"
            self.env.services = profile.services
            top = spent.clocked(Top)(self.env)
            assert isinstance(top, Top)
            layers = [top, *(spent.clocked(layer)(self.env) for layer in profile.layers)]
            self.stack = Stack(self.env, layers, codec(profile.heads()))
        self.top = top
        self.member = False
        self.messages = 0

    def end_turn(self) -> None:
        now = self.pair.now
        output = self.stack.end_turn(now)
        self.pair.flight += [(self, frame) for _, frames in output.frames for frame in frames]
        for command in output.commands:
            self._obey(command)
        marks: Marks = {}
        for event in output.events:
            if type(event) is Delivered:
                run = event.run
                self.messages += run.count
                if run.origin is not None:
                    marks[run.origin] = run.first + run.count
            elif isinstance(event, StateWanted):
                for joiner in event.joiners:
                    self.stack.asked(StateChunk(event.view, joiner, b"", last=True, none=True), now)
                    self.pair.due[self] = None
        if marks:
            self.stack.asked(Consumed(marks), now)

    def _obey(self, command: Event) -> None:
        if isinstance(command, Announce):
            self.member = command.member
        elif isinstance(command, Find):
            members = {end.address: end.env.contact for end in self.pair.ends if end.member}
            self.stack.happened(Found(members, may_found=not members), self.pair.now)
            self.pair.due[self] = None
        elif isinstance(command, Probe):
            self.stack.happened(Answered(command.peer), self.pair.now)
            self.pair.due[self] = None


class Pair:
    """A (which orders, if the profile has an order) and B."""

    def __init__(self, *, codec: bool, spent: Spent | None = None, profile: str = "total") -> None:
        self.now = 0
        self.ends: list[End] = []
        self.flight: list[tuple[End, Any]] = []
        self.due: dict[End, None] = {}  # who was called since its last turn
        for name in "AB":
            end = End(self, name, a_codec if codec else no_codec, spent, PROFILES[profile])
            self.ends.append(end)
            end.stack.asked(Join(), 0)
            self.due[end] = None
            self.run(2 * SECOND)
        assert self.ends[0].env.view == self.ends[1].env.view is not None

    def settle(self) -> None:
        """End the turns of those who were called, and bring everything over, until there is nothing more."""
        while self.due:
            due, self.due = self.due, {}
            for end in due:
                end.end_turn()
            flight, self.flight = self.flight, []
            for sender, frame in flight:
                receiver = self.ends[1] if sender is self.ends[0] else self.ends[0]
                receiver.stack.receive(frame, self.now)
                self.due[receiver] = None

    def run(self, duration: int) -> None:
        end = self.now + duration
        while self.now < end:
            self.settle()
            self.tick(MILLISECOND)

    def tick(self, microseconds: int) -> None:
        """So much time passes; whoever waits for it is woken."""
        self.now += microseconds
        for end in self.ends:
            if end.stack.wake() <= self.now:
                end.stack.advance(self.now)
                self.due[end] = None
