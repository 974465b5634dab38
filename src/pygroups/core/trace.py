"""Tracing: a stack that reports each run and each event that crosses a border between two layers.

A stack without tracing contains none of this code: a traced stack is another class, which the builder of the stack
chooses.  Both move the same items in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from .events import Event
from .layer import Env, Layer
from .run import Run
from .stack import Codec, EventRoutes, Output, Routes, Stack
from .top import Delivered

APPLICATION: Final = "application"
NETWORK: Final = "network"


class Crossing(NamedTuple):
    """A run or an event that passes from one layer to its neighbor at `now`, in microseconds of the member's clock."""

    now: int
    giver: str
    taker: str
    is_up: bool
    item: Run | Event

    @property
    def run(self) -> Run | None:
        """The run that crosses, alone or in an event."""
        item = self.item
        return item if isinstance(item, Run) else item.run if isinstance(item, Delivered) else None

    def carries(self, sender: str, number: int) -> bool:
        """Whether message `number` of `sender`, a name or an address, crosses."""
        run = self.run
        if run is None or run.origin is None or sender not in (run.origin.name, str(run.origin)):
            return False
        return run.first <= number < max(run.next, run.first + 1)  # a piece has count 0

    def __str__(self) -> str:
        """Direction, the two layers, and the item: a run with its identity, its way and its heads, or an event."""
        way = "up  " if self.is_up else "down"
        return f"{way} {self.giver:>14} > {self.taker:<14} {_item_text(self.item)}"


Trace = Callable[[Crossing], None]


class TracedStack(Stack):
    """A stack that calls `trace` before an item enters a layer, the network or the application.

    No layer is skipped, so that each message can be followed through all of them.
    """

    def __init__(self, env: Env, layers: Sequence[Layer], codec: Codec, trace: Trace) -> None:
        super().__init__(env, layers, codec)
        names = [APPLICATION, *(type(layer).__name__.lower() for layer in layers), NETWORK, NETWORK]
        self._places = [
            Border(layer, trace, *names[place : place + 3]) for place, layer in enumerate([*self.layers, self.outlet])
        ]
        self._events = [EventRoutes(self._places, place) for place in range(len(self._places))]
        self._deeper = [place + 1 for place in range(len(layers))]
        self._trace = trace

    def _upward(self, place: int) -> Routes:
        return NextLayer(self.layers, place)

    def end_turn(self, now: int) -> Output:
        """End the turn, and report the items for the application."""
        output = super().end_turn(now)
        for item in output.events:
            self._trace(Crossing(now, "top", APPLICATION, True, item))
        return output


class NextLayer(Routes):
    """In a traced stack no run skips a layer."""

    def __missing__(self, head: type | None) -> int:
        return self.place - 1


class Border(Layer):
    """The place of `layer` in a traced stack: it reports the items that enter the layer, and hands them on."""

    __slots__ = ("_layer", "_name", "_over", "_trace", "_under")

    def __init__(self, layer: Layer, trace: Trace, over: str, name: str, under: str) -> None:
        self.env = layer.env
        self._layer = layer
        self._trace = trace
        self._over, self._name, self._under = over, name, under

    @property
    def above(self) -> list[Run | Event]:
        return self._layer.above

    @above.setter
    def above(self, items: list[Run | Event]) -> None:
        self._layer.above = items

    @property
    def below(self) -> list[Run | Event]:
        return self._layer.below

    @below.setter
    def below(self, items: list[Run | Event]) -> None:
        self._layer.below = items

    def down(self, run: Run) -> None:
        self._trace(Crossing(self.env.now, self._over, self._name, False, run))
        self._layer.down(run)

    def up(self, run: Run) -> None:
        self._trace(Crossing(self.env.now, self._under, self._name, True, run))
        self._layer.up(run)

    def down_event(self, event: Event) -> None:
        self._trace(Crossing(self.env.now, self._over, self._name, False, event))
        self._layer.down_event(event)

    def up_event(self, event: Event) -> None:
        self._trace(Crossing(self.env.now, self._under, self._name, True, event))
        self._layer.up_event(event)


def _item_text(item: Run | Event) -> str:
    if isinstance(item, Delivered):
        return f"Delivered {_identity(item.run)}"
    if isinstance(item, Event):
        return type(item).__name__
    heads = " ".join([type(head).__name__ for head in item.heads])
    parts = [_identity(item), f"{item.src.name}>{item.dest.name if item.dest is not None else '*'}", heads]
    return " ".join(filter(None, parts))


def _identity(run: Run) -> str:
    """Origin, incarnation, number of the first message, index of a piece, number of messages; empty without payload."""
    if run.origin is None:
        return ""
    piece = f".{run.index}" if run.index else ""
    return f"{run.origin}#{run.first}{piece}+{run.count}"
