"""FRAGMENTATION in a whole stack: payloads larger than a run, through view changes, crashes and leaves."""

from __future__ import annotations

import pytest

from pygroups.sim.scenarios.group import ScenarioGroup, scenario
from tests.scenarios.common import BOTH, QUICK

SMALL = {"run_bytes": 1 << 10, "window": 8 << 10, **QUICK}
LARGE = 100 << 10  # a hundred pieces, of which eight are on their way at once


def sizes(group: ScenarioGroup, at: str, sender: str) -> list[int]:
    """How large the messages are that `at` got of `sender`, in their order."""
    return [len(message.payload) for message in group[at].delivered if message.origin == sender]


def sizes_alone(group: ScenarioGroup, at: str, sender: str) -> list[int]:
    """The same of messages to `at` alone."""
    return [len(message.payload) for message in group[at].received if message.origin == sender]


def all_got(group: ScenarioGroup, names: str, sender: str, wanted: list[int]) -> None:
    group.until(lambda: all(sizes(group, name, sender) == wanted for name in names.split()), within=10)


@BOTH
def test_fragmentation_1_payloads_around_the_limits_arrive_in_order(profile: str) -> None:
    wanted = [20, 1_024, 1_025, 1_033, 1_034, 2_047, 2_048, 2_049, 8 << 10, (8 << 10) + 1, LARGE, 20]
    with scenario("A B C", profile=profile, **SMALL) as group:
        for size in wanted:
            group["B"].sends(1, size=size)
        all_got(group, "A B C", "B", wanted)
        group.settles(5)
        assert group["B"].counters["payloads sent in pieces"] == 8


@BOTH
def test_fragmentation_2_a_join_in_the_middle_starts_the_payload_again(profile: str) -> None:
    with scenario("A B", profile=profile, **SMALL) as group:
        group["B"].sends(1, size=4 * LARGE)
        group["B"].sends(1, size=30)
        group.start("C")
        all_got(group, "A B", "B", [4 * LARGE, 30])
        group.settles(5)
        assert group["B"].counters["payloads sent again from their first piece"] == 1
        assert sizes(group, "C", "B") == [4 * LARGE, 30]


@BOTH
def test_fragmentation_3_the_coordinator_crashes_in_the_middle(profile: str) -> None:
    with scenario("A B C", profile=profile, **SMALL) as group:
        group["B"].sends(1, size=LARGE)
        group["C"].sends(5, size=30)
        group["B"].sends(1, size=30)
        group.after(0.003)
        group.crash("A")
        all_got(group, "B C", "B", [LARGE, 30])
        all_got(group, "B C", "C", [30] * 5)
        assert group["B"].counters["payloads sent again from their first piece"] == 1


@BOTH
def test_fragmentation_4_the_origin_crashes_in_the_middle(profile: str) -> None:
    with scenario("A B C", profile=profile, **SMALL) as group:
        group["B"].sends(1, size=LARGE)
        group.after(0.003)
        group.crash("B")
        group.until(lambda: group["A"].view == group["C"].view == ("A", "C"), within=5)
        group["A"].sends(1, size=LARGE)
        all_got(group, "A C", "A", [LARGE])
        assert sizes(group, "A", "B") == sizes(group, "C", "B") == []
        group.settles(5)


@BOTH
@pytest.mark.parametrize("receiver", ["C", "B"])
def test_fragmentation_5_large_messages_to_one_member_are_in_order_with_small_ones(profile: str, receiver: str) -> None:
    wanted = [30, LARGE, 30, 2_000, LARGE, 30]
    with scenario("A B C", profile=profile, **SMALL) as group:
        for size in wanted:
            group["B"].tells(receiver, 1, size=size)
        group["B"].sends(1, size=40)
        group.until(lambda: sizes_alone(group, receiver, "B") == wanted, within=10)
        all_got(group, "A B C", "B", [40])


@BOTH
def test_fragmentation_6_a_large_message_whose_receiver_crashes_is_reported(profile: str) -> None:
    with scenario("A B C", profile=profile, **SMALL) as group:
        group["B"].tells("C", 1, size=30)
        group["B"].tells("C", 1, size=LARGE)
        group["B"].tells("C", 3, size=30)
        group.after(0.003)
        group.crash("C")
        group.until(lambda: group["B"].view == ("A", "B"), within=5)
        group.until(lambda: not group["B"].holds, within=5)
        assert group["B"].undelivered["C"][-1] == 5
        assert set(group["B"].undelivered["C"]) >= {2, 3, 4, 5}


@BOTH
def test_fragmentation_7_a_leaver_s_large_message_arrives_before_it_goes(profile: str) -> None:
    with scenario("A B C", profile=profile, **SMALL) as group:
        group["B"].tells("C", 1, size=LARGE)
        group.after(0.002)
        assert group["B"].gauges["fragmentation.pieces_to_send"] > 50
        group.leave("B")
        group.until(lambda: sizes_alone(group, "C", "B") == [LARGE], within=5)
        group.until(lambda: group["A"].view == group["C"].view == ("A", "C"), within=5)


@BOTH
def test_fragmentation_8_two_origins_send_large_payloads_at_once(profile: str) -> None:
    with scenario("A B C", profile=profile, **SMALL) as group:
        for name in "ABC":
            group[name].sends(2, size=LARGE)
            group[name].sends(3, size=30)
        for name in "ABC":
            all_got(group, "A B C", name, [LARGE, LARGE, 30, 30, 30])
