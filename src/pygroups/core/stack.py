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
        self._places: list[Layer] = [*self.layers, self.outlet]
        self._bottom = len(self.layers) - 1
        self._enders = [
            (place, layer) for place, layer in enumerate(self.layers) if type(layer).end_turn is not Layer.end_turn
        ]

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
        self._settle(self._bottom)

    def happened(self, event: Event, now: int) -> None:
        """Something happened in the world below: Found, Answered, Ended or Dead."""
        self.env.now = now
        self.layers[-1].up_event(event)
        self._settle(self._bottom)

    def asked(self, event: Event, now: int) -> None:
        """The application asks for something: Join, Leave, Consumed or a part of a state."""
        self.env.now = now
        self.layers[0].down_event(event)
        self._settle(0)

    def advance(self, now: int) -> None:
        """It is `now`: call the layers whose time has come."""
        self.env.now = now
        for place, layer in enumerate(self.layers):
            if layer.wake <= now:
                layer.timer()
                assert layer.wake > now, f"{type(layer).__name__} did not set its timer anew"
                self._settle(place)

    def wake(self) -> int:
        """When advance must be called next; NEVER if nothing waits."""
        return min([layer.wake for layer in self.layers])

    def end_turn(self, now: int) -> Output:
        """Let the layers send what they gathered, and take everything that leaves the member."""
        self.env.now = now
        self._settle(0)  # what the application sent since anything was called
        for place, layer in self._enders:
            layer.end_turn()
            if layer.below or layer.above:
                self._settle(place)
        env, outlet, top = self.env, self.outlet, self.layers[0]
        if env.drops:
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

    def _settle(self, place: int) -> None:
        """Move what the layer at `place` has left, and what comes of it: down, then up, until nothing is left.

        Between two layers everything arrives in the order it was left.  Only who was called is looked at: layers from
        down_first to down_last may have left something for those below them, up_first to up_last for those above.
        """
        layers, nowhere = self._places, len(self._places)
        down_first = down_last = up_first = up_last = place
        while True:
            while down_first <= down_last:
                layer = layers[down_first]
                down_first += 1
                if layer.below:
                    items, layer.below = layer.below, []
                    lower = layers[down_first]
                    for item in items:
                        if isinstance(item, Run):
                            lower.down(item)
                        else:
                            lower.down_event(item)
                    if lower.below and down_first > down_last:
                        down_last = down_first
                    if lower.above:
                        if down_first < up_first:
                            up_first = down_first
                        if down_first > up_last:
                            up_last = down_first
            down_first, down_last = nowhere, -1
            while up_last >= up_first and up_last:
                layer = layers[up_last]
                up_last -= 1
                if layer.above:
                    items, layer.above = layer.above, []
                    upper = layers[up_last]
                    for item in items:
                        if isinstance(item, Run):
                            upper.up(item)
                        else:
                            upper.up_event(item)
                    if upper.above and up_last < up_first:
                        up_first = up_last
                    if upper.below:
                        down_first = up_last
                        if up_last > down_last:
                            down_last = up_last
            if down_last < 0:
                return
            up_first, up_last = nowhere, -1


def check_fit(layers: Sequence[type[Layer]]) -> None:
    """UsageError when a layer needs what no layer below it gives."""
    given: set[str] = set()
    for layer in reversed(layers):
        missing = sorted(layer.needs - given)
        if missing:
            raise UsageError(f"{layer.__name__} needs {', '.join(missing)}, which no layer below it gives")
        given |= layer.gives
