"""TOTAL of 1999 in a whole stack, over a multicast that loses messages."""

from __future__ import annotations

from pygroups.sim.scenarios.group import scenario

from .common import QUICK

TOTAL = "total1999"


def test_TOT_01() -> None:
    """C lacks id 4 and has 5: it delivers 1 to 3 and waits, asks for 4, and then delivers 4 and 5."""
    with scenario("A B C", profile=TOTAL, runs_in_flight=100) as group:
        asked = group.watch("total.Resend", src="C", dest="A")
        group.drop("Bcast", src="A", dest="C", first=True, where=lambda run: run.first == 4)
        group["B"].sends(5, every=0.0001)
        group.after(0.01)
        assert group["C"].texts == ["B1", "B2", "B3"]
        group.settles(within=1)
        assert group["C"].texts == ["B1", "B2", "B3", "B4", "B5"]
        assert len(asked.hits) == 1


def test_a_lost_id_is_not_asked_for_in_a_storm() -> None:
    """For a second no retransmission reaches C, which asks for both ids at once, with pauses that double."""
    with scenario("A B C", profile=TOTAL, runs_in_flight=100) as group:
        asked = group.watch("total.Resend", src="C")
        group.drop("Bcast", src="A", dest="C", where=lambda run: run.first in (2, 4))
        lost = group.drop("Bcast", src="B", dest="C")
        group["B"].sends(6, every=0.0001)
        group.after(1)
        assert group["C"].texts == ["B1"]
        assert 4 <= len(asked.hits) <= 10
        assert lost.hits
        assert [head for hit in asked.hits for head in hit.run.heads if len(getattr(head, "ranges", ())) == 2]
        group.heal()
        group.settles(within=3)
        assert group["C"].texts == group["A"].texts


def test_TOT_02() -> None:
    """The last broadcast is lost at C, and nothing follows: repaired within two periods and the way."""
    with scenario("A B C", profile=TOTAL) as group:
        group["B"].sends(2, every=0.01)
        group.drop("Bcast", src="A", dest="C", first=True, where=lambda run: run.first == 2)
        group.after(0.011 + 0.04 + 0.01)
        assert group["C"].texts == group["A"].texts == ["B1", "B2"]


def test_TOT_03() -> None:
    """The first NEW_VIEW of the second view is lost at C: the next broadcast brings the first id, and nothing waits."""
    with scenario("A B C", profile=TOTAL, **QUICK) as group:
        group["A"].sends(20, every=0.001)
        group.after(0.1)
        lost = group.drop("NewViewId", src="B", dest="C")
        group.crash("A")
        group["B"].sends(1, every=0.001)
        group["C"].sends(3, every=0.001)
        group.settles(within=10)
        assert lost.hits
        assert group["B"].delivered == group["C"].delivered
        assert group["C"].delivered_from("C") == [1, 2, 3]


def test_TOT_03_nothing_but_the_repeated_new_view() -> None:
    """NEW_VIEW of the view without B is lost twice at C, and nobody else broadcasts: it is repeated, and then the
    request of C leaves."""
    with scenario("A B C", profile=TOTAL, **QUICK) as group:
        lost = group.drop("NewViewId", src="A", dest="C", count=2)
        group.leave("B")
        group.until(lambda: bool(lost.hits), within=5)
        group["C"].sends(1, every=0.001)
        group.settles(within=5)
        assert len(lost.hits) == 2
        assert group["A"].texts == group["C"].texts == ["C1"]


def test_a_former_sequencer_is_not_believed() -> None:
    """NEW_VIEW of the former sequencer comes again at C, before C has heard the first id of the next view."""
    with scenario("A B C D", profile=TOTAL, **QUICK) as group:
        told = group.watch("NewViewId", src="A", dest="C")
        group.leave("D")
        group.until(lambda: bool(told.hits), within=5)
        group["A"].sends(20, every=0.001)
        group.after(0.1)
        group.drop("NewViewId", src="B", dest="C", count=1)
        group.crash("A")
        group.until(lambda: len(group["C"].view) == 2, within=5)
        group.again(told.hits[0])
        group["B"].sends(3, every=0.001)
        group["C"].sends(3, every=0.001)
        group.settles(within=5)
        assert group["B"].delivered == group["C"].delivered
        assert group["C"].delivered_from("B") == group["B"].delivered_from("C") == [1, 2, 3]


def test_TOT_05() -> None:
    """Every request arrives twice: each is ordered once, and no id is skipped."""
    with scenario("A B C", profile=TOTAL) as group:
        group.repeat("Request", dest="A")
        group["B"].sends(30, every=0.001)
        group["C"].sends(30, every=0.001)
        group.settles(within=5)
        assert group["A"].delivered == group["B"].delivered == group["C"].delivered
        assert group["A"].delivered_from("B") == list(range(1, 31))


def test_TOT_07() -> None:
    """The sequencer leaves with 100 requests on their way: none is lost, and none comes twice."""
    with scenario("A B C", profile=TOTAL, runs_in_flight=100, **QUICK) as group:
        group.delay("Request", by=0.05, dest="A")
        group["B"].sends(50, every=0.00001)
        group["C"].sends(50, every=0.00001)
        group.after(0.002)
        assert not group["A"].texts
        group.leave("A")
        group.settles(within=10)
        assert group["B"].delivered == group["C"].delivered
        for sender in "BC":
            assert group["C"].delivered_from(sender) == list(range(1, 51))
