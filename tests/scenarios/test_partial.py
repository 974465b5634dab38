"""Faults that last and hit only a part of the group: one direction, one pair, a wrong proof, a joiner, slow answers."""

from __future__ import annotations

import pytest

from pygroups.core.address import Address
from pygroups.core.driver_events import Dead
from pygroups.core.limits import MILLISECOND
from pygroups.core.suspicion_events import Silent
from pygroups.sim import ScenarioGroup, scenario
from pygroups.sim.schedules.schedule import Weather
from tests.scenarios.common import BOTH, QUICK


def agree(group: ScenarioGroup, names: str, within: float) -> None:
    """Soon exactly these are in a view, in this order."""
    wanted = tuple(names.split())
    group.until(lambda: all(group[name].view == wanted for name in wanted), within)


# -- one direction of one link


@BOTH
def test_a_member_that_does_not_hear_its_leader_holds_up_no_view_change(profile: str) -> None:
    """D does not hear A, which leads; everybody hears D.  C dies: the next view comes without C and without D."""
    with scenario("A B C D", profile=profile, window=64 << 10, run_bytes=16 << 10) as group:
        group.cut("A", "D", way="out")
        group.after(0.5)
        group["B"].sends(2_000, every=0.001, size=100)
        group.after(0.2)
        group.crash("C")
        agree(group, "A B", within=1.2)
        group.after(4)
        assert group["B"].landed == 2_000
        group.mend("A", "D")


@BOTH
def test_a_member_that_hears_nobody_before_it_accuses_its_leader_and_goes(profile: str) -> None:
    """Nobody died: C does not hear A.  C says so, A asks Ready, and nobody waits for C's answer for long."""
    with scenario("A B C", profile=profile, **QUICK) as group:
        group.cut("A", "C", way="out")
        agree(group, "A B", within=2)
        group.mend("A", "C")
        assert group["C"].member.ended == "excluded" or group["C"].view == ("A", "B", "C")
        group.settles(20)


@BOTH
@pytest.mark.parametrize("deaf", ["A", "B"])
def test_a_member_that_hears_nobody_and_goes_on_alone_is_left_behind(profile: str, deaf: str) -> None:
    """All hear it, and nobody suspects it; its heartbeats name a view of its own."""
    with scenario("A B C D", profile=profile, **QUICK) as group:
        group.cut(deaf, way="in")
        agree(group, " ".join(name for name in "ABCD" if name != deaf), within=3)
        group.after(1)
        assert not any(group[name].member.blocked for name in "ABCD" if name != deaf)
        group.mend(deaf, way="in")


@BOTH
def test_a_member_that_gets_no_installation_of_its_leader_holds_up_no_joiner(profile: str) -> None:
    """D accepted, and nothing of A reaches it any more.  It gets the view from others, and A does not hear of that."""
    with scenario("A B C D", profile=profile, **QUICK) as group:
        lost = group.drop("Install", src="A", dest="D")
        group.start("X")
        group.until(lambda: "X" in group["X"].view, within=5)
        lost.stop()
        group.settles(20)


@BOTH
def test_a_leader_that_nobody_hears_does_not_go_on_alone(profile: str) -> None:
    """A hears the others, and they do not hear A.  What C and D answer to B comes late, so that B's view change does
    not come soon; A has nobody's answer and waits, instead of taking all others for gone."""
    with scenario("A B C D", profile=profile, **QUICK) as group:
        formed = len(group["A"].views)
        group.delay("CollectAck", "Accept", src="C D", dest="B", by=0.35)
        group.cut("A", way="out")
        agree(group, "B C D", within=3)
        assert group["A"].view == ("A", "B", "C", "D")
        assert group["A"].counters["Ready left unanswered by most"] > 1
        assert len(group["A"].views) == formed
        group.heal()
        group.settles(30)
        assert group["A"].views[formed:] == [("A",), ("A", "B", "C", "D")], "it is told, and a merge brings it back"


