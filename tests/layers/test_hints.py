"""HINTS: views that a leader announces and nobody waits for."""

from __future__ import annotations

from random import Random

import pytest

from pygroups.core.address import Address
from pygroups.core.layer import Env, Layer
from pygroups.core.limits import MILLISECOND, SECOND, Config
from pygroups.core.view import AgreedView, ViewId
from pygroups.layers.hints import decide
from pygroups.layers.hints.heads import Announce, SideOf
from pygroups.layers.hints.leading import Changes
from pygroups.sim import scenario
from tests.wire.group import Group, Process

A, B, C, D = (Address(name, f"{number:016x}") for number, name in enumerate("ABCD", 1))


QUICK = {
    "heartbeat": 100 * MILLISECOND,
    "heartbeat_timeout": 400 * MILLISECOND,
    "verify_timeout": 100 * MILLISECOND,
    "merge_interval": 200 * MILLISECOND,
    "desired_avg_gossip": 100 * MILLISECOND,
}


def view(number: int, *members: Address, leader: Address = A) -> AgreedView:
    return AgreedView(ViewId(number, leader), members, tuple([f"{m.name}:1" for m in members]), "", (1,) * len(members))


# -- decisions


def test_the_next_view_keeps_the_order_and_ends_with_the_joiners() -> None:
    next = decide.next_view(view(1, A, B, C), ViewId(2, A), {B: None}, {D: "d:1", C: "c:1"})
    assert next is not None
    assert next.members == (A, C, D) and next.contacts == ("A:1", "C:1", "d:1") and next.since == (1, 1, 2)
    assert decide.next_view(view(1, A), ViewId(2, A), {A: None}, {}) is None


@pytest.mark.parametrize(
    ("old", "out", "joiners"),
    [((A, B, C), {B: None}, {D: "d:1"}), ((A, B), {}, {C: "c:1", D: "d:1"}), ((A, B, C), {A: None}, {})],
)
def test_a_view_comes_back_from_its_difference(
    old: tuple[Address, ...], out: dict[Address, None], joiners: dict[Address, str]
) -> None:
    before = view(1, *old)
    after = decide.next_view(before, ViewId(2, A), out, joiners)
    assert after is not None
    assert decide.announced(before, decide.difference(before, after, primary=True)) == after


def test_an_impossible_difference_is_no_view() -> None:
    assert decide.announced(view(1, A, B), Announce(ViewId(2, A), ViewId(1, A), [2], {}, True)) is None
    assert decide.subgroups(view(1, A, B), (SideOf(ViewId(1, A), [2]),)) is None


@pytest.mark.parametrize(
    ("before", "members", "primary"),
    [((A, B, C), (A, B), True), ((A, B, C), (C,), False), ((A, B), (A,), True), ((A, B), (B,), False)],
)
def test_more_than_half_or_half_with_the_first_is_primary(
    before: tuple[Address, ...], members: tuple[Address, ...], primary: bool
) -> None:
    assert decide.is_primary(before, members) is primary


def test_the_union_of_a_merge_is_sorted_and_names_its_sides() -> None:
    sides = [(view(3, D, B), (D, B)), (view(5, C, A, leader=C), (C, A))]
    merged = decide.union(ViewId(6, A), sides)
    assert merged.members == (A, B, C, D)
    groups = decide.subgroups(merged, decide.sides_of(merged, sides))
    assert groups is not None
    assert [(side.view.number, side.members) for side in groups] == [(3, (D, B)), (5, (C, A))]
    event = decide.change(view(3, D, B), merged, primary=True, sides=groups)
    assert event.transitional == (B, D) and event.joined == (A, C) and event.left == ()


# -- real stacks


def views_of(group: Group) -> list[tuple[str, ...]]:
    """The members of the view of each process, by name."""
    found = []
    for process in group.processes.values():
        hints = next(layer for layer in process.stack.layers if "MEMBERSHIP" in layer.gives)
        found.append(tuple([member.name for member in hints.view.members]))  # type: ignore[attr-defined]
    return found


def test_1_joiners_are_admitted_and_all_have_one_view() -> None:
    found = views_of(Group("ABCD", profile="gossip"))
    assert found == [("A", "B", "C", "D")] * 4


