"""The primary component: views are one chain, a minority is blocked and is told so.

The ids are those of the scenarios in docs/layers/gms.md.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import msgspec
import pytest

from pygroups.core.address import Address
from pygroups.core.events import Vouched
from pygroups.core.limits import SECOND, Config
from pygroups.core.view import HISTORY_DIGITS
from pygroups.journal.reader import Quarantine, find_segments, read_segments
from pygroups.layers.profiles import Profile
from pygroups.sim import scenario
from pygroups.sim.promises.progress import bound_of
from pygroups.sim.scenarios.group import ScenarioGroup
from pygroups.sim.world.watch import Watch
from tests.majority import Notified, majority
from tests.scenarios.common import MEMBERSHIP, QUICK

SOON = 5.0  # seconds until a majority has gone on


def group_of(names: str, profile: str = "total", seed: int = 0) -> ScenarioGroup:
    return scenario(names, profile=majority(profile), application=Notified, seed=seed, **QUICK)


def told(group: ScenarioGroup, name: str) -> list[str]:
    actor = group.actors[name]
    assert isinstance(actor, Notified)
    return actor.news


def answers(group: ScenarioGroup, name: str) -> list[str]:
    actor = group.actors[name]
    assert isinstance(actor, Notified)
    return actor.answers


def goes_on(group: ScenarioGroup, names: str, within: float = SOON) -> None:
    """Exactly these members are in one view."""
    view = tuple(names.split())
    group.until(lambda: all(group[name].view == view for name in view), within)


def stays_blocked(group: ScenarioGroup, name: str, seconds: float = 30.0) -> None:
    """The member was told, and neither installs a view nor delivers anything for a long time."""
    group.until(lambda: told(group, name) == ["Blocked"], SOON)
    views, history = len(group[name].views), list(group[name].history)
    group[name].sends(["waits"])
    group.after(seconds)
    assert len(group[name].views) == views
    assert group[name].history == history
    assert told(group, name) == ["Blocked"]


@MEMBERSHIP
def test_prim_02_three_of_four_leave_at_once(profile: str) -> None:
    with group_of("A B C D", profile) as group:
        for name in "ABC":
            group[name].sends(5)
            group.leave(name)
        goes_on(group, "D")
        group["D"].sends(3)
        group.settles()
        assert group["D"].delivered_from("D") == [1, 2, 3]
        assert told(group, "D") == []


@MEMBERSHIP
def test_all_members_leave_at_once(profile: str) -> None:
    """The first member decides a view of itself, and ends with it: the others go with its installation, and wait for no
    answer of a process that has ended."""
    with group_of("A B C D E", profile) as group:
        group.after(2)
        for name in "ABCDE":
            group.leave(name)
        group.until(lambda: not group.world.running, 0.2)


def test_of_two_members_the_first_goes_on() -> None:
    """The second one dies: the first is half of the view, with its first member, and goes on.  The first one dies: the
    second is blocked, however long it waits."""
    with group_of("A B") as group:
        group.crash("B")
        goes_on(group, "A")
        group["A"].sends(3)
        group.settles()
    with group_of("A B") as group:
        group.crash("A")
        stays_blocked(group, "B", 600.0)


@MEMBERSHIP
def test_a_minority_is_blocked_and_excluded(profile: str) -> None:
    """The majority goes on.  Both members of the minority are told that they are blocked, and after the heal that they
    are excluded."""
    with group_of("A B C D E", profile) as group:
        for member in group.members:
            member.sends(20, every=0.1)
        group.cut("D E", "A B C")
        stays_blocked(group, "E")
        stays_blocked(group, "D", 1.0)
        goes_on(group, "A B C")
        group["A"].sends(3)
        group.mend("D E", "A B C")
        group.until(lambda: sorted(group.world.running) == ["A", "B", "C"], SOON)
        assert group["D"].ended == group["E"].ended == "excluded"
        group.start("D E")
        goes_on(group, "A B C D E")
        group.settles()
        facts = group.judge.facts
        assert facts["state-cut"], "both came back with a state"


@MEMBERSHIP
def test_a_tie_is_decided_by_the_first_member(profile: str) -> None:
    with group_of("A B C D", profile) as group:
        group.cut("A D", "B C")
        goes_on(group, "A D")
        stays_blocked(group, "B")
        stays_blocked(group, "C", 1.0)
        group.mend("A D", "B C")
        group.until(lambda: sorted(group.world.running) == ["A", "D"], SOON)
        group.settles()


def test_nobody_has_a_majority() -> None:
    """Three sides of five members: all are blocked, for as long as that lasts.  Two sides that reach each other again
    go on, in their order."""
    with group_of("A B C D E") as group:
        for one, others in (("A B", "C D E"), ("C D", "E")):
            group.cut(one, others)
        for name in "ABCDE":
            stays_blocked(group, name, 20.0)
        group.mend("C D", "E")
        goes_on(group, "C D E")
        assert told(group, "C") == ["Blocked", "Unblocked"]
        group.until(lambda: group["C"].delivered_from("C") == [1], 1)  # what waited was sent in the next view
        group.mend("A B", "C D E")
        group.until(lambda: sorted(group.world.running) == ["C", "D", "E"], SOON)
        group.settles()


@MEMBERSHIP
def test_members_that_are_heard_soon_after_an_outage_are_not_excluded(profile: str) -> None:
    """No two of five members reach each other.  When the network works again, connections come back one after another:
    D is heard 50 ms after A, B and C, and E 50 ms after D.  The leader waits for members that may follow, and no member
    is excluded."""
    with group_of("A B C D E", profile) as group:
        for pair in combinations("ABCDE", 2):
            group.cut(*pair)
        for name in "ABCDE":
            stays_blocked(group, name, 20.0)
        for pair in combinations("ABC", 2):
            group.mend(*pair)
        for late in ("D", "E"):
            group.after(0.05)
            group.mend(late, "A B C")
        group.mend("D", "E")
        group.until(lambda: all(told(group, name) == ["Blocked", "Unblocked"] for name in "ABCDE"), 0.6)
        assert all(group[name].view == tuple("ABCDE") for name in "ABCDE")


@MEMBERSHIP
def test_the_wait_for_members_that_may_follow_is_short(profile: str) -> None:
    """As before, but D and E stay away: the first three go on after `verify_timeout`, and D and E are excluded."""
    with group_of("A B C D E", profile) as group:
        for pair in combinations("ABCDE", 2):
            group.cut(*pair)
        for name in "ABCDE":
            stays_blocked(group, name, 20.0)
        for pair in combinations("ABC", 2):
            group.mend(*pair)
        goes_on(group, "A B C", 0.6)


def test_a_member_that_hears_and_is_not_heard_is_told() -> None:
    """No frame of C reaches the others: they go on, and C sees that by their heartbeats."""
    with group_of("A B C") as group:
        group.cut("C", way="out")
        goes_on(group, "A B")
        stays_blocked(group, "C")
        group.mend("C", way="out")
        group.until(lambda: sorted(group.world.running) == ["A", "B"], SOON)


@MEMBERSHIP
@pytest.mark.parametrize("count", [3, 4, 5])
def test_prim_06_the_leader_dies_when_it_has_decided(count: int, profile: str) -> None:
    """One member leaves.  The leader's installation reaches one member, or none but itself, and the leader dies: all
    end in that view or in one after it."""
    names = "ABCDE"[:count]
    for leaves in ("some", "nothing", "all"):
        for seed in range(6):
            with group_of(" ".join(names), profile, seed) as group:
                for member in group.members:
                    member.sends(10, every=0.02)
                group.crash("A", "Install", leaves=leaves)
                group.leave(names[-1])
                group.until(lambda: "A" not in group.world.running, SOON)
                if count > 3:
                    group.until(lambda: all(group[name].view == tuple(names[1:-1]) for name in names[1:-1]), 10)


@MEMBERSHIP
def test_prim_06_a_decided_view_is_taken_over(profile: str) -> None:
    """The view without E is installed by B alone, which is then cut off, and the leader A dies.  C, D and E are a
    majority of the old view and cannot know that it was decided: they end in that view, and go on when B is back."""
    with group_of("A B C D E", profile) as group:
        group.drop("Install", src="A", dest="C D E")
        group.drop("Stuck", "Heartbeat", dest="B")
        installs = group.watch("InstallAck", src="B")
        group.leave("E")
        group.until(lambda: bool(installs.hits), SOON, step=0.0001)
        group.crash("A")
        group.isolate("B")
        group.after(30)
        assert group["C"].view == group["D"].view == group["B"].view == tuple("ABCD")
        group.world.rules.clear()
        group.mend("B")
        goes_on(group, "B C D", 20)
        group.settles()


@MEMBERSHIP
def test_a_collect_that_comes_late_is_refused(profile: str) -> None:
    """The Collect of A to C and E is late.  Meanwhile B leads with a higher ballot: C and E are bound to it, and D
    alone accepts its proposal.  Then the Collect of A arrives.  If C and E answered it, a majority would decide the
    view of A under the lower ballot, and the leader after B would repeat the proposal of B, which has the higher
    ballot."""
    every, patient = tuple("ABCDE"), QUICK | {"flush_timeout": 3 * SECOND}
    with scenario("A B C D E", profile=majority(profile), application=Notified, **patient) as group:
        asked, accepted = group.watch("Collect", src="A", dest="C"), group.watch("Accept", src="D", dest="B")
        group.drop("Collect", src="A")
        group.drop("Propose", src="B", dest="C E")
        group.cut("A", "B D", way="in")
        group.until(lambda: bool(asked.hits), SOON, step=0.0001)
        group.cut("A", "B D")
        group.until(lambda: bool(accepted.hits), SOON, step=0.0001)
        group.world.rules.clear()
        group.drop("Propose", src="B", dest="C E")
        group.drop("Install", src="A")
        group.until(lambda: group["A"].view != every, SOON, step=0.0001)
        assert group["C"].view == group["E"].view == every
        decided = group["A"].view_id
        group.isolate("A")
        group.crash("B")
        group.world.rules.clear()
        group.until(lambda: group["C"].view != every, 30, step=0.0001)
        assert group["C"].view_id == decided


@pytest.mark.parametrize("moment", ["Collect", "Propose", "CollectAck", "Accept", "InstallAck"])
def test_a_member_dies_at_each_step(moment: str) -> None:
    """The others go on, with the view that was accepted or with one after it."""
    victim = "A" if moment in ("Collect", "Propose") else "B"
    for seed in range(6):
        with group_of("A B C D E", seed=seed) as group:
            for member in group.members:
                member.sends(10, every=0.02)
            group.crash(victim, moment, leaves="some")
            group.leave("E")
            group.until(lambda: victim not in group.world.running, SOON)
            group.until(lambda: len(group["C"].view) == 3, 10)


@MEMBERSHIP
def test_a_leader_that_never_installs_its_view_is_excluded(profile: str) -> None:
    """A proposes the view without E, and receives nothing from then on.  B takes the proposal over, which names A: the
    members question A, whose frames still arrive, and go on without A."""
    with group_of("A B C D E", profile) as group:
        group.isolate("A", moment="Propose", way="in")
        group.crash("E")
        group.until(lambda: group["B"].view == ("A", "B", "C", "D"), SOON)
        goes_on(group, "B C D")
        group.mend("A", way="in")
        group.until(lambda: not group["A"].runs, SOON)
        assert group["A"].ended == "excluded"
        group.settles()


@pytest.mark.parametrize("decides", ["majority", "all"])
def test_only_where_a_majority_decides_a_late_handover_is_a_reason_to_question_the_leader(decides: str) -> None:
    """Done does not reach B, and no later answer of A in the same stream.  Heartbeats of A arrive."""
    profile: Profile | str = majority("total") if decides == "majority" else "total"
    with scenario("A B C", profile=profile, **QUICK) as group:
        group.drop("Done", src="A", dest="B", count=1000)
        group.start("D")
        group.until(lambda: len(group["D"].view) == 4, SOON)
        questions = group.watch("Ready", src="B", dest="A")
        group.after(10)
        assert bool(questions.hits) == (decides == "majority")
        assert group["B"].view == (("B", "C", "D") if decides == "majority" else ("A", "B", "C", "D"))


def test_who_is_named_and_has_not_accepted_fetches_first() -> None:
    """The proposal does not reach C: the others decide without it.  C fetches what it lacks, also from members that
    have installed the view, and goes along."""
    with group_of("A B C D") as group:
        group.drop("nakack.Data", dest="C", count=3)
        group.drop("HighestSeq", dest="C")
        group.drop("Propose", dest="C")
        group["B"].sends(3)
        group.leave("D")
        goes_on(group, "A B C")
        assert group["C"].counters["decided without an answer"] == 1
        assert group["C"].delivered_from("B") == [1, 2, 3]
        group.settles()


def test_views_carry_the_id_of_their_history() -> None:
    """The founder draws it, each later view has it, and so have the journals.  A group that begins anew has another."""
    profile = majority("total")
    with scenario("A B C", profile=profile, journal=True, **QUICK) as group:
        group.crash("A")
        goes_on(group, "B C")
        (history,) = {view.history for member in group.members if (view := member.member.view) is not None}
        assert len(history) == HISTORY_DIGITS
        assert [group[name].journal.count(history.encode()) for name in "BC"] == [3, 2], "once for each view"
        group.crash("B")
        group.crash("C")
        group.start("A B")
        group.until(lambda: len(group["A"].view) == len(group["B"].view) == 2, SOON)
        view = group["A"].member.view
        assert view is not None
        assert view.history not in ("", history)


def test_the_journal_of_a_blocked_member_shows_when_it_stopped_and_went_on(tmp_path: Path) -> None:
    """It has no delivery between the two records.  A member that is excluded while it is blocked goes on nowhere."""
    with scenario("A B C D E", profile=majority("total"), journal=True, **QUICK) as group:
        for member in group.members:
            member.sends(60, every=0.1)
        for one, others in (("A B", "C D E"), ("C D", "E")):
            group.cut(one, others)
        group.after(5)
        group.mend("C D", "E")
        goes_on(group, "C D E")
        group.mend("A B", "C D E")
        group.until(lambda: sorted(group.world.running) == ["C", "D", "E"], SOON)
        group.settles()
        group.save_journals(tmp_path)
        kinds = {str(group.address(name)): records_of(tmp_path, str(group.address(name))) for name in "AC"}
    a, c = kinds.values()
    assert a[a.index("block") :] == ["block", "stop"]
    began, ended = c.index("block"), c.index("unblock")
    assert c[began : ended + 2] == ["block", "unblock", "view"]
    assert (c.count("block"), c.count("unblock")) == (1, 1)
    assert "deliver" in c[ended:]


def records_of(journals: Path, member: str) -> list[str]:
    """The kinds of the records that tell when the member delivered, in their order."""
    wanted = ("view", "deliver", "block", "unblock", "stop")
    segments = [segment for segment in find_segments([journals]) if member in str(segment.path)]
    parts = [part for part in read_segments(segments) if not isinstance(part, Quarantine)]
    rows = sorted((row["index"], row["kind"]) for part in parts for row in part.to_pylist())
    return [kind for _, kind in rows if kind in wanted]


def test_an_operator_vouches_for_members_that_are_gone() -> None:
    """Three of five die.  D and E are blocked until E learns from an operator that two of the dead are gone for good:
    both go on, under a new history id, and the dead come back as new members."""
    with group_of("A B C D E") as group:
        gone, before = [group.address(name) for name in "BC"], group["D"].member.view
        for name in "ABC":
            group.crash(name)
        stays_blocked(group, "D", 60.0)
        stays_blocked(group, "E", 1.0)
        for one in gone:
            group["E"].asks(Vouched(one))
        goes_on(group, "D E")
        after = group["D"].member.view
        assert before is not None
        assert after is not None
        assert after.history not in ("", before.history)
        assert told(group, "D") == told(group, "E") == ["Blocked", "Unblocked"]
        group.settles()
        group.start("A B C")
        group.until(lambda: len(group["D"].view) == 5, SOON)
        group.settles()
        view = group["A"].member.view
        assert view is not None
        assert view.history == after.history


@MEMBERSHIP
@pytest.mark.parametrize("pair", ["BD", "CD"])
def test_the_check_of_few_views_judges_a_process_that_joins_again_and_again(pair: str, profile: str) -> None:
    """One member does not reach D, which the leader admits whenever it is back, and then leaves out.  D joins ever more
    rarely: without its pauses the members go from view to view."""
    with group_of("A B C D", profile) as group:
        group.world.schedule = msgspec.structs.replace(group.world.schedule, rejoin=True)
        group.cut(*pair)
        Watch(group.world).look()
        group.after(3 * bound_of(Config(**QUICK)) / SECOND)
        assert group.judge.facts["few-views"] > 0
        assert len(group["A"].views) > 5, "D came back"


@MEMBERSHIP
def test_a_member_that_was_deaf_is_taken_along_soon_after_the_heal(profile: str) -> None:
    """A dies.  D is heard and hears nothing, so B and C are too few, and B begins attempts ever more rarely.  D hears
    again: its answers bring the next attempt at once."""
    with group_of("A B C D", profile) as group:
        group.cut("D", way="in")
        group.crash("A")
        group.until(lambda: told(group, "B") == ["Blocked"], SOON)
        group.after(100)
        group.mend("D", way="in")
        goes_on(group, "B C D", 3)


@pytest.mark.parametrize(("names", "goes", "stays"), [("A B C D", "C D", "B"), ("A B C", "B", "C")])
def test_an_operators_word_that_two_sides_have_does_not_let_both_go_on(names: str, goes: str, stays: str) -> None:
    """A dies, and the others are cut off from each other before they have a view without it.  An operator told all of
    them that A is gone for good.  C and D are most of the three others; of two others B is the first."""
    with group_of(names) as group:
        gone = group.address("A")
        group.drop("CollectAck", dest="B", count=1)
        group.crash("A")
        group.after(0.01)
        for name in [*goes.split(), stays]:
            group[name].asks(Vouched(gone))
        group.cut(stays, goes)
        group.after(10)
        assert group[stays].view == tuple(names.split())
        goes_on(group, goes)
        group.mend(stays, goes)
        group.until(lambda: sorted(group.world.running) == goes.split(), SOON)
        group.settles()


def test_the_word_of_an_operator_travels_in_collect() -> None:
    """A and B die, and an operator tells C that both are gone for good.  C asks Collect, and dies together with D.  E
    has the word from the Collect, and goes on alone when an operator tells it that C and D are gone, too."""
    with group_of("A B C D E") as group:
        gone = [group.address(name) for name in "AB"]
        group.drop("ReadyRsp", src="E", dest="C", count=1)  # so that the operator is in time
        group.drop("CollectAck", src="E", dest="C")
        asked = group.watch("Collect", src="C", dest="E")
        for name in "AB":
            group.crash(name)
        group.after(0.01)
        for one in gone:
            group["C"].asks(Vouched(one))
        group.until(lambda: bool(asked.hits), SOON, step=0.0001)
        group.after(0.001)
        also = [group.address(name) for name in "CD"]
        for name in "CD":
            group.crash(name)
        stays_blocked(group, "E")
        for one in also:
            group["E"].asks(Vouched(one))
        goes_on(group, "E")
        assert answers(group, "C") == ["taken", "taken"]


def test_the_word_of_an_operator_travels_in_the_answer_to_collect() -> None:
    """A and B die, and an operator tells E that both are gone for good.  E answers the Collect of C, and dies together
    with D.  C has the word from the answer, and goes on alone when an operator tells it that D is gone, too."""
    with group_of("A B C D E") as group:
        gone = [group.address(name) for name in "AB"]
        group.drop("Collect", src="C", dest="E", count=1)  # so that the operator is in time
        group.drop("CollectAck", src="D", dest="C")
        answered = group.watch("CollectAck", src="E", dest="C")
        for name in "AB":
            group.crash(name)
        group.after(0.01)
        for one in gone:
            group["E"].asks(Vouched(one))
        group.until(lambda: bool(answered.hits), SOON, step=0.0001)
        group.after(0.001)
        also = group.address("D")
        for name in "DE":
            group.crash(name)
        stays_blocked(group, "C")
        group["C"].asks(Vouched(also))
        goes_on(group, "C")
        assert answers(group, "E") == ["taken", "taken"]


def test_an_accepted_proposal_goes_into_the_new_history() -> None:
    """D and E have accepted a view with F when A, B and C die.  An operator vouches for B and C: the view is taken
    over, and it begins the new history."""
    with group_of("A B C D E") as group:
        group.drop("Accept", dest="A")
        gone, asked = [group.address(name) for name in "BC"], group.watch("Propose", dest="E")
        group.start("F")
        group.until(lambda: bool(asked.hits), SOON, step=0.0001)
        group.after(0.01)
        for name in "ABC":
            group.crash(name)
        stays_blocked(group, "D", 10.0)
        for one in gone:
            group["E"].asks(Vouched(one))
        goes_on(group, "D E F", 20)
        assert tuple("ABCDEF") in group["D"].views
        group.settles()


def test_an_operator_vouches_for_too_few() -> None:
    """Four of five die, and the last one is left.  As long as one of them may live, it is half of the others."""
    with group_of("A B C D E") as group:
        gone = [group.address(name) for name in "CDAB"]
        for name in "ABCD":
            group.crash(name)
        stays_blocked(group, "E")
        for one in gone[:3]:
            group["E"].asks(Vouched(one))
        group.after(60)
        assert told(group, "E") == ["Blocked"]
        group["E"].asks(Vouched(gone[3]))
        goes_on(group, "E")


def test_an_operator_vouches_for_a_process_that_lives() -> None:
    """A process that is heard has not ended, and one that was never in the view is no member.  Nothing changes."""
    with group_of("A B C") as group:
        living, me, stranger = group.address("B"), group.address("A"), Address("B", "0" * 16)
        for member in (living, me, stranger):
            group["A"].asks(Vouched(member))
        group.after(10)
        assert answers(group, "A") == ["alive", "alive", "unknown"]
        assert group["A"].view == ("A", "B", "C")
        group.settles()


def test_a_process_that_was_heard_lately_may_be_alive() -> None:
    """A is cut off, and the others end.  At first A heard them lately, and no operator can vouch for them.  When they
    are silent for long enough, one can."""
    with group_of("A B C") as group:
        gone = group.address("B")
        group.isolate("A")
        group.crash("B")
        group.crash("C")
        group["A"].asks(Vouched(gone))
        group.until(lambda: told(group, "A") == ["Blocked"], 20)
        assert answers(group, "A") == ["alive"]
        group["A"].asks(Vouched(gone))
        goes_on(group, "A")
        assert answers(group, "A") == ["alive", "taken"]


def test_a_member_that_is_not_needed_begins_no_history() -> None:
    """One of three dies, and an operator vouches for it: the others are a majority, and their history goes on."""
    with group_of("A B C") as group:
        before, gone = group["B"].member.view, group.address("A")
        group.drop("CollectAck", dest="B", count=1)  # so that the operator is in time
        group.crash("A")
        group.after(0.01)
        group["C"].asks(Vouched(gone))
        goes_on(group, "B C")
        assert answers(group, "C") == ["taken"]
        after = group["B"].member.view
        assert before is not None
        assert after is not None
        assert after.history == before.history


def test_joiners_do_not_outvote_the_members() -> None:
    """Four processes join a group of one at once: the first view with joiners has at most as many as go on."""
    with scenario("A B C D E", profile=majority("total"), formed=False, **QUICK) as group:
        group.start("A")
        group.until(lambda: group["A"].view == ("A",), SOON)
        group.start("B C D E")
        group.until(lambda: len(group["A"].view) == 5, SOON)
        sizes = [len(view) for view in group["A"].views]
        assert all(after <= 2 * before for before, after in pairwise(sizes)), sizes