@BOTH
def test_a_leader_that_only_the_next_in_rank_hears_gives_way(profile: str) -> None:
    """C, D and E do not hear A, which leads, and say so; B hears it, and it hears everybody.  The fault stays."""
    with scenario("A B C D E", profile=profile, **QUICK) as group:
        group["C"].sends(500, every=0.01)
        group.cut("A", "C D E", way="out")
        agree(group, "B C D E", within=3)
        assert group["A"].counters["unheard leader gives way"] == 1
        group.after(5)
        assert not any(group[name].member.blocked for name in "BCDE")
        assert group["C"].landed == 500


@BOTH
def test_a_leader_that_is_heard_again_leads_again(profile: str) -> None:
    """A gave way; before the others have answered B, they hear A again, and nothing has to change."""
    with scenario("A B C D E", profile=profile, **QUICK) as group:
        slow = group.delay("ReadyRsp", dest="B", by=0.35)
        group.cut("A", "C D E", way="out")
        group.until(lambda: group["A"].counters["unheard leader gives way"] == 1, within=3)
        group.mend("A", "C D E")
        group.after(1)
        slow.stop()
        group.settles(20)
        assert group["E"].views == [("A", "B", "C", "D", "E")]


@BOTH
@pytest.mark.parametrize("hangs", ["A", "B", "D"])
def test_a_member_that_hangs_while_another_dies_delays_the_next_view_by_less_than_a_second(
    profile: str, hangs: str
) -> None:
    """With default settings; A leads, and is suspected by its own silence only after six seconds."""
    with scenario("A B C D", profile=profile) as group:
        group.after(2)
        group.pause(hangs)
        group.crash("C")
        agree(group, " ".join(name for name in "ABD" if name != hangs), within=1)
        group.resume(hangs)
        group.settles()


@BOTH
@pytest.mark.parametrize("said", ["Ready", "Collect", "Propose"])
def test_a_leader_that_hangs_after_it_has_answered_delays_the_next_view_by_less_than_a_second(
    profile: str, said: str
) -> None:
    """C dies, A tells B that it is there, begins the view change, and stands still at once."""
    with scenario("A B C D", profile=profile) as group:
        group.after(2)
        answered, began = group.watch("ReadyRsp", src="A", dest="B"), group.watch(said, src="A", dest="D")
        group.crash("C")
        group.until(lambda: began.hits and answered.hits, within=0.1, step=0.0001)
        group.pause("A")
        agree(group, "B D", within=1)
        group.resume("A")
        group.settles()


@BOTH
def test_the_first_two_that_hang_while_another_dies_delay_the_next_view_by_less_than_a_second(profile: str) -> None:
    """A leads, B is next in rank; D asks both."""
    with scenario("A B C D E", profile=profile) as group:
        group.after(2)
        group.pause("A")
        group.pause("B")
        group.crash("C")
        agree(group, "D E", within=1)
        group.resume("A")
        group.resume("B")
        group.settles()


@BOTH
def test_a_member_that_stands_still_while_somebody_joins_is_not_put_out(profile: str) -> None:
    """For less than the heartbeat time-out: the join waits, and nobody goes."""
    with scenario("A B C", profile=profile) as group:
        group.pause("C")
        group.start("D")
        group.after(4.5)
        group.resume("C")
        agree(group, "A B C D", within=1)
        group.settles()


# -- a pair


@BOTH
def test_a_pair_that_is_cut_off_does_not_hold_up_a_join(profile: str) -> None:
    """B and C cannot reach each other, A reaches both.  C sends all the time; D joins, nobody waits for the pair."""
    with scenario("A B C", profile=profile) as group:
        group.cut("B", "C")
        group["C"].sends(150, every=0.01)
        group.after(1.2137)
        group.start("D")
        group.until(lambda: group["A"].view == ("A", "B", "C", "D"), within=1.5)
        assert group["A"].counters.get("flush restarted", 0) == 0
        group.mend("B", "C")
        group.settles()
        assert group["B"].delivered_from("C") == list(range(1, 151))


