"""FAILURE under chance and in numbers; the conversations themselves stand in text/failure/."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.driver_events import Disconnect, Probe
from pygroups.core.events import Event, NewView
from pygroups.core.layer import Env
from pygroups.core.limits import MILLISECOND, SECOND, Config
from pygroups.core.run import Run
from pygroups.core.suspicion_events import Heard, Silent, VerifyLife
from pygroups.core.view import AgreedView, ViewId
from pygroups.layers.failure.layer import Failure, Heartbeat

A, B, C = (Address(name, "01") for name in "ABC")
TIMEOUT, HEARTBEAT = Config().heartbeat_timeout, Config().heartbeat


def view(number: int, *members: Address, left: tuple[Address, ...] = ()) -> NewView:
    made = AgreedView(ViewId(number, members[0]), members, tuple(member.name for member in members))
    return NewView(made, None, members, (), left, True, None)


def failure(*members: Address, config: Config | None = None) -> Failure:
    layer = Failure(Env(A, 0, random.Random(1), config or Config()))
    layer.down_event(view(1, *members))
    return layer


def told(layer: Failure) -> list[Event]:
    items, layer.above, layer.below = layer.above, [], []
    return [item for item in items if isinstance(item, Event)]


def fire(layer: Failure, late: int = 0) -> list[Event]:
    """The timer comes when it was set for, or later."""
    layer.env.now = max(layer.env.now, layer.wake) + late
    layer.timer()
    assert layer.wake > layer.env.now
    return told(layer)


def test_without_a_sign_of_life_a_member_is_silent_after_exactly_the_timeout() -> None:
    layer = failure(A, B)
    while not (events := fire(layer)):
        assert layer.env.now < TIMEOUT
    assert (events, layer.env.now) == ([Silent(B)], TIMEOUT)


@pytest.mark.parametrize("late", [HEARTBEAT // 2, 5 * SECOND, 3_600 * SECOND])
def test_who_was_late_itself_gives_everybody_a_whole_timeout(late: int) -> None:
    layer = failure(A, B)
    for _ in range(4):
        fire(layer)
    assert fire(layer, late) == []
    woke = layer.env.now
    while not (events := fire(layer)):
        assert layer.env.now < woke + TIMEOUT
    assert (events, layer.env.now) == ([Silent(B)], woke + TIMEOUT)


@given(st.lists(st.integers(0, 400 * MILLISECOND), min_size=1, max_size=30))
def test_a_member_that_is_always_a_little_late_accuses_later_and_never_earlier(lateness: list[int]) -> None:
    layer = failure(A, B)
    for late in lateness:
        if events := fire(layer, late):
            assert (events, layer.env.now >= TIMEOUT + late) == ([Silent(B)], True)
            return


STEP = st.tuples(st.sampled_from(["fire", "fire", "late", "B", "C", "other"]), st.integers(0, 3 * SECOND))


@settings(max_examples=300)
@given(st.lists(STEP, max_size=60))
def test_nobody_is_silent_who_was_heard_in_time_and_silence_and_hearing_alternate(steps: list[tuple[str, int]]) -> None:
    layer = failure(A, B, C)
    heard, silent = {B: 0, C: 0}, {B: False, C: False}
    for what, number in steps:
        if what in "BC":
            peer = B if what == "B" else C
            layer.env.now = min(layer.env.now + number, layer.wake)
            layer.up(Run(peer, A, ("anything",)))
            heard[peer] = layer.env.now
            events = told(layer)
            assert events == ([Heard(peer)] if silent[peer] else [])
            silent[peer] = False
            continue
        if what == "other":
            layer.up(Run(Address("X", "02"), None, (Heartbeat(ViewId(1, A)),)))
            assert len(told(layer)) == 1
            continue
        for event in fire(layer, number if what == "late" else 0):
            assert isinstance(event, Silent)
            assert not silent[event.member]
            assert layer.env.now - heard[event.member] >= TIMEOUT
            silent[event.member] = True


def test_heartbeats_go_on_at_their_pace_across_views() -> None:
    layer = failure(A, B)
    beats = []
    while layer.env.now < 10 * SECOND:
        layer.env.now = layer.wake
        layer.timer()
        beats += [layer.env.now for item in layer.below if isinstance(item, Run)]
        told(layer)
        layer.up(Run(B, A, ("anything",)))
        layer.down_event(view(layer.env.now, A, B))
    assert beats == [n * HEARTBEAT for n in range(1, 11)]


def test_who_comes_back_before_its_connection_was_dropped_keeps_it() -> None:
    layer = failure(A, B)
    layer.down_event(view(2, A, left=(B,)))
    layer.env.now = 2 * SECOND
    layer.down_event(view(3, A, B))
    layer.below.clear()
    while layer.env.now < 30 * SECOND:
        layer.env.now = layer.wake
        layer.timer()
        layer.up(Run(B, A, ("anything",)))
    assert not [item for item in layer.below if isinstance(item, Disconnect)]


def test_questions_about_lives_are_bounded_and_the_newest_are_kept() -> None:
    layer = failure(A, config=Config(unicast_peers_max=3))
    for n in range(5):
        layer.down_event(VerifyLife(Address("X", f"{n:02x}")))
    assert [item for item in layer.below if isinstance(item, Probe)] == [Probe(Address("X", f"0{n}")) for n in range(5)]
    assert [peer.incarnation for peer in layer.asked] == ["02", "03", "04"]
