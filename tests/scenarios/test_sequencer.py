"""SEQUENCER in a whole stack: one order, through crashes of the member that orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from pygroups.core.events import Event
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.sim.scenarios.apps import Acting, messages_of
from pygroups.sim.scenarios.group import ScenarioGroup, scenario
from pygroups.sim.schedules.schedule import Habits

from .common import QUICK


def test_SEQ_01() -> None:
    """B goes on sending while the sequencer A crashes."""
    with scenario("A B C") as group:
        group["B"].sends(50, every=0.05)
        group.after(0.5)
        group.crash("A")
        group.settles(within=10)
        assert group["B"].delivered == group["C"].delivered
        assert group["B"].delivered_from("B") == list(range(1, 51))


def test_SEQ_02() -> None:
    """The same with C, which is not the next one to order: it forwards anew to B."""
    with scenario("A B C") as group:
        forwards = group.watch("Forward", src="C", dest="B")
        group["C"].sends(50, every=0.05)
        group.after(0.5)
        group.crash("A")
        group.settles(within=10)
        assert group["B"].delivered == group["C"].delivered
        assert group["B"].delivered_from("C") == list(range(1, 51))
        assert forwards.hits


def test_six_messages() -> None:
    """The seed's failover: C sends six, A orders all and dies; 5 and 6 reached nobody but perhaps B."""
    with scenario("A B C", runs_in_flight=100) as group:
        group.drop("sequencer.Data", src="A", dest="C", where=lambda run: run.first >= 5)
        group["C"].sends(6, every=0.0001)
        group.after(0.002)
        assert group["C"].texts == ["C1", "C2", "C3", "C4"]
        assert group["B"].texts == ["C1", "C2", "C3", "C4", "C5", "C6"]
        again = group.watch("Forward", src="C", dest="B")
        group.crash("A")
        group.settles(within=10)
        assert group["B"].texts == group["C"].texts == ["C1", "C2", "C3", "C4", "C5", "C6"]
        assert not again.hits, "the flush gave C what B had"


def test_six_messages_5_and_6_reached_nobody() -> None:
    """The same, but nobody has 5 and 6: C sends them to B."""
    with scenario("A B C", runs_in_flight=100) as group:
        group.drop("sequencer.Data", src="A", where=lambda run: run.first >= 5)
        group["C"].sends(6, every=0.0001)
        group.after(0.002)
        again = group.watch("Forward", src="C", dest="B")
        group.crash("A")
        group.settles(within=10)
        assert group["B"].texts == group["C"].texts == ["C1", "C2", "C3", "C4", "C5", "C6"]
        assert [hit.run.first for hit in again.hits] == [5, 6]


class Pairs:
    """Five tasks: each sends a second message when its first one was delivered."""

    def __init__(self, acting: Acting) -> None:
        self.acting = acting

    def on_event(self, event: Event) -> None:
        for message in messages_of(event):
            if message.text.endswith("1") and self.acting.me.name == "C":
                self.acting.send(message.payload[:1] + b"2")


