"""The stack moves runs and events between neighboring layers until none is left to move."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import ClassVar, Final, NamedTuple, Protocol

from pygroups.core.tables import Tables

from .address import Address
from .driver_events import COMMANDS
from .errors import PeerError, SealError, UsageError
from .events import Event, NewView
from .layer import NEVER, Env, Layer, Record, services_of
from .own_bodies import with_own_bodies, without_own_bodies
from .run import Run
from .services import MEMBERSHIP

WAKE: Final = attrgetter("wake")


class Codec(Protocol):
    """Encodes runs as frames and decodes them; see wire/."""

    def encode(self, me: Address, dest: Address | None, runs: Sequence[Run]) -> list[bytes]: ...
    def decode(self, frame: bytes | memoryview, me: Address) -> list[Run]: ...


class Outlet(Layer):
    """The place below the last layer.  The outlet collects the runs and commands that leave the member in this turn."""

    __slots__ = ("body_min", "commands", "peers", "returns", "sent")

    gives: ClassVar[frozenset[str]] = frozenset({"MULTICAST", "UNICAST"})

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.peers: tuple[Address, ...] = ()  # the receivers of a multicast
        self.sent: dict[tuple[Address | None, tuple[Address, ...]], list[Run]] = {}
        self.commands: list[Event] = []
        self.returns = False  # some run goes back to its origin
        self.body_min = env.config.run_bytes // 4 if env.lossless else NEVER  # of a body that is not sent back

    def down(self, run: Run) -> None:
        dests = self.peers if run.dest is None else (run.dest,)
        if dests:
            if run.origin is not None:
                self.env.sent += len(dests)
                if len(run.body) >= self.body_min and run.origin != self.env.me and run.dest is None:
                    self.returns = True
            self.sent.setdefault((run.dest, dests), []).append(run)

    def taken(self) -> Iterable[tuple[tuple[Address | None, tuple[Address, ...]], list[Run]]]:
        """The runs that leave, in order, behind their destination and its receivers."""
        sent, self.sent = self.sent, {}
        if not self.returns:
            return sent.items()
        self.returns = False
        return [
            ((dest, some), part)
            for (dest, dests), runs in sent.items()
            for some, part in (without_own_bodies(dests, runs, self.body_min) if dest is None else [(dests, runs)])
        ]

    def down_event(self, event: Event) -> None:
        if isinstance(event, COMMANDS):
            self.commands.append(event)
        elif isinstance(event, NewView):
            self.peers = tuple(member for member in event.view.members if member != self.env.me)


class Routes(dict[type | None, int]):
    """By the last head of a run that leaves the layer at `place` upward, the next place that handles the run."""

    def __init__(self, layers: Sequence[Layer], place: int) -> None:
        super().__init__()
        self.layers = layers
        self.place = place

    def __missing__(self, head: type | None) -> int:
        found = self.place - 1
        while found and not _sees(self.layers[found], head):
            found -= 1
        self[head] = found
        return found


class EventRoutes(dict[type[Event], int]):
    """By the kind of an event that leaves the layer at `place` downward, the next place that handles the event."""

    def __init__(self, places: Sequence[Layer], place: int) -> None:
        super().__init__()
        self.places = places
        self.place = place

    def __missing__(self, kind: type[Event]) -> int:
        found = self.place + 1
        while found + 1 < len(self.places) and not _hears(self.places[found], kind):
            found += 1
        self[kind] = found
        return found


class Output(NamedTuple):
    """The output of one turn.  The fields must be handled in this order."""

    records: list[Record]  # to the journal
    frames: list[tuple[tuple[Address, ...], list[bytes]]]  # to the network: the receivers, and the frames for them
    commands: list[Event]  # to the driver
    events: list[Run | Event]  # to the application


class Stack:
    """`layers`, top first.  Drivers and the simulator are the only callers.

    A turn consists of any number of calls of receive, happened, asked and advance, and then one call of end_turn.
    Frames and events leave the stack only in the output of end_turn, so the driver can write the records first.
    """

    tables: ClassVar[Tables] = {
        "_deeper": "fixed",
        "_events": "fixed",
        "_events[]": "fixed",
        "_enders": "fixed",
        "_enders[]": "fixed",
        "_paused": "fixed",
        "_paused[]": "fixed",
        "_places": "fixed",
        "_routes": "fixed",
        "_routes[]": "fixed",
        "_timed": "fixed",
        "layers": "fixed",
        "outlet.above": "turn",
        "outlet.below": "turn",
        "outlet.commands": "turn",
        "outlet.peers": "members",
        "outlet.sent": "turn",
    }

    def __init__(self, env: Env, layers: Sequence[Layer], codec: Codec) -> None:
        check_fit([*(type(layer) for layer in layers), Outlet])
        self.env = env
        env.gauges = self.gauges
        self.layers = list(layers)
        self.codec = codec
        self.outlet = Outlet(env)
        self._places: list[Layer] = [*self.layers, self.outlet]
        self._outside = len(self.layers)  # the place of the outlet
        self._bottom = self._outside - 1
        self._timed = [layer for layer in self.layers if type(layer).timer is not Layer.timer]
        self._deeper = [self._next_down(place) for place in range(len(self.layers))]
        self._events = [EventRoutes(self._places, place) for place in range(len(self._places))]
        self._routes = [self._upward(place) for place in range(len(self._places))]
        self._enders = [
            (place, layer) for place, layer in enumerate(self.layers) if type(layer).end_turn is not Layer.end_turn
        ]
        self._paused = [
            (place, layer)
            for place, layer in enumerate(self.layers)
            if type(layer).after_pause is not Layer.after_pause
        ]
        self._pause = env.config.heartbeat_timeout if self._paused else NEVER  # a longer one is reported to the layers

    def _next_down(self, place: int) -> int:
        """The next place below `place` whose layer does not only pass runs on; the outlet is the last."""
        lower = range(place + 1, len(self.layers))
        return next((to for to in lower if type(self.layers[to]).down is not Layer.down), self._outside)

    def _upward(self, place: int) -> Routes:
        return Routes(self.layers, place)

    def receive(self, frame: bytes | memoryview, now: int) -> bool:
        """Handle a received frame.  An invalid frame is counted and dropped, and raises no exception.  Returns whether
        the frame was authentic: otherwise its sender is not known."""
        if now - self.env.now > self._pause:
            self._after_pause(now)
        self.env.now = now
        try:
            runs = self.codec.decode(frame, self.env.me)
        except PeerError as error:
            self.env.drop(error.reason)
            return not isinstance(error, SealError)
        for run in runs:
            if not run.body and run.origin is not None:
                runs = with_own_bodies(runs, self.env)
                break
        self._places[-1].above += runs
        self._settle(self._outside)
        return True

    def happened(self, event: Event, now: int) -> None:
        """Handle an event of the driver: Found, Answered, Ended or Dead."""
        if now - self.env.now > self._pause:
            self._after_pause(now)
        self.env.now = now
        self._places[self._bottom].up_event(event)
        self._settle(self._bottom)

    def asked(self, event: Event, now: int) -> None:
        """Handle an event of the application: Join, Leave, Consumed or a part of a state."""
        if now - self.env.now > self._pause:
            self._after_pause(now)
        self.env.now = now
        self._places[0].down_event(event)
        self._settle(0)

    def advance(self, now: int) -> None:
        """Set the time to `now`, and call timer() of each layer whose `wake` is reached."""
        if now - self.env.now > self._pause:
            self._after_pause(now)
        self.env.now = now
        for place, layer in enumerate(self.layers):
            if layer.wake <= now:
                layer.timer()
                assert layer.wake > now, f"{type(layer).__name__} did not set its timer anew"
                self._settle(place)

    def wake(self) -> int:
        """The time of the next call of advance(); NEVER if no layer has set a time."""
        soonest: int = min(map(WAKE, self._timed))
        return soonest

    def end_turn(self, now: int) -> Output:
        """End the turn: let the layers send their collected messages, and return all output of the turn."""
        if now - self.env.now > self._pause:
            self._after_pause(now)
        self.env.now = now
        if self.layers[0].below:
            self._settle(0)  # messages that the application sent after the last call
        self._end_layers()
        env, outlet, top = self.env, self.outlet, self.layers[0]
        if top.wake <= now:  # own messages were ordered and delivered above: the application hears of them in this turn
            top.timer()
            self._end_layers()
        if env.drops:
            env.record_drops()
        frames: list[tuple[tuple[Address, ...], list[bytes]]] = []
        if outlet.sent:
            encode, me = self.codec.encode, env.me
            frames = [
                (origin_first(dests, runs[0].origin), encode(me, dest, runs)) for (dest, dests), runs in outlet.taken()
            ]
        output = Output(env.records, frames, outlet.commands, top.above)
        env.records, outlet.commands, top.above = [], [], []
        return output

    def _end_layers(self) -> None:
        for place, layer in self._enders:
            layer.end_turn()
            if layer.below or (layer.above and place):  # above the top is the application
                self._settle(place)

    def _after_pause(self, now: int) -> None:
        """This input is the first one after a long pause: the layers learn of the pause before they see the input."""
        self.env.now = now
        for place, layer in self._paused:
            layer.after_pause()
            self._settle(place)

    def gauges(self) -> dict[str, int]:
        """The gauges of all layers, as layer.name.  All are 0 when the group is quiet."""
        return {
            f"{type(layer).__name__.lower()}.{name}": value
            for layer in self.layers
            for name, value in layer.gauges().items()
        }

    def _settle(self, place: int) -> None:
        """Move the items of the layer at `place`, and all items that result: down, then up, until none is left.

        Items between two layers keep their order.  Only layers that were called are checked for items.  A run skips
        layers that would only pass it on, and rises as far as the layers hand it on, unless an earlier item may still
        wait in one of them.
        """
        layer, up_first, up_last = self._places[place], place, place
        if layer.below:
            first, last = self._sweep_down(place, place)
            if first < place:
                up_first = first
            if last > place:
                up_last = last
        elif not layer.above:
            return
        while up_last >= 0:
            down_first, down_last = self._sweep_up(up_first, up_last)
            if down_last < 0:
                return
            up_first, up_last = self._sweep_down(down_first, down_last)

    def _sweep_down(self, at: int, down_last: int) -> tuple[int, int]:
        """Move the items in `below` of the layers from `at` to `down_last`, and all that result, to the bottom.

        Returns the first and the last layer whose `above` may have items; the last is -1 if there is none.
        """
        layers, deeper = self._places, self._deeper
        up_first, up_last = self._outside + 1, -1
        while at <= down_last:
            layer, here = layers[at], at
            at += 1
            if layer.below:
                items, layer.below = layer.below, []
                far = deeper[here] if here == down_last else at
                after = far  # no layer between these two has items
                for item in items:
                    if type(item) is Run:
                        lower = layers[far]
                        lower.down(item)
                    else:
                        # the event may wait there, and later items must not overtake it
                        alone = here == down_last and len(items) == 1
                        far = after = self._events[here][type(item)] if alone else at
                        lower = layers[far]
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
        """The same as _sweep_down in the other direction: move the items in `above` of the layers from `at` up to
        `up_first`, and all that result, to the top."""
        layers, routes = self._places, self._routes
        down_first, down_last = self._outside + 1, -1
        while at >= up_first and at:
            layer, here = layers[at], at
            at -= 1
            if layer.above:
                items, layer.above = layer.above, []
                # later items must not overtake items that wait there; no layer between here and `after` has items
                ceiling, after = (0, -1) if here == up_first else (at, at)
                for item in items:
                    called = here
                    onward: Run | Event | None = item
                    while onward is not None:
                        if type(onward) is Run:
                            heads = onward.heads
                            called = routes[called][type(heads[-1]) if heads else None]
                            if called < ceiling:
                                called = ceiling
                            upper = layers[called]
                            onward = upper.rise(onward)
                            if onward is not None and (upper.above or called == ceiling):
                                upper.above.append(onward)
                                onward = None
                        else:
                            called = at
                            upper = layers[at]
                            upper.up_event(onward)
                            onward = None
                        if upper.above:
                            if called > ceiling:
                                ceiling = called
                            if called > after:
                                after = called
                            if called < up_first:
                                up_first = called
                        if upper.below:
                            if called < down_first:
                                down_first = called
                            if called > down_last:
                                down_last = called
                at = after
        return down_first, down_last


def origin_first(dests: tuple[Address, ...], origin: Address | None) -> tuple[Address, ...]:
    """The receivers of a frame, that of its first run's origin first: a sender there waits until its message comes
    back in the order, and a write to another process wakes that process, which then takes a core."""
    if origin is None or dests[0] == origin or origin not in dests:
        return dests
    return (origin, *[dest for dest in dests if dest != origin])


def _sees(layer: Layer, head: type | None) -> bool:
    """Whether `layer` handles a run with this head on its way up, and does not only pass it on."""
    return type(layer).up is not Layer.up and (not layer.own_heads_only or head in layer.heads)


def _hears(layer: Layer, kind: type[Event]) -> bool:
    """Whether `layer` handles events of this kind on their way down, and does not only pass them on."""
    handled = layer.events_down
    return type(layer).down_event is not Layer.down_event and (handled is None or issubclass(kind, handled))


def check_fit(layers: Sequence[type[Layer]]) -> None:
    """Raise UsageError if a layer needs a service that no layer below it gives, or none above it."""
    for place, layer in enumerate(layers):
        below, above = services_of(layers[place + 1 :]), services_of(layers[:place])
        needs = layer.needs | layer.needs_in_group if MEMBERSHIP in below else layer.needs
        for missing, where in ((sorted(needs - below), "below"), (sorted(layer.needs_above - above), "above")):
            if missing:
                raise UsageError(f"{layer.__name__} needs {', '.join(missing)}, which no layer {where} it gives")
