"""NAKACK in a whole stack: every multicast arrives everywhere, once, in its sender's order, whatever is lost."""

from __future__ import annotations

import random

import pytest

from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.core.run import Run
from pygroups.layers import nakack
from pygroups.sim.scenarios.frames import Hit
from pygroups.sim.scenarios.group import ScenarioGroup, scenario
from pygroups.sim.schedules.schedule import Weather
from tests.scenarios.common import BOTH


def has_all(group: ScenarioGroup, counts: dict[str, int]) -> bool:
    """Whether everybody has so many of each sender."""
    return all(len(member.delivered) == sum(counts.values()) for member in group.members)


def in_order(group: ScenarioGroup, counts: dict[str, int]) -> None:
    """Everybody has exactly so many of each sender, in the order sent."""
    for member in group.members:
        for sender, count in counts.items():
            assert member.delivered_from(sender) == list(range(1, count + 1))


@BOTH
def test_NAK_01(profile: str) -> None:
    """A sends five, then five more whose first transmission is lost: B has ten."""
    with scenario("A B", profile=profile) as group:
        group["A"].sends(5)
        group.after(0.1)
        lost = group.drop("nakack.Data", src="A", dest="B", first=True)
        group["A"].sends(5, every=0.01)
        group.until(lambda: len(group["B"].delivered) == 10, within=20)
        assert len(lost.hits) == 5
        in_order(group, {"A": 10})


@BOTH
def test_NAK_02(profile: str) -> None:
    """The last of three is lost, and so is what announces it: the votes find it."""
    with scenario("A B", profile=profile, stable_period=2 * SECOND, announce_max=100 * MILLISECOND) as group:
        group.drop("HighestSeq")
        group.drop("nakack.Data", src="A", dest="B", first=True, where=lambda run: run.first == 3)
        group["A"].sends(3, every=0.01)
        group.until(lambda: len(group["B"].delivered) == 3, within=20)
        in_order(group, {"A": 3})


@BOTH
def test_NAK_09(profile: str) -> None:
    """Two senders of a thousand each, three receivers: 6,000 receptions in order."""
    with scenario("A B C", profile=profile) as group:
        for name in "AB":
            group[name].sends(1_000, every=0.0005)
        group.settles()
        in_order(group, {"A": 1_000, "B": 1_000, "C": 0})


@BOTH
def test_NAK_15(profile: str) -> None:
    """Four members of 1,000 each, the others leave; late votes, requests and runs of the former member B come: A sends
    a full window and 100 more, and delivers them all to itself."""
    with scenario("A B C D", profile=profile, run_bytes=1 << 10, window=8 << 10) as group:
        late = group.watch("Vote", "XmitReq", "HighestSeq", "nakack.Data", src="B", dest="A")
        lost = group.drop("nakack.Data", src="A", dest="B", count=20, first=True)
        for name in "ABCD":
            group[name].sends(1_000)
        group.settles()
        assert lost.hits
        for name in "BCD":
            group.leave(name)
        group.until(lambda: group["A"].view == ("A",), within=20)
        for hit in late.hits[-50:]:
            group.again(hit)
        group["A"].sends(8 + 100, size=1_000)
        group.until(lambda: group["A"].delivered_from("A") == list(range(1, 1_109)), within=5)
        assert group["A"].drops


@BOTH
@pytest.mark.parametrize("count", [2_000, pytest.param(50_000, marks=pytest.mark.long)])
def test_NAK_16(count: int, profile: str) -> None:
    """Two that send at once over a network that shuffles for a second."""
    shuffles = Weather(jitter=0, reorder=1.0, reorder_by=20 * MILLISECOND)
    with scenario("A B", profile=profile, weather=shuffles, run_bytes=2 << 10, heartbeat_timeout=60 * SECOND) as group:
        for name in "AB":
            group[name].sends(count)
        group.after(1)
        group.weather(Weather(jitter=0))
        group.until(lambda: has_all(group, {"A": count, "B": count}), within=100)
        in_order(group, {"A": count, "B": count})


