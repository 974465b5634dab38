"""The stack moves runs and events between neighboring layers until nothing moves; all its world comes through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol

from .address import Address
from .errors import PeerError, UsageError
from .events import Announce, Contacts, Disconnect, Event, Find, NewView, Probe
from .layer import Env, Layer, Record
from .run import Run

COMMANDS = (Announce, Contacts, Disconnect, Find, Probe)  # events that leave the stack for its driver


class Codec(Protocol):
    """Runs to frames and back; see wire/."""

    def encode(self, me: Address, dest: Address | None, runs: Sequence[Run]) -> list[bytes]: ...
    def decode(self, frame: bytes | memoryview, me: Address) -> list[Run]: ...


class Outlet(Layer):
    """Below the last layer: gathers what leaves the member in this turn."""

    __slots__ = ("commands", "peers", "sent")

    gives: ClassVar[frozenset[str]] = frozenset({"MULTICAST", "UNICAST"})

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.peers: tuple[Address, ...] = ()  # where a multicast goes
        self.sent: dict[tuple[Address | None, tuple[Address, ...]], list[Run]] = {}
        self.commands: list[Event] = []

    def down(self, run: Run) -> None:
        dests = self.peers if run.dest is None else (run.dest,)
        if dests:
            self.sent.setdefault((run.dest, dests), []).append(run)

    def down_event(self, event: Event) -> None:
        if isinstance(event, COMMANDS):
            self.commands.append(event)
        elif isinstance(event, NewView):
            self.peers = tuple(member for member in event.view.members if member != self.env.me)


class Output(NamedTuple):
    """What one turn leaves behind, in the order it must be dealt with."""

    records: list[Record]  # to the journal
    frames: list[tuple[tuple[Address, ...], list[bytes]]]  # to the network: who gets which frames
    commands: list[Event]  # to the driver
    events: list[Run | Event]  # to the application


class Stack:
    """`layers`, top first.  Drivers and the simulator are the only callers.

    A turn: any number of receive, happened, asked and advance, then end_turn.  What a turn sends and hands to the
    application leaves only with end_turn's output, so that whoever drives the stack can write the records first.
    """

    def __init__(self, env: Env, layers: Sequence[Layer], codec: Codec) -> None:
        check_fit([*(type(layer) for layer in layers), Outlet])
        self.env = env
        env.gauges = self.gauges
        self.layers = list(layers)
        self.codec = codec
        self.outlet = Outlet(env)
        self._downward = list(zip(self.layers, [*self.layers[1:], self.outlet], strict=True))
        self._upward = list(zip(reversed(self.layers[1:]), reversed(self.layers[:-1]), strict=True))
        self._enders = [layer for layer in self.layers if type(layer).end_turn is not Layer.end_turn]

    def receive(self, frame: bytes | memoryview, now: int) -> None:
        """A frame came in.  What a peer did wrong is counted and dropped, never raised."""
        self.env.now = now
        try:
            runs = self.codec.decode(frame, self.env.me)
        except PeerError as error:
            self.env.drop(error.reason)
            return
        bottom = self.layers[-1]
        for run in runs:
            bottom.up(run)
        self._settle()

    def happened(self, event: Event, now: int) -> None:
        """Something happened in the world below: Found, Answered, Ended or Dead."""
        self.env.now = now
        self.layers[-1].up_event(event)
        self._settle()

    def asked(self, event: Event, now: int) -> None:
        """The application asks for something: Join, Leave, Consumed or a part of a state."""
        self.env.now = now
        self.layers[0].down_event(event)
        self._settle()

    def advance(self, now: int) -> None:
        """It is `now`: call the layers whose time has come."""
        self.env.now = now
        for layer in self.layers:
            if layer.wake <= now:
                layer.timer()
                assert layer.wake > now, f"{type(layer).__name__} did not set its timer anew"
                self._settle()

    def wake(self) -> int:
        """When advance must be called next; NEVER if nothing waits."""
        return min([layer.wake for layer in self.layers])

    def end_turn(self, now: int) -> Output:
        """Let the layers send what they gathered, and take everything that leaves the member."""
        self.env.now = now
        for layer in self._enders:
            layer.end_turn()
            self._settle()
        env, outlet, top = self.env, self.outlet, self.layers[0]
        env.record_drops()
        frames = [(dests, self.codec.encode(env.me, dest, runs)) for (dest, dests), runs in outlet.sent.items()]
        output = Output(env.records, frames, outlet.commands, top.above)
        env.records, outlet.sent, outlet.commands, top.above = [], {}, [], []
        return output

    def gauges(self) -> dict[str, int]:
        """Everything the layers hold, as layer.name; 0 when all is quiet."""
        return {
            f"{type(layer).__name__.lower()}.{name}": value
            for layer in self.layers
            for name, value in layer.gauges().items()
        }

    def _settle(self) -> None:
        """Sweep down, then up, until nothing moves.  Between two layers everything arrives in the order it was left."""
        moved = True
        while moved:
            moved = False
            for layer, lower in self._downward:
                if layer.below:
                    moved = True
                    items, layer.below = layer.below, []
                    for item in items:
                        if isinstance(item, Run):
                            lower.down(item)
                        else:
                            lower.down_event(item)
            for layer, upper in self._upward:
                if layer.above:
                    moved = True
                    items, layer.above = layer.above, []
                    for item in items:
                        if isinstance(item, Run):
                            upper.up(item)
                        else:
                            upper.up_event(item)


def check_fit(layers: Sequence[type[Layer]]) -> None:
    """UsageError when a layer needs what no layer below it gives."""
    given: set[str] = set()
    for layer in reversed(layers):
        missing = sorted(layer.needs - given)
        if missing:
            raise UsageError(f"{layer.__name__} needs {', '.join(missing)}, which no layer below it gives")
        given |= layer.gives