@BOTH
@pytest.mark.parametrize("way", ["both", "out"])
def test_of_two_that_cannot_reach_each_other_the_lower_ranked_goes(profile: str, way: str) -> None:
    """The leader reaches both: it hears from one of them, or both, that they are apart."""
    with scenario("A B C D", profile=profile, **QUICK) as group:
        group.cut("B", "C", way=way)  # type: ignore[arg-type]
        agree(group, "A B D", within=3)
        group.mend("B", "C", way=way)  # type: ignore[arg-type]
        group.settles(20)


@BOTH
def test_a_member_that_reaches_only_the_leader_goes_and_not_those_that_reach_each_other(profile: str) -> None:
    with scenario("A B C D E", profile=profile, **QUICK) as group:
        group.cut("B", "C D E")
        agree(group, "A C D E", within=3)
        assert group["A"].views[-2:] == [tuple("ABCDE"), tuple("ACDE")], "B alone went, at once"
        group.mend("B", "C D E")
        group.settles(20)


@BOTH
def test_a_pair_that_is_apart_for_a_moment_stays(profile: str) -> None:
    with scenario("A B C", profile=profile, **QUICK) as group:
        group.cut("B", "C")
        group.until(lambda: group["A"].counters.get("Ready left unanswered", 0) == 0, within=1)
        group.after(0.62)
        group.mend("B", "C")
        group.after(3)
        assert all(group[name].views[-1] == ("A", "B", "C") for name in "ABC")


# -- a wrong proof


@BOTH
def test_a_proof_that_the_leader_alone_has_waits_a_moment_for_an_answer(profile: str) -> None:
    """A is told that B is dead.  C answers Ready, does not say so too, and B answers a little later."""
    with scenario("A B C", profile=profile) as group:
        group.pause("B")
        group["A"].hears(Dead(group["B"].address))
        group.after(0.01)
        group.resume("B")
        group.after(3)
        assert all(member.view == ("A", "B", "C") for member in group.members)


@BOTH
@pytest.mark.parametrize("gap", [0.005, 0.3])
def test_a_leader_alone_with_a_proof_gives_the_member_the_time_of_everybody(profile: str, gap: float) -> None:
    """The link between A and B fails for a moment, and A is told that B is dead.  C hears B and has no proof."""
    with scenario("A B C", profile=profile) as group:
        group.after(1)
        group.cut("A", "B")
        group["A"].hears(Dead(group["B"].address))
        group.after(gap)
        group.mend("A", "B")
        group.after(3)
        assert all(member.view == ("A", "B", "C") for member in group.members)


def test_members_that_fall_silent_together_are_accused_together() -> None:
    """Half of a group falls silent within some milliseconds: not one message to each for each of them."""
    left, right = "A B C D E F", "G H I J K L"
    with scenario(f"{left} {right}", profile="fifo") as group:
        accusations = group.watch("Accuse", src="A", dest="B")
        group.cut(left, right)
        group.until(lambda: len(group["A"].view) == 6, within=10)
        assert 1 <= len(accusations.hits) <= 3
        group.heal()


def test_a_crash_in_a_large_view_is_told_to_those_that_may_lead() -> None:
    """Each of eleven survivors tells two members, not ten."""
    names = "A B C D E F G H I J K L"
    with scenario(names, heartbeat_all=3, heartbeat_neighbors=1) as group:
        accusations = group.watch("Accuse")
        group.crash("L")
        agree(group, "A B C D E F G H I J K", within=0.1)
        assert 1 <= len(accusations.hits) <= 2 * 11


@BOTH
def test_the_first_members_of_a_large_view_crash_together(profile: str) -> None:
    """The next leader hears from the others that they have the proofs too, and waits for no confirmation."""
    with scenario("A B C D E F G", profile=profile, heartbeat_all=3, heartbeat_neighbors=1) as group:
        group.after(1)
        group.crash("A")
        group.crash("B")
        agree(group, "C D E F G", within=0.1)


@BOTH
def test_a_kill_that_all_notice_waits_for_nobody(profile: str) -> None:
    with scenario("A B C", profile=profile) as group:
        group.crash("A")
        proven = group.watch("Ready", src="B")
        group.until(lambda: proven.hits, within=1, step=0.0001)
        before = group.now
        agree(group, "B C", within=0.02)
        assert group.now - before < 0.015


