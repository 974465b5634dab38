"""The stack moves runs and events between neighboring layers until nothing moves; all its world comes through it."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import ClassVar, Final, NamedTuple, Protocol

from .address import Address
from .errors import PeerError, UsageError
from .events import Announce, Contacts, Disconnect, Event, Find, NewView, Probe
from .layer import Env, Layer, Record
from .run import Run

COMMANDS = (Announce, Contacts, Disconnect, Find, Probe)  # events that leave the stack for its driver
WAKE: Final = attrgetter("wake")


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
        self._timed = [layer for layer in self.layers if type(layer).timer is not Layer.timer]
        self._deeper = [self._next_down(place) for place in range(len(self.layers))]
        self._routes: list[dict[type | None, int]] = [{} for _ in self._places]  # per place and head, who sees it next
        self._enders = [
            (place, layer) for place, layer in enumerate(self.layers) if type(layer).end_turn is not Layer.end_turn
        ]

    def _next_down(self, place: int) -> int:
        """The next layer below `place` that does more with a run than to pass it on; the outlet does."""
        lower = range(place + 1, len(self.layers))
        return next((to for to in lower if type(self.layers[to]).down is not Layer.down), len(self.layers))

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
        soonest: int = min(map(WAKE, self._timed))
        return soonest

    def end_turn(self, now: int) -> Output:
        """Let the layers send what they gathered, and take everything that leaves the member."""
        self.env.now = now
        if self.layers[0].below:
            self._settle(0)  # what the application sent since anything was called
        for place, layer in self._enders:
            layer.end_turn()
            if layer.below or (layer.above and place):  # above the top is the application
                self._settle(place)
        env, outlet, top = self.env, self.outlet, self.layers[0]
        if env.drops:
            env.record_drops()
        frames: list[tuple[tuple[Address, ...], list[bytes]]] = []
        if outlet.sent:
            frames = [(dests, self.codec.encode(env.me, dest, runs)) for (dest, dests), runs in outlet.sent.items()]
            outlet.sent = {}
        output = Output(env.records, frames, outlet.commands, top.above)
        env.records, outlet.commands, top.above = [], [], []
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

        Between two layers everything arrives in the order it was left.  Only who was called is looked at.  A run goes
        past layers that would only pass it on, unless something may wait in one of them that was left before.
        """
        layer, up_first, up_last = self._places[place], place, place
        if layer.below:
            first, last = self._sweep_down(place, place)
            up_first, up_last = min(place, first), max(place, last)
        elif not layer.above:
            return
        while up_last >= 0:
            down_first, down_last = self._sweep_up(up_first, up_last)
            if down_last < 0:
                return
            up_first, up_last = self._sweep_down(down_first, down_last)

    def _sweep_down(self, at: int, down_last: int) -> tuple[int, int]:
        """Layers from `at` to `down_last` may have left something for those below: move it, and what it leaves, to the
        bottom.  The first and the last that may have left something for those above; the last is -1 if none."""
        layers, deeper = self._places, self._deeper
        up_first, up_last = len(layers), -1
        while at <= down_last:
            layer, here = layers[at], at
            at += 1
            if layer.below:
                items, layer.below = layer.below, []
                far = deeper[here] if here == down_last else at
                after = far  # nobody between these two has anything
                for item in items:
                    if isinstance(item, Run):
                        lower = layers[far]
                        lower.down(item)
                    else:
                        far = after = at  # the event may wait there: what follows must not overtake it
                        lower = layers[at]
                        lower.down_event(item)
                    if lower.below and far > down_last:
                        down_last = far
                    if lower.above:
                        if far < up_first:
                            up_first = far
                        if far > up_last:
                            up_last = far
                at = after
        return up_first, up_last

    def _sweep_up(self, up_first: int, at: int) -> tuple[int, int]:
        """As _sweep_down, the other way: what layers from `at` to `up_first` have left for those above moves to the
        top."""
        layers = self._places
        down_first, down_last = len(layers), -1
        while at >= up_first and at:
            layer, here = layers[at], at
            at -= 1
            if layer.above:
                items, layer.above = layer.above, []
                routes, after = self._routes[here], -1
                ceiling = 0 if here == up_first else at  # what follows must not overtake what waits there
                for item in items:
                    if isinstance(item, Run):
                        heads = item.heads
                        called = routes.get(type(heads[-1]) if heads else None, -1)
                        if called < 0:
                            called = self._upward(here, item)
                        if called < ceiling:
                            called = ceiling
                        upper = layers[called]
                        upper.up(item)
                    else:
                        called = at
                        upper = layers[at]
                        upper.up_event(item)
                    if called > after:
                        after = called
                    if upper.above:
                        if called > ceiling:
                            ceiling = called
                        if called < up_first:
                            up_first = called
                    if upper.below:
                        if called < down_first:
                            down_first = called
                        if called > down_last:
                            down_last = called
                at = after  # nobody between these two has anything
        return down_first, down_last

    def _upward(self, place: int, run: Run) -> int:
        """The next layer above `place` that has to see `run`, and all that have such a head last."""
        kind = type(run.heads[-1]) if run.heads else None
        found = place - 1
        while found and not _sees(self.layers[found], kind):
            found -= 1
        self._routes[place][kind] = found
        return found


def _sees(layer: Layer, head: type | None) -> bool:
    """Whether a run with this head is more to `layer`, on its way up, than something to pass on."""
    return type(layer).up is not Layer.up and (not layer.own_heads_only or head in layer.heads)


def check_fit(layers: Sequence[type[Layer]]) -> None:
    """UsageError when a layer needs what no layer below it gives."""
    given: set[str] = set()
    for layer in reversed(layers):
        missing = sorted(layer.needs - given)
        if missing:
            raise UsageError(f"{layer.__name__} needs {', '.join(missing)}, which no layer below it gives")
        given |= layer.gives