def test_SEQ_04() -> None:
    """A is cut off while C's five tasks send; the second of a task waits for the first."""
    with scenario("A B C", application=Pairs, heartbeat_timeout=1 * SECOND, heartbeat=SECOND // 4) as group:
        group.isolate("A")
        group["C"].sends(["11", "21", "31", "41", "51"])
        group.after(0.9)
        assert group["C"].texts == []
        group.until(lambda: len(group["B"].texts) == len(group["C"].texts) == 10, within=10)
        assert group["B"].view == group["C"].view == ("B", "C")
        assert group["B"].delivered == group["C"].delivered
        assert group["C"].texts[:5] == ["11", "21", "31", "41", "51"]
        assert sorted(group["C"].texts[5:]) == ["12", "22", "32", "42", "52"]


@pytest.mark.parametrize("others", [10, 2_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_SEQ_09(others: int) -> None:
    """An old copy of a message, so many messages later: on the stream, and as a Forward."""
    with scenario("A B C") as group:
        ordered = group.watch("sequencer.Data", src="A", dest="B", count=1)
        forwarded = group.watch("Forward", src="C", dest="A", count=1)
        group["C"].sends("m")
        group.after(0.1)
        group["C"].sends(others)
        group["B"].sends(10)
        group.until(lambda: len(group["B"].delivered) == others + 11, within=120)
        group.again(ordered.hits[0])
        group.again(forwarded.hits[0])
        group["C"].sends("last")
        group.settles(within=60)
        for name in "ABC":
            assert group[name].texts.count("m") == 1
            assert group[name].delivered_from("C") == list(range(1, others + 3))
        assert group["B"].drops["repeated run"] == 1
        assert sum(group["A"].drops.values()) == 1


def test_SEQ_09_old_forward_after_a_view() -> None:
    """An old Forward comes to the sequencer again after the view has changed."""
    with scenario("A B C D") as group:
        forwarded = group.watch("Forward", src="C", dest="A", count=1)
        group["C"].sends("m")
        group.settles()
        group.crash("D")
        group.until(lambda: group["A"].view == group["B"].view == group["C"].view == ("A", "B", "C"), within=10)
        group.again(forwarded.hits[0])
        group["C"].sends("n")
        group.settles()
        assert group["B"].texts == ["m", "n"]


def shares(seconds: float, reads_after: int) -> float:
    """What the one with most was delivered, over the one with least, while all always had something to send."""
    with scenario("A B C", habits=Habits(reads_after=reads_after), window=4 << 10, run_bytes=1 << 10) as group:
        for name in "ABC":
            group[name].sends(int(5_000 * seconds), size=900)
        group.after(seconds)
        counts = Counter(message.origin for message in group["B"].delivered)
        for name in "ABC":
            assert counts[name] > 50 * seconds
            assert group[name].unsent > 0
            group[name].stops_sending()
    return max(counts.values()) / min(counts.values())


@pytest.mark.parametrize("seconds", [1, pytest.param(10, marks=pytest.mark.long)])
def test_SEQ_12(seconds: float) -> None:
    """Three that always have something to send, the sequencer among them, and readers who are slower than the network:
    nobody gets less than his share."""
    assert shares(seconds, reads_after=20 * MILLISECOND) < 1.2


def test_SEQ_12_with_quick_readers() -> None:
    """The same where nothing but the windows holds the senders: neither bandwidth nor readers.  In a second the member
    that orders gets 1.21 times the share of another: a full window goes round a hop faster there."""
    assert shares(0.3, reads_after=1 * MILLISECOND) < 1.2


def test_SEQ_14() -> None:
    """Five copies follow everything on the wire: nothing is delivered twice."""
    with scenario("A B C") as group:
        group.repeat(copies=5)
        for name in "ABC":
            group[name].sends(20, every=0.01)
        group["B"].tells("C", 10, every=0.02)
        group.settles()
        for name in "ABC":
            assert sorted(group[name].texts) == sorted(f"{origin}{n}" for origin in "ABC" for n in range(1, 21))
        assert group["C"].received_from("B") == list(range(1, 11))
        assert group["C"].drops["repeated run"] > 0


def late_coordinator(group: ScenarioGroup, before: Callable[[], None]) -> None:
    """A leaves; C is in the next view 40 ms before B, which orders there; `before` happens in between."""
    group["C"].sends(1)
    group.after(0.1)
    lost = group.drop("Install", dest="B")
    group.leave("A")
    group.until(lambda: group["C"].view == ("B", "C"), within=5, step=0.0005)
    before()
    lost.stop()
    group.until(lambda: group["B"].view == ("B", "C"), within=10)


@pytest.mark.parametrize("last", [0, 300])
def test_forwards_that_the_next_coordinator_cannot_keep_come_again(last: int) -> None:
    """C sends more than B keeps for a view that it has not installed; B asks for the rest, in order, whether or not
    something comes later that shows the gap."""
    with scenario("A B C", run_bytes=1 << 10, future_runs_max=40, **QUICK) as group:

        def more() -> None:
            group["C"].sends(200, size=900)
            group.after(0.25)
            assert group["B"].gauges["sequencer.early"] == 10
            group["C"].sends(last, every=0.0001)

        late_coordinator(group, more)
        group["B"].sends(5)
        group.settles(within=5)
        assert group["B"].delivered_from("C") == group["C"].delivered_from("C") == list(range(1, 202 + last))
        assert group["B"].drops["too many early forwards"] > 100


def test_early_forwards_are_bounded_in_bytes_and_per_sender() -> None:
    """C and D both send before B has the view: neither takes the other's share, and everything comes."""
    with scenario("A B C D", future_bytes=80 << 10, run_bytes=8 << 10, **QUICK) as group:
        group["C"].sends(1)
        group.after(0.1)
        lost = group.drop("Install", dest="B")
        group.leave("A")
        group.until(lambda: group["D"].view == group["C"].view == ("B", "C", "D"), within=5, step=0.0005)
        group["C"].sends(100, size=4_000)
        group.after(0.1)
        group["D"].sends(3, size=4_000)
        group.after(0.1)
        assert 4 <= group["B"].gauges["sequencer.early"] <= 5
        lost.stop()
        group.settles(within=10)
        assert len(group["B"].delivered) == 104