@BOTH
@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_NAK_17(count: int, profile: str) -> None:
    """So many of 1 kB from each of two, a tenth of all frames is lost."""
    with scenario("A B", profile=profile, run_bytes=4 << 10, heartbeat_timeout=60 * SECOND) as group:
        group.weather(Weather(loss=0.1))
        for name in "AB":
            group[name].sends(count, size=1_000)
        group.until(lambda: has_all(group, {"A": count, "B": count}), within=200)
        in_order(group, {"A": count, "B": count})


@BOTH
@pytest.mark.parametrize("senders", ["A", "B", "A B C"])
@pytest.mark.parametrize("to", ["all", "one", "itself", "mixed"])
def test_NAK_18(to: str, senders: str, profile: str) -> None:
    """Five copies of everything: ten messages to all, to one, to oneself or mixed are ten at each."""
    with scenario("A B C", profile=profile) as group:
        group.repeat(copies=5)
        names = senders.split()
        for name in names:
            if to in ("all", "mixed"):
                group[name].sends(10, every=0.003)
            if to in ("one", "mixed"):
                group[name].tells("C", 10, every=0.002)
            if to in ("itself", "mixed"):
                group[name].tells(name, 10)
        group.settles()
        ten = list(range(1, 11))
        for name in names:
            twice = list(range(1, 21)) if name == "C" and to == "mixed" else ten
            for member in group.members:
                assert member.delivered_from(name) == (ten if to in ("all", "mixed") else [])
            assert group["C"].received_from(name) == ([] if to == "all" or (to == "itself" and name != "C") else twice)
            if name != "C":
                assert group[name].received_from(name) == (ten if to in ("itself", "mixed") else [])


