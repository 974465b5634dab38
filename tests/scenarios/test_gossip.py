"""Gossip groups in the simulator, with real stacks: nothing is missed while messages are held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.sim import Weather, scenario
from pygroups.sim.scenarios.group import ScenarioGroup

QUICK = {
    "heartbeat": 100 * MILLISECOND,
    "heartbeat_timeout": 2 * SECOND,
    "desired_avg_gossip": 50 * MILLISECOND,
    "gossip_retry": 50 * MILLISECOND,
}


def test_M41_nothing_is_purged_that_a_member_lacks() -> None:
    loses = Weather(delay=200, jitter=200, loss=0.3)
    slow = {"gossip_retry": 3 * SECOND, "desired_avg_gossip": 20 * MILLISECOND, "subset": 1_000, "lag": 1}
    with scenario("A B C", profile="gossip", weather=loses, formed=False, seed=41, **QUICK | slow) as group:
        group.start("A B C")
        group.until(lambda: all(len(group[name].view) == 3 for name in "ABC"), 60)
        for name in "ABC":
            group[name].sends(200, every=0.01)
        for name in "ABC":
            for other in "ABC":
                group.until(lambda n=name, o=other: group[n].delivered_from(o)[-1:] == [200], 60)  # type: ignore[misc]
        group.after(10)
        assert sum([group[name].counters["messages given up"] for name in "ABC"]) == 0
        assert sum([group[name].counters["runs sent again"] for name in "ABC"]) > 100
        assert sum([group[name].counters["runs purged"] for name in "ABC"]) > 100


def _after_a_cut(**config: int) -> list[int]:
    """The messages of A that D delivers, and those that it gives up: D is cut off for longer than others keep them."""
    with scenario("A B C D", profile="gossip", gossip_keep=1 * SECOND, **config, **QUICK) as group:
        group.cut("D", "A B C")
        group["A"].sends(100, every=0.05)
        group.after(10)
        group.heal()
        group.until(lambda: group["D"].view == group["A"].view, 20)
        group["A"].sends(1)
        group.until(lambda: group["D"].delivered_from("A")[-1:] == [101], 30)
        assert group["B"].delivered_from("A") == [*range(1, 102)]
        return [len(group["D"].delivered_from("A")), group["D"].counters["messages given up"]]


def test_a_member_gives_up_messages_that_nobody_keeps() -> None:
    delivered, given_up = _after_a_cut()
    assert delivered + given_up == 101 and given_up > 50


def test_a_late_join_handler_has_them_still() -> None:
    assert _after_a_cut(late_join_handler=1) == [101, 0]


def test_GS4_messages_above_the_rate_are_sent_later() -> None:
    with scenario("A B C", profile="gossip", gossip_rate=4_000, gossip_burst=1_000, **QUICK) as group:
        group["A"].sends(100, every=0.005, size=100)
        group.after(0.6)
        sent = len(group["A"].delivered)
        assert 0 < sent < 100, "a hundred messages are ten kilobytes"
        group.until(lambda: group["C"].delivered_from("A")[-1:] == [100], 20)


def test_GS6_a_member_without_the_last_view_gets_it_soon() -> None:
    """Heartbeats name the views: no merge is needed, and its question would come much later."""
    with scenario("A B C", profile="gossip", merge_interval=60 * SECOND, **QUICK) as group:
        lost = group.drop("hints.Announce", dest="C", count=1)
        group.start("D")
        group.until(lambda: group["D"].view == group["A"].view == tuple("ABCD"), 5)
        assert lost.hits and group["C"].view == tuple("ABC")
        group.until(lambda: group["C"].view == tuple("ABCD"), 3)
        assert group["C"].counters["merged views"] == 0


def test_GS7_a_joiner_that_cannot_be_reached_changes_no_view() -> None:
    """It is heard, and hears nobody: it would come and go in view after view."""
    with scenario("A B C", profile="gossip", **QUICK) as group:
        group.cut("A B C", "D", way="out")
        group.start("D")
        before = group["A"].view_id
        group.after(15)
        assert group["A"].view_id == before
        group.heal()
        group.until(lambda: set(group["A"].view) == set("ABCD"), 20)


@pytest.mark.parametrize("seed", range(5))
def test_GS11_all_have_the_last_message_of_a_member_that_crashed(seed: int) -> None:
    """Each of them has it, or announces a gap: the gossips go on to name the member that is out of the view."""
    loses = Weather(delay=200, jitter=200, loss=0.4)
    with scenario("A B C D E F", profile="gossip", weather=loses, formed=False, seed=seed, **QUICK) as group:
        group.start("A B C D E F")
        group.until(lambda: all(len(group[name].view) == 6 for name in "ABCDEF"), 60)
        for name in "EF":
            group[name].sends(3, every=0.001)
            group.after(0.003)
            group.crash(name)
        group.until(lambda: all(set(group[name].view) == set("ABCD") for name in "ABCD"), 30)
        group.after(10)
        for name in "EF":
            ends = {len(group[other].delivered_from(name)) for other in "ABCD"}
            assert len(ends) == 1, "nobody has forgotten it yet, so there are no gaps"


@pytest.mark.slow
def test_members_that_were_cut_off_come_back_although_links_lose_frames() -> None:
    """With 50 members and a loss of 10 %, at each moment some pair has not heard each other lately."""
    with _large_group(seed=1) as (group, names):
        cut_off, crashed = names[2:7], names[7:17]
        for name in cut_off:
            group.cut(name, " ".join([other for other in names if other != name]))
        for name in crashed:
            group.crash(name)
            group.after(0.3)
        group.after(20)
        assert set(cut_off).isdisjoint(group["M00"].view)
        group.heal()
        left = [name for name in names if name not in crashed]
        group.until(lambda: all(set(group[name].view) == set(left) for name in left), 30, 0.1)


def test_paused_members_are_admitted_again_without_a_merge() -> None:
    with _large_group(members=24) as (group, names):
        paused = names[2:5]
        for name in paused:
            group.pause(name)
        group.after(20)
        assert set(paused).isdisjoint(group["M00"].view)
        for name in paused:
            group.resume(name)
        group.until(lambda: all(set(group[name].view) == set(names) for name in names), 3, 0.1)
        assert sum([group[name].counters["merges begun"] for name in names]) == 0


def test_a_member_that_the_others_left_out_is_admitted_again_without_a_merge() -> None:
    """It hears that most of its view went on without it, although it was not paused."""
    with _large_group(members=24) as (group, names):
        group.cut("M02", " ".join([name for name in names if name != "M02"]), way="out")
        group.until(lambda: "M02" not in group["M00"].view, 20, 0.1)
        group.after(2)
        assert len(group["M02"].view) == 24
        group.mend("M02", " ".join([name for name in names if name != "M02"]))
        group.until(lambda: all(set(group[name].view) == set(names) for name in names), 2, 0.1)
        assert sum([group[name].counters["merges begun"] for name in names]) == 0


@contextmanager
def _large_group(members: int = 50, seed: int = 1) -> Iterator[tuple[ScenarioGroup, list[str]]]:
    """Members with the default settings, all in one view, in a network that loses a tenth of the frames."""
    names = [f"M{number:02}" for number in range(members)]
    loses = Weather(delay=200, jitter=200, loss=0.1)
    with scenario(" ".join(names), profile="gossip", weather=loses, formed=False, seed=seed) as group:
        group.start(" ".join(names))
        group.until(lambda: all(len(group[name].view) == members for name in names), 60, 0.1)
        yield group, names
