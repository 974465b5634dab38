"""Tracing: nothing of it is in the way of a stack without it; a traced stack moves the same items and reports each."""

from __future__ import annotations

import inspect
import logging
import random
import sys
from collections import Counter
from typing import Any

import pytest

from pygroups.channel import tracing
from pygroups.core.address import Address
from pygroups.core.events import Consumed
from pygroups.core.layer import Env
from pygroups.core.limits import Config
from pygroups.core.run import Run, pack
from pygroups.core.stack import Stack
from pygroups.core.top import Delivered
from pygroups.core.trace import Crossing, TracedStack
from pygroups.layers.profiles import PROFILES, build_stack
from pygroups.sim.batches.runner import play
from pygroups.sim.schedules.draw import Wish, draw
from pygroups.sim.world.story import Crossed
from pygroups.testing import Group, run
from pygroups.wire.codec import Codec

A, B = Address("A", "a1"), Address("B", "b1")
RUN = Run(B, None, (), A, 17, 0, 3, pack([b"x"] * 3))


def crossing(item: Any, **changes: Any) -> Crossing:
    return Crossing(5, "flush", "stable", False, item)._replace(**changes)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (RUN, "A@a1#17+3 B>*"),
        (RUN.readdressed(B, A), "A@a1#17+3 B>A"),
        (RUN.push(Consumed({})), "A@a1#17+3 B>* Consumed"),
        (Run(B, A, (Consumed({}),)), "B>A Consumed"),
        (Run(B, None, (), A, 17, 2, 0), "A@a1#17.2+0 B>*"),
        (Consumed({}), "Consumed"),
        (Delivered(RUN, None, 0), "Delivered A@a1#17+3"),
    ],
)
def test_an_item_is_told_by_its_identity_its_way_and_its_heads(item: Any, text: str) -> None:
    assert str(crossing(item)).split(maxsplit=4) == ["down", "flush", ">", "stable", text]
    assert str(crossing(item, is_up=True)).startswith("up ")


def test_a_message_is_found_in_each_run_that_carries_it() -> None:
    assert [number for number in range(30) if crossing(RUN).carries("A", number)] == [17, 18, 19]
    assert crossing(RUN).carries("A@a1", 18) and not crossing(RUN).carries("A@a2", 18)
    assert crossing(Delivered(RUN, None, 0)).carries("A", 17)
    assert crossing(Run(B, None, (), A, 17, 2, 0)).carries("A", 17)  # a piece
    assert not crossing(Run(B, A, (Consumed({}),))).carries("B", 0)
    assert not crossing(Consumed({})).carries("A", 17)


class Told(Exception):
    """A text was made of a thing that nobody traces."""


def test_without_a_trace_no_code_of_it_runs_and_no_text_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: no call into the module, and no text of any run, head, event or address, in a group that works."""

    def tell(item: object) -> str:
        raise Told(type(item).__name__)

    trace_file, calls = inspect.getfile(TracedStack), Counter[str]()

    def profile(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == trace_file:
            calls[frame.f_code.co_name] += 1

    monkeypatch.setattr(Run, "__repr__", tell)
    monkeypatch.setattr(Crossing, "__str__", tell)
    schedule = draw(3, Wish("total", faults=("loss",)))
    sys.setprofile(profile)
    try:
        outcome = play(schedule)
    finally:
        sys.setprofile(None)
    assert outcome.witness is None and outcome.counts["deliveries"] > 100
    assert calls == {}


def stack_of(trace: Any) -> Stack:
    env = Env(A, 0, random.Random(1), Config())
    return build_stack(PROFILES["total"], env, lambda heads: Codec("g", heads), trace)


def test_a_stack_without_a_trace_is_the_plain_one() -> None:
    plain = stack_of(None)
    assert type(plain) is Stack
    assert plain._places == [*plain.layers, plain.outlet]
    assert type(stack_of(lambda crossing: None)) is TracedStack


@pytest.mark.parametrize("profile", ["total", "fifo"])
@pytest.mark.parametrize("seed", [2, 6])
def test_a_traced_world_tells_the_same_story(profile: str, seed: int) -> None:
    schedule, plain, traced = draw(seed, Wish(profile)), [], []

    class Story:
        def __init__(self, lines: list[Any]) -> None:
            self.lines = lines

        def hear(self, now: int, who: str, what: Any) -> None:
            if not isinstance(what, Crossed):
                self.lines.append((now, who, repr(what)))

    one = play(schedule, story=Story(plain))
    other = play(schedule, story=Story(traced), traced=True)
    assert traced == plain and len(plain) > 20
    assert (other.counts, other.drops) == (one.counts, one.drops)


def test_a_message_passes_each_layer_once_on_its_way_down_and_up() -> None:
    """At its sender down and up again, at each other member up, without a layer left out."""
    layers = ["top", *(layer.__name__.lower() for layer in PROFILES["fifo"].layers)]
    seen: dict[tuple[str, bool], list[str]] = {}

    class Story:
        def hear(self, now: int, who: str, what: Any) -> None:
            if isinstance(what, Crossed) and what.crossing.carries("B", 1) and what.crossing.run.dest is None:
                seen.setdefault((who, what.crossing.is_up), []).append(what.crossing.taker)

    play(draw(4, Wish("fifo", 3, faults=("together",))), story=Story(), traced=True)
    assert seen["B", False] == [*layers[1:], "network"]
    up = [*layers[::-1], "application"]
    assert seen["A", True] == seen["C", True] == up
    assert seen["B", True] == up[up.index("nakack") + 1 :]


# -- in a program


@pytest.fixture
def level() -> Any:
    yield tracing.LOGGER.setLevel
    tracing.LOGGER.setLevel(logging.NOTSET)


def trace_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    async def story(group: Group) -> None:
        async with group.channel("g", name="A") as channel:
            await channel.send(b"x", until="delivered")

    caplog.clear()
    run(story)
    return [record.getMessage() for record in caplog.records if record.name == "pygroups.trace"]


def test_a_program_traces_by_the_level_of_the_logger_itself(level: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)  # of the root: whoever logs everything did not ask for this
    assert trace_lines(caplog) == []
    level(logging.INFO)
    assert trace_lines(caplog) == []
    level(logging.DEBUG)
    lines = trace_lines(caplog)
    assert any(line.split()[1:5] == ["A", "down", "top", ">"] and "#1+1" in line for line in lines)
    assert any(line.endswith("#1+1") and "application    Delivered A@" in line for line in lines)
