"""FLOW_CONTROL by hand, and with STABLE and NAKACK below the real top.  The conversations: text/flow_control."""

from __future__ import annotations

import random

import pytest

from pygroups.core.address import Address
from pygroups.core.events import Consumed, Excluded, Freed, NewView, Stability, Stop
from pygroups.core.layer import Env
from pygroups.core.limits import SECOND, Config
from pygroups.core.run import Run, pack
from pygroups.core.view import AgreedView, Ballot, ViewId
from pygroups.layers.flow_control.layer import FlowControl, Read, ReadReq
from tests.layers.streams_world import Network, World

A, B = (Address(name, f"{number:016x}") for number, name in enumerate("AB", 1))


EMPTY = {"window_bytes": 0, "unicast_bytes": 0}


def layer() -> FlowControl:
    return FlowControl(Env(A, 0, random.Random(1), Config(run_bytes=4_096, window=4_096)))


def run_of(first: int, count: int, dest: Address | None = None) -> Run:
    return Run(A, dest, (), A, first, 0, count, pack([b"x"] * count))


def stability(delivered: int, consumed: int) -> Stability:
    return Stability({}, {}, delivered, consumed)


def test_runs_leave_the_window_whole_and_in_order() -> None:
    flow_control = layer()
    sizes = []
    for first, count in ((1, 3), (4, 1), (5, 10)):
        run = run_of(first, count)
        sizes.append(len(run.body))
        flow_control.down(run)
        assert flow_control.below.pop() is run
    assert flow_control.gauges() == {"window_bytes": sum(sizes), "unicast_bytes": 0}
    flow_control.up_event(stability(15, 4))
    assert flow_control.above == [stability(15, 4), Freed(sizes[0])]
    flow_control.above.clear()
    flow_control.up_event(stability(15, 14))  # the last one is consumed but for one message
    assert flow_control.above == [stability(15, 14), Freed(sizes[0] + sizes[1])]
    flow_control.above.clear()
    flow_control.up_event(stability(15, 14))
    assert flow_control.above == [stability(15, 14)], "nothing new, nothing said"
    flow_control.up_event(stability(15, 15))
    assert flow_control.gauges() == EMPTY


def test_a_joiner_answers_all_members_whose_messages_it_read_before_its_first_view() -> None:
    """They are all outside its view then, however few outsiders it otherwise has connections with."""
    joiner = FlowControl(Env(A, 0, random.Random(1), Config(unicast_peers_max=1)))
    senders = [Address(name, "0" * 16) for name in "BCDE"]
    joiner.down_event(Consumed({}, dict.fromkeys(senders, 2)))
    members = (A, *senders)
    view = AgreedView(ViewId(2, senders[0]), members, ("",) * len(members))
    joiner.up_event(NewView(view, None, (A,), members, (), True, None))
    for sender in senders:
        joiner.on_read_req(ReadReq(2), sender)
    sent = [item for item in joiner.below if isinstance(item, Run)]
    assert [(run.dest, run.head) for run in sent] == [(sender, Read(2)) for sender in senders]


def test_a_message_in_pieces_is_in_the_window_once_however_often_it_is_sent() -> None:
    """With its last piece; a view change may drop all pieces before or after that one, and they come again."""
    flow_control = layer()
    pieces = [Run(A, None, (), A, 1, index, 1 if index == 3 else 0, bytes(10)) for index in (1, 2, 3)]
    for piece in [*pieces[:2], *pieces, *pieces]:
        flow_control.down(piece)
    assert flow_control.gauges() == {"window_bytes": 30, "unicast_bytes": 0}
    flow_control.up_event(stability(2, 2))
    assert flow_control.above == [stability(2, 2), Freed(30)]


def test_what_was_only_delivered_stays_in_the_window() -> None:
    flow_control = layer()
    flow_control.down(run_of(1, 1))
    flow_control.up_event(stability(2, 1))
    assert flow_control.gauges() != EMPTY


def test_unicasts_and_runs_without_payload_are_not_in_it() -> None:
    flow_control = layer()
    for run in (run_of(1, 1, dest=B), Run(A, None, ("a head of another layer",))):
        flow_control.down(run)
        assert flow_control.below.pop() is run
    assert flow_control.gauges() == EMPTY


def test_who_is_out_holds_nothing() -> None:
    flow_control = layer()
    flow_control.down(run_of(1, 1))
    flow_control.up_event(Excluded("left", ""))
    assert flow_control.gauges() == EMPTY


# -- with the layers below


def test_a_sender_has_no_more_than_a_window_that_not_all_have_consumed() -> None:
    window = 10_000
    world = World("ABC", config=Config(window=window, run_bytes=1_000))
    world.install("ABC", 1)
    world["C"].consumes = False
    world["A"].outbox.extend(b"%0200d" % number for number in range(1_000))
    world.end_turn(world["A"])
    world.run(10 * SECOND)
    assert world["A"].top.room() < 205, "it has sent what it may"
    assert sum(map(len, world["C"].delivered["A"])) <= window
    assert len(world["B"].delivered["A"]) == len(world["C"].delivered["A"])
    world["C"].consumes = True
    world.end_turn(world["C"])
    world.settle()
    for process in world.members.values():
        assert process.numbers("A") == list(range(1_000))
        assert process.held() == {}


@pytest.mark.parametrize("senders", ["A", "D", "ABCD"])
def test_stability_does_not_throttle_a_sender_at_full_speed(senders: str) -> None:
    """5 MB each with a window of 1 MiB and 0.2 ms between members: no period may stand between two windows."""
    world = World("ABCD", network=Network(delay_min=200, delay_max=200))
    world.install("ABCD", 1)
    world.run(SECOND)
    begin = world.now
    for name in senders:
        world[name].outbox.extend([b"%01000d" % 0] * 5_000)
    for name in senders:
        world.end_turn(world[name])
    while any(len(world["B"].delivered.get(name, [])) < 5_000 for name in senders):
        world.run(world.now + 100)
        assert world.now - begin < SECOND // 10


def test_a_view_of_one_frees_what_it_delivered() -> None:
    world = World("A", config=Config(window=10_000, run_bytes=1_000))
    world.install("A", 1)
    world["A"].outbox.extend(b"%0200d" % number for number in range(1_000))
    world.end_turn(world["A"])
    world.settle()
    assert world["A"].numbers("A") == list(range(1_000))
    assert world["A"].held() == {}


def test_a_view_that_changes_under_load_loses_no_bytes_of_the_window() -> None:
    world = World("AB", config=Config(window=10_000, run_bytes=1_000))
    world.install("AB", 1)
    world["A"].outbox.extend(b"%0200d" % number for number in range(500))
    world.end_turn(world["A"])
    world.settle()
    members = tuple(world[name].address for name in "AB")
    for number in range(2, 6):
        for name in "AB":
            world.happened(name, Stop(Ballot(number, members[0])))
        for name in "AB":
            world.install_at(name, AgreedView(ViewId(number, members[0]), members, ("A", "B")))
        world["A"].outbox.extend(b"%0200d" % n for n in range(500 * (number - 1), 500 * number))
        world.end_turn(world["A"])
        world.settle()
    assert world["A"].top.cut_bytes == world["A"].top.freed_bytes
    assert world["B"].numbers("A") == list(range(2_500))
