"""Two view changes that cross: what belongs to the one is not taken for part of the other.

Found by reading, each a run of events that no drawn schedule had met in a hundred thousand.
"""

from __future__ import annotations

import pytest

from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.sim import scenario
from pygroups.sim.schedules.schedule import Weather
from tests.merging import without_merging
from tests.scenarios.common import BOTH, QUICK

SLOW = {**QUICK, "heartbeat_timeout": 600 * MILLISECOND, "flush_timeout": 200 * MILLISECOND}


@BOTH
def test_flush_8_fetched_for_a_view_that_does_not_come(profile: str) -> None:
    """B decides on a view without D, and so without the last multicast, which only D has.  C, which does not hear of
    it, leads another change with D; E has fetched that multicast for it when B's installation comes: E and B go on
    together, and E hands it up no more than B."""
    with scenario("A B C D E", profile=profile, **QUICK) as group:
        group["E"].sends(5, every=0.01)
        group["A"].sends(5, every=0.01)
        group.after(0.3)
        group.drop("nakack.Data", src="A", dest="B C E")
        group.drop("HighestSeq", src="A")
        votes = group.drop("Vote", "StabilityMsg")
        group.cut("D", "B")
        group["E" if profile == "total" else "A"].sends(1)
        group.after(0.01)
        assert len(group["D"].delivered) == 11
        group.crash("A")
        install = group.drop("Install", src="B", dest="C E")
        group.until(lambda: install.hits, within=10, step=0.0001)
        group.cut("B", "C")
        accepted = group.watch("Accept", src="E", dest="C")
        group.until(lambda: accepted.hits, within=10, step=0.0001)
        install.stop()
        group.again(next(hit for hit in install.hits if hit.dest == group["E"].address))
        group.after(0.05)
        assert group["B"].view == group["E"].view == ("B", "C", "E")
        assert group["E"].drops["run beyond the cut"] == 1
        votes.stop()
        group.mend("B", "C D")
        group["E"].sends(3)
        group.settles()
        assert group["B"].delivered_from("E")[-3:] == group["E"].delivered_from("E")[-3:]


@BOTH
def test_gms_14_collected_and_installed_in_one_turn(profile: str) -> None:
    """B's Collect for the next attempt was lost and comes again behind the installation of the last one, which B got
    meanwhile: C hears both at once, and has the view."""
    with scenario("A B C", profile=profile, **QUICK) as group:
        group["B"].sends(5, every=0.01)
        group.after(0.2)
        install = group.drop("Install", src="A", dest="B C")
        collect = group.drop("Collect", src="B", dest="C")
        group.start("D")
        group.until(lambda: group["A"].view == ("A", "B", "C", "D"), within=5)
        group.cut("A", "B C")
        group.until(lambda: collect.hits, within=10)
        group.pause("D")  # so that A does not go on with it alone
        install.stop()
        group.mend("A", "B")
        given = group.watch("Install", src="B", dest="C")
        group.until(lambda: given.hits, within=5, step=0.0001)
        collect.stop()
        group.resume("D")
        group.mend("A", "C")
        group.settles(20)
        assert ("A", "B", "C", "D") in group["C"].views


@BOTH
def test_gms_15_asked_by_one_that_is_ahead(profile: str) -> None:
    """D has accepted the view that B is in, and lacks its installation; B, which is stuck there, asks it for help.  D
    is on its way and not elsewhere: it gets the view, and stays when A leaves."""
    with scenario("A B C D E", profile=profile, **SLOW | {"ready_timeout": SECOND}) as group:
        lost = group.drop("Install", src="A", dest="D")
        group.crash("E")
        group.until(lambda: lost.hits, within=5)
        group.cut("D", "A")
        group.cut("D", "B C", way="out")
        lost.stop()
        group.until(lambda: all(group[name].view == tuple("ABCD") for name in "ABC"), within=5)
        group.until(lambda: group["B"].member.blocked, within=5)
        group.pause("A")
        asked = group.watch("Stuck", src="B", dest="D")
        group.after(0.35)
        group.mend("D", "B C", way="out")
        group.mend("D", "A")
        group.until(lambda: asked.hits, within=2, step=0.0001)
        assert group["D"].view_id != group["B"].view_id
        group.after(0.2)
        assert group["D"].view_id == group["B"].view_id
        group.resume("A")
        group.after(3)
        group.leave("A")
        group.after(3)
        assert all(group[name].view == tuple("BCD") for name in "BCD")