@BOTH
def test_NAK_19(profile: str) -> None:
    """Three senders of 25 each at random times: 75 at each, in each sender's order."""
    chance = random.Random(19)
    with scenario("A B C", profile=profile) as group:
        for name in "ABC":
            for _ in range(25):
                group.later(chance.uniform(0, 0.5), group[name].sends, 1)
        group.after(0.5)
        group.settles()
        in_order(group, dict.fromkeys("ABC", 25))


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_NAK_24(count: int) -> None:
    """So many messages by fifty senders of one application into one window: each once, in order."""
    with scenario("A B") as group:
        for task in range(50):
            group["A"].sends([f"{task}" for _ in range(count // 50)])
        group.until(lambda: len(group["B"].delivered) == count, within=1_000)
        in_order(group, {"A": count, "B": 0})


@pytest.mark.parametrize("how", ["cut", "stopped"])
@BOTH
def test_a_fetch_that_is_held_up_is_no_storm(profile: str, how: str) -> None:
    """A and B lack sixteen runs of 60 kB that C holds; C is cut off for four seconds, or its process is stopped, while
    they fetch: then each of them gets each run, and hardly any twice."""
    sender = "C" if profile == "fifo" else "A"
    lacking = [name for name in "ABC" if name != sender]
    with scenario("A B C", profile=profile, flush_timeout=6 * SECOND) as group:
        rules = [
            group.drop("nakack.Data", "XmitReq", src=sender, dest=lacking),
            group.drop("HighestSeq", "Vote", "StabilityMsg"),
        ]
        group[sender].sends(16, size=60_000)
        group.start("D")
        proposed = group.watch("Propose", dest="B")
        group.until(lambda: bool(proposed.hits), within=5, step=0.0001)
        if how == "cut":
            group.cut(sender)
        else:
            group.pause(sender)
        for rule in rules:
            rule.stop()
        group.after(4)
        asked = group.watch("XmitReq", dest=sender)
        again = group.watch("nakack.Data", src=sender, where=lambda run: run.dest is not None)
        if how == "cut":
            group.mend(sender)
        else:
            group.resume(sender)
        group.until(
            lambda: all(len(member.delivered) == 16 for member in group.members if member.name != "D"), within=5
        )
        group.after(0.5)
        assert 20 < len(again.hits) <= 64
        assert len(asked.hits) <= 60


@BOTH
def test_a_fetch_that_goes_on_is_not_given_up(profile: str) -> None:
    """B fetches a hundred runs, over a link that lets one pass each 15 ms: that takes far longer than `flush_timeout`,
    and the view comes in its first attempt."""
    sender = "C" if profile == "fifo" else "A"
    passing: dict[int, float] = {}  # by number, when the link lets the run pass
    with scenario("A B C", profile=profile, flush_timeout=200 * MILLISECOND, window=8 << 20) as group:
        lost = [group.drop("nakack.Data", src=sender, dest="B"), group.drop("HighestSeq", "Vote", "StabilityMsg")]
        group[sender].sends(100, size=60_000)
        group.start("D")
        proposed = group.watch("Propose", dest="B")
        group.until(lambda: bool(proposed.hits), within=5, step=0.0001)
        lost[0].stop()

        def passes_later(run: Run) -> bool:
            head = next(head for head in run.heads if isinstance(head, nakack.Data))
            if head.seq not in passing:
                passing[head.seq] = max([group.now, *passing.values()]) + 0.015
                hit = Hit(0, run.src, group["B"].address, run)
                group.later(passing[head.seq] - group.now, group.again, hit)
            return True

        slow = group.drop("nakack.Data", dest="B", where=passes_later)
        told, before = group.watch("Fetches", src="B", first=True), group.now
        group.until(lambda: group["B"].view == ("A", "B", "C", "D"), within=20)
        assert group.now > before + 1.2 and len(passing) > 90
        assert group["A"].counters.get("flush restarted", 0) == 0
        assert len(told.hits) <= 1 + (group.now - before) / 0.05
        slow.stop()


def test_a_fetch_goes_to_another_holder() -> None:
    """`fifo`: A and B lack what C sent, C and D have it. As soon as C is named as the holder B and C no longer reach
    each other: D gives it, and the view comes in its first attempt."""
    with scenario("A B C D", profile="fifo") as group:
        lost = group.drop("nakack.Data", "HighestSeq", src="C", dest="A B")
        group.drop("Vote", "StabilityMsg")
        group["C"].sends(3)
        group.after(0.001)
        group.start("E")
        proposed = group.watch("Propose", src="A", dest="B")
        group.until(lambda: bool(proposed.hits), within=5, step=0.0001)
        lost.stop()
        group.cut("B", "C")
        group.until(lambda: "E" in group["B"].view, within=1)
        assert group["B"].delivered_from("C") == [1, 2, 3]
        assert group["A"].counters["flush restarted"] == 0
        group.mend("B", "C")


@BOTH
@pytest.mark.parametrize("last", [True, False])
def test_a_lost_frame_is_repaired_within_four_periods(profile: str, last: bool) -> None:
    """One frame of a multicast is lost, in the middle or at the end of what is sent; nothing else disturbs."""
    with scenario("A B C", profile=profile) as group:
        for sender, receiver in ("AB", "AC", "BC", "BA"):
            group.after(0.3)
            count = len(group[receiver].delivered)
            lost = group.drop("nakack.Data", dest=receiver, count=1, first=True)
            group[sender].sends(1)
            group.after(0.002)
            if not last:
                group[sender].sends(1)
            if not lost.hits:  # in `total` it is ordered at the receiver itself
                lost.stop()
                continue
            group.until(lambda: len(group[receiver].delivered) == count + 2 - last, within=0.08)  # noqa: B023


def carries_a_multicast(run: Run) -> bool:
    return any(isinstance(head, nakack.Data) for head in run.heads)


@BOTH
def test_what_waits_in_the_lane_to_who_asks_is_not_put_into_it_again(profile: str) -> None:
    """C lacks 130 runs, and eight of ten runs to it are lost: A puts each of them into its lane to C about once."""
    chance = random.Random(1)
    with scenario("A B C", profile=profile, run_bytes=4 << 10, heartbeat_timeout=60 * SECOND) as group:
        lost = group.drop("nakack.Data", "HighestSeq", src="A", dest="C")
        group["A"].sends(130, size=3_500)
        group.after(0.05)
        lost.stop()
        answers = group.watch("unicast2.Data", src="A", dest="C", first=True, where=carries_a_multicast)
        thin = group.drop(dest="C", where=lambda run: chance.random() < 0.8)
        group.until(lambda: len(group["C"].delivered) >= 129, within=60)
        thin.stop()
        group.settles(within=200)
        assert 120 < len(answers.hits) < 200