def test_2_a_process_that_ends_is_left_out() -> None:
    world = Group("ABCD", profile="gossip")
    world.lose(world.processes[next(one for one in world.processes if one.name == "C")])
    world.run(2 * SECOND)
    assert views_of(world) == [("A", "B", "D")] * 3


def test_3_the_next_member_leads_if_the_leader_ends() -> None:
    world = Group("ABC", profile="gossip")
    world.lose(world.processes[next(one for one in world.processes if one.name == "A")])
    world.run(2 * SECOND)
    assert views_of(world) == [("B", "C")] * 2


def test_4_a_lost_announcement_is_repaired_by_the_heartbeats() -> None:
    lost: list[bytes] = []

    def tap(sender: Address, receiver: Process, frame: bytes) -> list[bytes]:
        if sender.name == "A" and receiver.address.name == "B" and deaf:
            lost.append(frame)
            return []
        return [frame]

    deaf: list[bool] = []
    world = Group("ABC", profile="gossip", tap=tap)
    deaf.append(True)
    world.join("D")
    world.run(100 * MILLISECOND)
    deaf.clear()
    world.run(4 * SECOND)
    assert lost and views_of(world) == [("A", "B", "C", "D")] * 4


def test_an_accused_member_that_is_far_is_left_out_once_only() -> None:
    """Its answer takes ten times as long as `verify_timeout`, and one other member never hears it."""
    env = Env(A, 0, Random(1), Config())
    changes, slow = Changes(Layer(env)), 10 * env.config.verify_timeout
    ended = []
    for _ in range(20):
        changes.accuse(B)
        accused = env.now
        env.now += env.config.verify_timeout
        changes.look()
        env.now = accused + slow
        changes.look()
        ended.append(B in changes.ended)
        changes.answered(B)
    assert ended == [True] + [False] * 19


# -- the simulator


def test_5_two_sides_of_a_split_become_one_view() -> None:
    with scenario("A B C D E", profile="gossip", **QUICK) as group:
        group.cut("A B", "C D E")
        group.until(lambda: group["D"].view == ("C", "D", "E"), 10)
        group["D"].sends(3)
        group["A"].sends(3)
        group.after(0.2)
        group.heal()
        group.until(lambda: all(group[name].view == tuple("ABCDE") for name in "ABCDE"), 20)
        group.until(lambda: group["B"].delivered_from("D") == [1, 2, 3], 10)
        group.until(lambda: group["E"].delivered_from("A") == [1, 2, 3], 10)


def test_6_a_name_that_lives_is_refused() -> None:
    with scenario("A B C", profile="gossip", **QUICK) as group:
        world = group["A"].member.world
        beside = world.start_beside("B", stranger=False)  # type: ignore[attr-defined]
        group.until(lambda: bool(beside.ended), 5)
        assert beside.ended == "name taken"
        assert group["C"].view == ("A", "B", "C")


def test_7_a_process_that_starts_again_replaces_the_one_that_ended() -> None:
    with scenario("A B C", profile="gossip", **QUICK) as group:
        before = group["B"].address
        group.crash("B")
        group.start("B")
        group.until(lambda: sorted(group["A"].view) == ["A", "B", "C"] and group["B"].view == group["A"].view, 10)
        assert group["B"].address != before


def test_8_a_paused_member_is_left_out_and_comes_back() -> None:
    with scenario("A B C D", profile="gossip", **QUICK) as group:
        group.pause("C")
        group.until(lambda: group["A"].view == ("A", "B", "D"), 10)
        group["A"].sends(5)
        group.after(1)
        group.resume("C")
        group.until(lambda: all(group[name].view == tuple("ABDC") for name in "ABCD"), 20)
        group.until(lambda: group["C"].delivered_from("A") == [1, 2, 3, 4, 5], 10)


def test_9_a_leader_leaves_and_nobody_waits() -> None:
    with scenario("A B C", profile="gossip", **QUICK) as group:
        group["A"].sends(3)
        group.after(0.1)
        group.leave("A")
        group.until(lambda: group["B"].view == group["C"].view == ("B", "C"), 5)
        group.until(lambda: group["A"].ended == "left", 5)
        assert group["B"].delivered_from("A") == [1, 2, 3]