@BOTH
def test_votes_and_orders_of_a_view_that_does_not_come(profile: str) -> None:
    """A accepted M's view and L's, and gets M's, which has the lower id; C is in L's and counts on A to order and to
    count.  What C told A lies there no longer than until A has a view."""
    with scenario("L M A C", profile=profile, **QUICK) as group:
        by_m = group.drop("Install", src="M", dest="A")
        by_l = group.drop("Install", src="L", dest="A")
        group.cut("M", "L C", way="in")
        group.until(lambda: by_m.hits, within=10, step=0.0001)
        group.leave("L")
        group.until(lambda: group["C"].view == ("A", "C"), within=10, step=0.0001)
        group["C"].sends(1)
        group.after(0.002)
        assert group["A"].holds["stable.early"] == 1
        by_m.stop()
        for hit in by_m.hits:
            group.again(hit)
        group.until(lambda: group["A"].view == ("M", "A"), within=10, step=0.0001)
        dropped = {"vote of a view that does not follow", "forward of a view that does not follow"}
        assert len(dropped & set(group["A"].drops)) == (2 if profile == "total" else 1)
        by_l.stop()
        group.mend("M", "L C", way="in")
        group.settles(30)


@BOTH
def test_sent_with_the_news_of_the_end(profile: str) -> None:
    """E hears that it was excluded, and in the same turn its application sends more than a run: nobody may take that
    for the first runs of the old view, which S, still in it, has lost.  Without merging E ends; with it E goes on in a
    view of its own, and a merge brings it back under the same incarnation."""
    for stack in (without_merging(profile), profile):
        with scenario("A B E S", profile=stack, run_bytes=2 << 10, window=1 << 20, **QUICK) as group:
            merges, life = isinstance(stack, str), group.address("E")
            group.pause("S")
            group.cut("E", "S")
            group["E"].sends(3)
            group.after(0.05)
            assert group["A"].delivered_from("E") == [1, 2, 3]
            group.pause("E")
            group.until(lambda group=group: group["A"].view == ("A", "B"), within=10)
            group.mend("E", "S")
            group.resume("E")
            told = group.watch("gms.Excluded", dest="E")
            group.until(lambda told=told: told.hits, within=5, step=0.0001)
            group.pause("E")
            group.after(0.01)
            group["E"].sends(20, size=500)
            numbered = group.watch("nakack.Data", src="E", dest="S")
            group.resume("E")
            group.after(0.01)
            assert group["E"].member.ended == ("" if merges else "excluded")
            assert merges or not numbered.hits
            group.resume("S")
            group.after(2)
            if not merges:
                assert group["S"].delivered_from("E") in ([], [1, 2, 3])
                continue
            group.settles(20)
            assert group["A"].view == group["E"].view and set(group["E"].view) == set("ABES")
            assert group.address("E") == life
            assert group["A"].delivered_from("E")[:3] == [1, 2, 3]
            assert group["E"].delivered_from("E") == list(range(1, 24))


@pytest.mark.parametrize("seed", range(6))
def test_gms_9_started_again_while_a_member_asks_whether_it_lives(seed: int) -> None:
    """A's question whether B lives is answered, and B dies and is started again while the answer is on its way: that
    is no sign of life of the old B, and the new one is not refused."""
    weather = Weather(delay=10 * MILLISECOND, jitter=10 * MILLISECOND)
    with scenario("A B", seed=seed, weather=weather) as group:
        a, b = group["A"].member, group["B"].member
        group.world.lose(a, b)
        group.pause("B")
        group.until(lambda: any(callable(item) for item in b._waiting), within=1, step=0.0001)  # A's question
        group.resume("B")
        group.after(0.0005)
        group.crash("B")
        group.start("B")
        group.until(lambda: group["A"].view == group["B"].view == ("A", "B"), within=10)


@BOTH
def test_gms_19_an_answer_to_a_question_of_the_view_before_comes_late(profile: str) -> None:
    """C is bound to A's ballot and asks Ready above it, since D crashed.  B's answer is lost, and comes again when C
    and B are in the next view: B is in it, stays there when A leaves, and was not put out by C."""
    with scenario("A B C D", profile=profile, **QUICK | {"flush_timeout": SECOND}) as group:
        collect = group.drop("Collect", src="A", dest="B")
        answers = group.drop("ReadyRsp", src="B", dest="C")
        group.crash("D")
        group.until(lambda: collect.hits and answers.hits, within=5, step=0.0001)
        collect.stop()
        done = group.watch("Done", src="A", dest="C")
        group.until(lambda: all(group[name].view == tuple("ABC") for name in "ABC"), within=5)
        group.until(lambda: done.hits, within=5)
        late = group.watch("ReadyRsp", src="B", dest="C")
        answers.stop()
        group.until(lambda: late.hits, within=3)
        group.leave("A")
        group.after(3)
        assert all(group[name].view == tuple("BC") for name in "BC")
