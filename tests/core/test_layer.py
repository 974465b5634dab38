"""A layer's view of the world, and what it may say; and that every event says which way it goes."""

from __future__ import annotations

import random

import pytest

from pygroups.core import events, suspicion_events
from pygroups.core.address import Address
from pygroups.core.events import Event
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import Config
from pygroups.core.run import Run

A, B = Address("A", "0" * 16), Address("B", "0" * 16)


def an_env(*, journaling: bool = False) -> Env:
    return Env(A, 0, random.Random(1), Config(), journaling=journaling)


def test_drops_are_counted_for_life_and_written_down_once() -> None:
    env = an_env(journaling=True)
    env.drop("old view")
    env.drop("old view", 2)
    env.drop("checksum")
    env.record_drops()
    assert [fields for _, _, fields in env.records] == [
        {"reason": "old view", "detail": "3"},
        {"reason": "checksum", "detail": "1"},
    ]
    env.record_drops()
    assert len(env.records) == 2
    assert env.counters == {"drop old view": 3, "drop checksum": 1}


def test_drops_are_counted_without_a_journal_too() -> None:
    env = an_env()
    env.drop("old view")
    env.record_drops()
    assert (env.records, env.drops, env.counters) == ([], {}, {"drop old view": 1})


def test_counters_add_up() -> None:
    env = an_env()
    env.count("runs sent again")
    env.count("runs sent again", 4)
    assert env.counters == {"runs sent again": 5}


def test_a_layer_passes_on_what_is_not_its_own() -> None:
    layer, run, event = Layer(an_env()), Run(A, B), Event()
    layer.down(run)
    layer.down_event(event)
    layer.up(run)
    layer.up_event(event)
    assert (layer.below, layer.above) == ([run, event], [run, event])
    assert layer.gauges() == {} and layer.wake == NEVER


def test_a_word_is_a_run_without_payload() -> None:
    layer = Layer(an_env())
    layer.tell(B, "head")
    layer.tell(None, "to all")
    one, to_all = layer.below
    assert isinstance(one, Run) and isinstance(to_all, Run)
    assert (one.src, one.dest, one.heads, one.count, one.origin, one.body) == (A, B, ("head",), 0, None, b"")
    assert to_all.dest is None


EVENTS = [
    cls
    for module in (events, suspicion_events)
    for cls in vars(module).values()
    if isinstance(cls, type) and issubclass(cls, Event) and cls is not Event
]


@pytest.mark.parametrize("cls", EVENTS, ids=lambda cls: cls.__name__)
def test_an_event_says_which_way_it_goes_and_who_sends_it(cls: type) -> None:
    assert (cls.__doc__ or "").startswith(("Up, ", "Down, ", "Down: ", "Up and down from ")), cls.__doc__
