"""The stack that skips what need not be done, beside a naive one that does everything: both do the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from operator import itemgetter
from typing import ClassVar

from hypothesis import given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.driver_events import Announce, Find
from pygroups.core.events import Event, NewView
from pygroups.core.layer import NEVER, Env, Layer, PassingLayer
from pygroups.core.limits import Config
from pygroups.core.run import Run
from pygroups.core.stack import Output, Stack
from pygroups.core.view import AgreedView, ViewId

A, B, C = (Address(name, "0" * 16) for name in "ABC")


class NaiveStack(Stack):
    """Each layer that was called hands all it has left to its neighbor: downward, then upward, then again."""

    def _settle(self, place: int) -> None:
        layers, called = self._places, {place}
        while any(layers[one].below or (one and layers[one].above) for one in called):
            for one in range(len(layers) - 1):
                if one in called and layers[one].below:
                    items, layers[one].below = layers[one].below, []
                    called.add(one + 1)
                    for item in items:
                        lower = layers[one + 1]
                        lower.down(item) if isinstance(item, Run) else lower.down_event(item)
            for one in range(len(layers) - 1, 0, -1):
                if layers[one].above:
                    items, layers[one].above = layers[one].above, []
                    called.add(one - 1)
                    for item in items:
                        upper = layers[one - 1]
                        upper.up(item) if isinstance(item, Run) else upper.up_event(item)


class Note(Event):
    """An event of these tests."""

    text: str


class Head:
    """Base of the heads of these tests: each layer has its own kind."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text})"


class Plain:
    """A codec that leaves runs as they are."""

    def __init__(self) -> None:
        self.incoming: list[Run] = []

    def encode(self, me: Address, dest: Address | None, runs: Sequence[Run]) -> list[bytes]:
        return [repr(run.heads).encode() for run in runs]

    def decode(self, frame: bytes | memoryview, me: Address) -> list[Run]:
        return self.incoming


class Scripted(Layer):
    """Base of the layers of these tests: what such a layer leaves depends on its number, on the seed and on how often
    it was called."""

    seed: ClassVar[int] = 0
    number: ClassVar[int] = 0
    kinds: ClassVar[tuple[type, ...]] = ()

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.rng = random.Random(f"{self.seed}/{self.number}")
        self.words = 12
        self.calls: list[str] = []
        self.wake = self.rng.choice((NEVER, 3))

    def handle(self, item: Run | Event, onward: list[Run | Event]) -> None:
        """A call: leave some things, pass `item` on or keep it, leave some more."""
        self.talk(repr(item))
        if self.rng.random() < 0.9:
            onward.append(item)
        self.talk("after")

    def talk(self, call: str) -> None:
        self.calls.append(call)
        while self.words and self.rng.random() < 0.4:
            self.words -= 1
            text = f"{self.number}.{self.words}"
            (self.above, self.below)[self.rng.randrange(2)].append(self.said(text))
        if self.rng.random() < 0.2:
            self.env.record(f"layer {self.number}", call=len(self.calls))

    def said(self, text: str) -> Run | Event:
        kind = self.rng.randrange(6)
        if kind < 3:
            return Run(A, self.rng.choice((None, B, C)), (self.rng.choice(self.kinds)(text),))
        return Note(text) if kind < 5 else Announce(True)


def handled(method: str, upward: bool) -> object:
    def call(self: Scripted, item: Run | Event) -> None:
        if method == "up" and self.own_heads_only:
            assert isinstance(item, Run)
            if not item.heads or type(item.heads[-1]) not in self.heads:
                self.above.append(item)
                return
        self.handle(item, self.above if upward else self.below)

    return call


def rises(self: Scripted, run: Run) -> Run | None:
    """As `up` above, and the run that is passed on goes behind all that the layer leaves."""
    if self.own_heads_only and (not run.heads or type(run.heads[-1]) not in self.heads):
        return run
    self.talk(repr(run))
    return run if self.rng.random() < 0.9 else None