@BOTH
def test_a_proof_that_one_member_has_is_looked_into_by_the_leader(profile: str) -> None:
    """B dies; only C's connection shows it, the others would find out after a heartbeat time-out."""
    with scenario("A B C D", profile=profile) as group:
        group.isolate("B")
        group.after(0.1)
        group.crash("B")
        group.after(0.1)
        group.mend("B")
        before = group.now
        group["C"].hears(Dead(group["B"].address))
        agree(group, "A C D", within=2)
        assert group.now - before < 1.5


@BOTH
def test_a_member_that_takes_its_leader_for_dead_can_leave(profile: str) -> None:
    """C hears no heartbeat of A, says so, and asks B to let it go; B does not lead, and hands that on."""
    with scenario("A B C D", profile=profile) as group:
        group.drop("Heartbeat", "IAmAlive", src="A", dest="C")
        group["C"].hears(Silent(group["A"].address))
        group.after(1.1)
        group.leave("C")
        agree(group, "A B D", within=1)
        group.settles()


def test_a_silent_member_is_asked_over_a_fresh_connection() -> None:
    """The question on the connection that there is goes nowhere; a new connection shows that the member lives."""
    with scenario("A B", **QUICK) as group:
        asked: list[Address] = []
        network = group["A"].member.network
        probe = network.probe

        def watched(peer: Address) -> None:
            asked.append(peer)
            probe(peer)

        network.probe = watched  # type: ignore[method-assign]
        group.drop("Heartbeat", "AreYouAlive", "IAmAlive", src="B", dest="A")
        group.after(3)
        assert group["B"].address in asked
        assert group["A"].view == ("A", "B")


# -- joiners, and slow answers


def test_a_joiner_that_cannot_be_reached_delays_no_other() -> None:
    """X asks to join and hears nothing.  Nobody is asked Ready because of it, and D joins as fast as ever."""
    with scenario("A B C") as group:
        group.start("X")
        group.cut("X", way="in")
        group.after(5)
        ready = group.watch("Ready", src="A", dest="B")
        group.after(5)
        assert not ready.hits
        before = group.now
        group.start("D")
        group.until(lambda: "D" in group["A"].view, within=5)
        assert group.now - before < 0.1
        group.mend("X", way="in")
        agree(group, "A B C D X", within=5)


@BOTH
@pytest.mark.parametrize("delay", [700, 1_500])
def test_where_answers_take_longer_than_every_time_out_views_still_change(profile: str, delay: int) -> None:
    """A round trip of 1.4 or 3 seconds: the patience grows, and a late answer is one."""
    weather = Weather(delay=delay * MILLISECOND, jitter=0)
    with scenario("A B", profile=profile, weather=weather, formed=False) as group:
        group.start("A")
        group.after(3)
        group.start("B")
        group.until(lambda: group["A"].view == group["B"].view == ("A", "B"), within=60)
        group.start("C")
        agree(group, "A B C", within=90)
        group.after(5)
        assert not any(group[name].member.blocked for name in "ABC")


@BOTH
@pytest.mark.parametrize("at", ["A", "B", "C"])
def test_a_wrong_proof_puts_nobody_out_who_is_heard(profile: str, at: str) -> None:
    """The driver says once that a member is dead which lives and is heard: at the leader, at others."""
    wrong = "B" if at == "A" else "A"
    with scenario("A B C", profile=profile, **QUICK) as group:
        group[at].sends(40, every=0.005)
        group.after(0.1013)
        group[at].hears(Dead(group[wrong].address))
        group.after(3)
        assert all(member.view == ("A", "B", "C") for member in group.members)
        group[wrong].tells(at, 1)
        group.settles()


@BOTH
def test_an_idle_large_view_doubts_nobody(profile: str) -> None:
    """Each heartbeat goes to some of the members only, and each member is heard in time: no other is asked for it."""
    names = "A B C D E F G H I J K"
    with scenario(names, profile=profile, heartbeat_all=3, heartbeat_neighbors=1) as group:
        group.after(1)
        asked = group.watch("AreYouAlive")
        group.after(60)
        assert asked.hits == []