def only_notes(self: Scripted, event: Event) -> None:
    """As `down_event` above, of a layer that handles events of one kind."""
    if isinstance(event, Note):
        self.handle(event, self.below)
    else:
        self.below.append(event)


def ends_or_wakes(self: Scripted) -> None:
    self.talk("turn or timer")
    self.wake = self.rng.choice((NEVER, self.env.now + 2))


HANDLED = {
    "up": handled("up", True),
    "down": handled("down", False),
    "up_event": handled("up_event", True),
    "down_event": handled("down_event", False),
    "end_turn": ends_or_wakes,
}
PASSING = {"rise": rises, "down_event": only_notes, "events_down": (Note,)}
SHAPES = st.tuples(st.sets(st.sampled_from([*sorted(HANDLED), "passes"])), st.booleans())
CALLS = st.lists(st.sampled_from(["receive", "happened", "asked", "advance", "top", "end_turn"]), max_size=8)


def layers_of(seed: int, shapes: Sequence[tuple[set[str], bool]]) -> list[type[Scripted]]:
    kinds = tuple(type(f"Head{number}", (Head,), {}) for number in range(len(shapes)))
    return [
        type(
            f"Layer{number}",
            (PassingLayer, Scripted) if "passes" in methods else (Scripted,),
            {
                **{
                    name: HANDLED[name]
                    for name in sorted(methods - {"passes", "up"} if "passes" in methods else methods)
                },
                **(PASSING if "passes" in methods else {}),
                "timer": ends_or_wakes,
                "seed": seed,
                "number": number,
                "kinds": kinds,
                "heads": (kinds[number],),
                "own_heads_only": own,
            },
        )
        for number, (methods, own) in enumerate(shapes)
    ]


def played(stack_type: type[Stack], layers: Sequence[type[Scripted]], seed: int, calls: Sequence[str]) -> object:
    """Everything that leaves the stack, turn by turn, and how each layer was called.

    Records are in order for each layer: a run that goes past a layer may reach the next one, which writes a record,
    before the event ahead of it made the layer in between write one.
    """
    env = Env(A, 0, random.Random(1), Config(), journaling=True)
    codec = Plain()
    stack = stack_type(env, [layer(env) for layer in layers], codec)
    chance = random.Random(seed)
    view = AgreedView(ViewId(1, A), (A, B, C), {A: "a", B: "b", C: "c"})
    stack.asked(NewView(view, None, (A,), (A, B, C), (), True, {}), 0)
    outputs: list[Output] = []
    for now, call in enumerate([*calls, "end_turn"], 1):
        if call == "receive":
            kinds = layers[0].kinds
            codec.incoming = [Run(B, A, tuple(kind(f"{now}") for kind in chance.sample(kinds, 1))) for _ in range(4)]
            stack.receive(b"", now)
        elif call == "happened":
            stack.happened(Note(f"happened {now}"), now)
        elif call == "asked":
            stack.asked(chance.choice((Note(f"asked {now}"), Find())), now)
        elif call == "advance":
            stack.advance(now)
        elif call == "top":
            stack.layers[0].below.append(Run(A, chance.choice((None, B)), (f"said {now}",)))
        else:
            output = stack.end_turn(now)
            outputs.append(output._replace(records=sorted(output.records, key=itemgetter(0))))
    handled_by = [[*layer.calls] for layer in stack.layers if isinstance(layer, Scripted)]
    return repr(outputs), handled_by, stack.wake()


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 1 << 32), st.lists(SHAPES, min_size=1, max_size=6), CALLS)
def test_the_stack_does_what_a_naive_one_does(seed: int, shapes: list[tuple[set[str], bool]], calls: list[str]) -> None:
    layers = layers_of(seed, shapes)
    assert played(Stack, layers, seed, calls) == played(NaiveStack, layers, seed, calls)
