"""A process that starts again with the folder of its journal answers for its former life, where a majority decides.

The ids are those of the scenarios in docs/layers/gms.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from pygroups.core.address import Address
from pygroups.core.events import Vouched
from pygroups.core.former import FormerLife
from pygroups.core.state_events import ViewWanted
from pygroups.core.view import ViewId
from pygroups.journal.frames import Frame, walk
from pygroups.journal.schema import FIELDS, PREFIX
from pygroups.journal.writer import MemoryJournal
from pygroups.sim import scenario
from pygroups.sim.scenarios.group import ScenarioGroup
from tests.majority import Notified, majority
from tests.scenarios.common import MEMBERSHIP, QUICK

SOON = 20.0  # seconds until a group goes on


KEPT: Final[dict[str, Any]] = {"folders": 1, "application": Notified, **QUICK}  # all keep their folders


def group_of(names: str, profile: str = "total", seed: int = 0, *, formed: bool = True) -> ScenarioGroup:
    return scenario(names, profile=majority(profile), formed=formed, seed=seed, **KEPT)


def told(group: ScenarioGroup, name: str) -> Notified:
    actor = group.actors[name]
    assert isinstance(actor, Notified)
    return actor


def history_of(group: ScenarioGroup, name: str) -> str:
    view = group[name].member.view
    assert view is not None
    return view.history


def id_of(group: ScenarioGroup, name: str) -> ViewId:
    view = group[name].member.view
    assert view is not None
    return view.id


def goes_on(group: ScenarioGroup, names: str, within: float = SOON) -> None:
    """Exactly these members are in one view, in any order."""
    view = names.split()
    group.until(lambda: all(sorted(group[name].view) == view for name in view), within)


def crashed(group: ScenarioGroup, names: str) -> None:
    for name in names.split():
        group.crash(name)


@MEMBERSHIP
def test_prim_05_two_of_three_come_back(profile: str) -> None:
    """The chain goes on in its history: the two answer for their former lives, and join."""
    for seed in range(5):
        with group_of("A B C", profile, seed) as group:
            history = history_of(group, "A")
            for member in group.members:
                member.sends(5, every=0.05)
            group.after(0.15)
            crashed(group, "B C")
            group.after(10)
            assert told(group, "A").news == ["Blocked"]
            group.start("B")
            goes_on(group, "A B")
            group.start("C")
            goes_on(group, "A B C")
            assert history_of(group, "A") == history_of(group, "B") == history
            assert told(group, "A").news == ["Blocked", "Unblocked"]
            group.settles()


def test_prim_05_two_of_three_come_back_without_folders() -> None:
    """The third one is blocked for as long as no operator vouches."""
    with group_of("A B C") as group:
        gone = group.address("B")
        crashed(group, "B C")
        for name in "BC":
            del group.world.folders[name]
        group.start("B C")
        group.after(60)
        assert group["A"].view == ("A", "B", "C")
        assert told(group, "A").news == ["Blocked"]
        assert group["B"].views == []
        group["A"].asks(Vouched(gone))
        goes_on(group, "A B C")


def test_prim_04_two_members() -> None:
    """The first dies, and the second is blocked until it is back.  The first of the next view goes on alone."""
    with group_of("A B") as group:
        history = history_of(group, "A")
        group.crash("A")
        group.after(30)
        assert told(group, "B").news == ["Blocked"]
        group.start("A")
        goes_on(group, "A B")
        assert group["B"].view == ("B", "A")
        assert history_of(group, "B") == history
        group.crash("A")
        goes_on(group, "B")
        group.settles()


@pytest.mark.parametrize("expect", [0, 3])
@MEMBERSHIP
def test_prim_03_all_die_and_return(profile: str, expect: int) -> None:
    """Two of three are blocked and say which one is missing, also when they would be enough.  The third one returns,
    and the group is born anew."""
    with scenario("A B C", profile=majority(profile, expect), formed=False, **KEPT) as group:
        group.start("A B C")
        goes_on(group, "A B C")
        history, gone = history_of(group, "A"), group.address("C")
        crashed(group, "A B C")
        group.start("A B")
        group.after(60)
        assert group["A"].views == group["B"].views == []
        assert str(gone) in told(group, "A").reasons[-1]
        assert told(group, "A").news[-1] == told(group, "B").news[-1] == "Blocked"
        group.start("C")
        goes_on(group, "A B C", 40)
        assert told(group, "A").news[-1] == "Unblocked"
        assert history_of(group, "A") == history_of(group, "C") != history
        group.settles()


@MEMBERSHIP
def test_a_joiner_that_never_learned_its_view_has_ended(profile: str) -> None:
    """A and B install a view with C, and all end before C has it.  The folder of C shows no view, and C has ended."""
    with group_of("A B", profile) as group:
        group.drop("Install", dest="C")
        group.start("C")
        group.until(lambda: "C" in group["A"].view and "C" in group["B"].view, SOON, step=0.0001)
        crashed(group, "A B C")
        group.world.rules.clear()
        group.start("A B C")
        goes_on(group, "A B C", 40)
        group.settles()


@MEMBERSHIP
def test_processes_that_never_learned_the_first_view_have_ended(profile: str) -> None:
    """The leader of the birth installs the first view alone, and all end.  The folders of the others show no view."""
    with scenario("A B C", profile=majority(profile, 3), formed=False, **KEPT) as group:
        group.drop("Install")
        group.start("A B C")
        group.until(lambda: any(group[name].views for name in "ABC"), SOON, step=0.0001)
        assert [bool(group[name].views) for name in "ABC"].count(True) == 1
        crashed(group, "A B C")
        group.world.rules.clear()
        group.start("A B C")
        goes_on(group, "A B C", 40)
        group.settles()


@pytest.mark.parametrize("unheard", ["Install", "First Install"])
@MEMBERSHIP
def test_a_process_that_never_learned_the_first_view_lives(profile: str, unheard: str) -> None:
    """All that installed the first view end, and are back.  C, which is named in it, lives, and has accepted the view
    or not even that: it gives up its place, and the group is born anew."""
    with scenario("A B C", profile=majority(profile, 3), formed=False, **KEPT) as group:
        group.drop("Call")
        group.start("A B C")
        group.after(1)  # now all know each other
        group.world.rules.clear()
        sent = group.watch("Install", dest="C")
        for head in unheard.split():
            group.drop(head, dest="C")
        group.until(lambda: bool(group["A"].view and group["B"].view), SOON, step=0.0001)
        assert group["A"].view == ("A", "B", "C") and not group["C"].views
        history = history_of(group, "A")
        crashed(group, "A B")
        group.world.rules.clear()
        group.drop("Call")
        group.after(10)
        group.start("A B")
        group.after(5)
        group.again(sent.hits[0])  # the installation of A arrives late
        group.after(5)
        assert not group["C"].views
        group.world.rules.clear()
        goes_on(group, "A B C", 40)
        assert group["C"].ended == "" and history_of(group, "C") != history
        group.settles()


@MEMBERSHIP
def test_members_ended_before_they_learned_the_first_view(profile: str) -> None:
    """B and C accept a first view, and end before they have it.  Their processes answer for them, and A, which
    has the view, goes on in the same history."""
    with scenario("A B C", profile=majority(profile, 3), formed=False, **KEPT) as group:
        group.drop("Install", dest="B C")
        group.start("A B C")
        group.until(lambda: any(group[name].views for name in "ABC"), SOON, step=0.0001)
        (leader,) = [name for name in "ABC" if group[name].views]
        history, others = history_of(group, leader), " ".join(name for name in "ABC" if name != leader)
        crashed(group, others)
        group.world.rules.clear()
        group.after(5)
        assert told(group, leader).news == ["Blocked"]
        group.start(others)
        goes_on(group, "A B C")
        assert history_of(group, leader) == history
        group.settles()


@MEMBERSHIP
def test_a_joiner_that_never_learned_its_view_lives(profile: str) -> None:
    """A and B install a view with C, and both end before C has it.  They are back: C gives up its place, and an
    installation that arrives late has no effect."""
    with scenario("A B C", profile=majority(profile, 3), formed=False, **KEPT) as group:
        group.start("A B")
        goes_on(group, "A B")
        sent = group.watch("Install", dest="C")
        group.drop("Install", dest="C")
        group.start("C")
        group.until(lambda: "C" in group["A"].view and "C" in group["B"].view and sent.hits, SOON, step=0.0001)
        history = history_of(group, "A")
        crashed(group, "A B")
        group.world.rules.clear()
        group.drop("Call")
        group.start("A B")
        group.after(5)
        group.again(sent.hits[0])
        group.after(5)
        assert not group["C"].views
        group.world.rules.clear()
        goes_on(group, "A B C", 40)
        assert group["C"].ended == "" and history_of(group, "C") != history
        group.settles()


@pytest.mark.parametrize("learns", ["", "C", "D"])
@MEMBERSHIP
def test_two_joiners_that_never_learned_their_view_live(profile: str, learns: str) -> None:
    """A and B install a view with C and D, and both end before these have it.  They are back: C gives up its place,
    and then D does.  If the installation arrives late at one of them before that, both go on in that history."""
    with scenario("A B C D", profile=majority(profile, 4), formed=False, **KEPT) as group:
        group.start("A B C")
        goes_on(group, "A B C")
        crashed(group, "C")
        goes_on(group, "A B")
        sent = {name: group.watch("Install", dest=name) for name in "CD"}
        group.drop("Install", dest="C D")
        group.start("C D")
        group.until(lambda: all({"C", "D"} <= {*group[name].view} for name in "AB"), SOON, step=0.0001)
        group.until(lambda: sent["C"].hits and sent["D"].hits, SOON, step=0.0001)
        history = history_of(group, "A")
        crashed(group, "A B")
        group.world.rules.clear()
        if learns:
            group.again(sent[learns].hits[0])
        group.start("A B")
        group.after(SOON)
        for name in "ABCD":
            if group[name].ended:
                group.start(name)
        goes_on(group, "A B C D", 40)
        assert learns or (group["C"].ended == group["D"].ended == "" and history_of(group, "C") != history)
        group.settles()


@MEMBERSHIP
def test_one_that_gave_up_its_place_ends_when_a_living_member_has_the_view(profile: str) -> None:
    """As before, and D does not hear that C gave up its place.  The installation arrives late at D, which goes on."""
    with scenario("A B C D", profile=majority(profile, 4), formed=False, **KEPT) as group:
        group.start("A B")
        group.start("C")
        goes_on(group, "A B C")
        crashed(group, "C")
        goes_on(group, "A B")
        sent = group.watch("Install", dest="D")
        group.drop("Install", dest="C D")
        group.start("C D")
        group.until(lambda: all({"C", "D"} <= {*group[name].view} for name in "AB") and sent.hits, SOON, step=0.0001)
        history = history_of(group, "A")
        crashed(group, "A B")
        group.world.rules.clear()
        group.start("A B")
        group.until(lambda: group["C"].counters["places given up in a former group"], SOON, step=0.0001)
        group.drop("Formerly", dest="D")
        group.again(sent.hits[0])
        group.until(lambda: group["D"].view, SOON)
        group.world.rules.clear()
        group.until(lambda: group["C"].ended == "excluded", SOON)
        group.start("C")
        goes_on(group, "A B C D", 40)
        assert history_of(group, "D") == history
        group.settles()


@MEMBERSHIP
def test_what_an_ended_process_told_of_a_folder_is_passed_on(profile: str) -> None:
    """All end.  A and C are back, and C tells that its former life has ended.  Then C ends again, and its folder is
    lost: B and the next C learn it from A."""
    with scenario("A B C", profile=majority(profile, 3), formed=False, **KEPT) as group:
        group.start("A B C")
        goes_on(group, "A B C")
        crashed(group, "A B C")
        group.start("A C")
        group.after(5)
        group.crash("C")
        del group.world.folders["C"]
        group.start("B C")
        goes_on(group, "A B C", 40)
        group.settles()


@MEMBERSHIP
def test_a_later_view_that_an_ended_process_told_of_is_passed_on(profile: str) -> None:
    """C ends, and the others one after the other.  E and C are back, and E tells C of its last view, without the
    others.  Then E ends again, and all folders but that of C are lost.  The others learn from C, whose own last view
    has all five, that it waits for nobody."""
    with scenario(
        "A B C D E", profile=majority(profile, 5), folders=1, application=Notified, formed=False, **QUICK
    ) as group:
        group.start("A B C D E")
        goes_on(group, "A B C D E")
        for gone, rest in (("C", "A B D E"), ("B", "A D E"), ("D", "A E"), ("A", "E")):
            crashed(group, gone)
            goes_on(group, rest)
        crashed(group, "E")
        group.start("C E")
        group.after(5)
        crashed(group, "E")
        for name in "ABDE":
            del group.world.folders[name]
            group.start(name)
            group.after(2)  # it hears of the view of five before there are enough for a birth
        goes_on(group, "A B C D E", 40)
        group.settles()


@pytest.mark.parametrize("learns", [False, True])
@MEMBERSHIP
def test_runs_of_a_view_are_lost_with_the_only_member_that_had_it(profile: str, learns: bool) -> None:
    """A decides a view with a message that B lacks, delivers it, and ends.  B learns of the view or not.  When A is
    back, B goes on in a new history."""
    with group_of("A B", profile) as group:
        history = history_of(group, "A")
        group.drop("nakack.Data", src="A")
        group["A"].sends(1)
        group.after(0.01)
        group.start("C")
        group.crash("A", "Install", leaves="all" if learns else "nothing")
        group.until(lambda: "A" not in group.world.running, SOON, step=0.0001)
        assert group["A"].delivered and group["A"].view == ("A", "B", "C") and group["B"].view == ("A", "B")
        group.world.rules.clear()
        group.after(3)
        assert group["B"].view == ("A", "B") and told(group, "B").news == ["Blocked"]
        assert (group["B"].counters["decided without an answer"] == 1) == learns
        group.start("A")
        goes_on(group, "A B C")
        assert not group["B"].delivered and group["B"].ended == "" and history_of(group, "B") != history
        group.settles()


@MEMBERSHIP
def test_an_operator_vouches_for_the_only_member_that_had_the_runs_of_a_view(profile: str) -> None:
    """The same, B learns of the view, and A lost its folder: B waits for the word of an operator."""
    with group_of("A B", profile) as group:
        history, gone = history_of(group, "A"), group.address("A")
        group.drop("nakack.Data", src="A")
        group["A"].sends(1)
        group.after(0.01)
        group.start("C")
        group.crash("A", "Install")
        group.until(lambda: "A" not in group.world.running, SOON, step=0.0001)
        group.world.rules.clear()
        del group.world.folders["A"]
        group.start("A")
        group.after(20)
        assert group["B"].view == ("A", "B") and group["B"].counters["decided without an answer"] == 1
        group["B"].asks(Vouched(gone))
        goes_on(group, "A B C")
        assert group["B"].ended == "" and history_of(group, "B") != history
        group.settles()


@MEMBERSHIP
def test_two_living_members_lack_the_runs_of_a_decided_view(profile: str) -> None:
    """A and B install a view with a message that C and D lack, and both end.  C and D learn of the view.  When A and B
    are back, C and D go on in a new history."""
    for seed in range(3):
        with group_of("A B C D", profile, seed) as group:
            history, before = history_of(group, "A"), id_of(group, "A")
            group.drop("nakack.Data", dest="C D")
            group["A"].sends(1)
            group.after(0.01)
            group["B"].asks(ViewWanted())
            group.until(
                lambda: (
                    before not in (id_of(group, "A"), id_of(group, "B"))  # noqa: B023
                    and all(group[name].counters["decided without an answer"] for name in "CD")
                ),
                SOON,
                step=0.0001,
            )
            assert group["A"].delivered and group["B"].delivered
            crashed(group, "A B")
            group.world.rules.clear()
            group.after(3)
            group.start("A")
            group.after(5)
            assert id_of(group, "C") == id_of(group, "D") == before
            group.start("B")
            goes_on(group, "A B C D")
            assert group["C"].ended == group["D"].ended == "" and history_of(group, "C") != history
            group.settles()


@pytest.mark.parametrize("joins", ["", "D"])
@MEMBERSHIP
def test_runs_of_a_view_are_lost_with_most_of_its_members(profile: str, joins: str) -> None:
    """A and B install a view with a message that C lacks, and both end.  C waits until both are back."""
    for seed in range(3):
        with group_of("A B C", profile, seed) as group:
            history, before = history_of(group, "A"), id_of(group, "A")
            group.drop("nakack.Data", dest="C")
            group.drop("Install", dest="C D")
            group["A"].sends(1)
            group.after(0.01)
            if joins:
                group.start("D")
            else:
                group["B"].asks(ViewWanted())
            group.until(lambda: before not in (id_of(group, "A"), id_of(group, "B")), SOON, step=0.0001)  # noqa: B023
            assert group["A"].delivered and group["B"].delivered
            crashed(group, "A B")
            group.world.rules.clear()
            group.after(3)
            group.start("A")
            group.after(5)
            assert len(group["C"].view) == 3
            group.start("B")
            goes_on(group, f"A B C {joins}")
            assert group["C"].ended == "" and history_of(group, "C") != history
            group.settles()


@MEMBERSHIP
def test_a_joiner_has_the_view_whose_runs_are_lost(profile: str) -> None:
    """A decides a view with a message that B lacks, and C joins with that view before A ends.  When A is back, either B
    begins a new history without C, or C goes on without B."""
    for seed in range(5):
        with group_of("A B", profile, seed) as group:
            group.drop("nakack.Data", src="A", dest="B")
            group.drop("Install", src="A", dest="B")
            group["A"].sends(1)
            group.after(0.01)
            group.start("C")
            group.until(lambda: group["C"].view, SOON, step=0.0001)
            assert group["B"].view == ("A", "B") and group["A"].delivered
            crashed(group, "A")
            group.world.rules.clear()
            group.after(3)
            group.start("A")
            group.after(SOON)
            for name in "BC":
                if group[name].ended:
                    group.start(name)
            goes_on(group, "A B C", 60)
            group.settles()


@MEMBERSHIP
def test_a_first_view_whose_members_have_all_ended_is_dropped(profile: str) -> None:
    """A, B and C accept a first view of A and B, and no process learns that.  A and B end, and are back."""
    with scenario("A B C", profile=majority(profile, 3), formed=False, **KEPT) as group:
        group.drop("Taken")
        group.start("A B")
        group.after(2)
        group.start("C")
        group.after(10)
        assert not any(group[name].views for name in "ABC")
        crashed(group, "A B")
        group.world.rules.clear()
        group.after(10)
        group.start("A B")
        goes_on(group, "A B C", 40)
        group.settles()


@MEMBERSHIP
def test_a_former_life_in_a_later_view_says_that_a_member_is_left_out(profile: str) -> None:
    """A and B go on without C, which is cut off, and end.  A is back, and C learns from it that it is left out."""
    with group_of("A B C", profile) as group:
        group.isolate("C")
        goes_on(group, "A B")
        crashed(group, "A B")
        group.start("A")
        group.mend("C")
        group.until(lambda: "C" not in group.world.running, SOON)
        assert group["C"].ended == "excluded"


@MEMBERSHIP
def test_a_former_life_says_that_a_member_is_left_out_when_its_process_is_in_a_new_group(profile: str) -> None:
    """C is paused before it gets its first view.  A and B go on without C, leave, and begin a new group.  The view
    reaches C late, and C learns from A or B that it is left out.  The new group has lower view ids than the former."""
    with scenario("A B C", profile=majority(profile, 3), formed=False, **KEPT) as group:
        group.start("A B")
        goes_on(group, "A B")
        sent = group.watch("Install", dest="C")
        group.drop("Install", dest="C")
        group.start("C")
        group.until(lambda: "C" in group["A"].view and sent.hits, SOON, step=0.0001)
        group.pause("C")
        goes_on(group, "A B")
        for name in "BA":
            group.leave(name)
            group.until(lambda name=name: name not in group.world.running, SOON)
        group.world.rules.clear()
        group.start("A B")
        goes_on(group, "A B")
        group.resume("C")
        group.again(sent.hits[0])
        group.until(lambda: group["C"].views, SOON)
        assert id_of(group, "C") > id_of(group, "A")
        group.until(lambda: "C" not in group.world.running, SOON)
        assert group["C"].ended == "excluded"
        group.start("C")
        goes_on(group, "A B C")
        group.settles()


def waits_for(*missing: Address) -> str:
    names = ", ".join(map(str, missing))
    return f"the group begins anew when all members of its last view are back; missing: {names}"


@pytest.mark.parametrize("expect", [0, 3])
@pytest.mark.parametrize("at", ["A", "B"])
@MEMBERSHIP
def test_an_operator_vouches_before_a_birth(profile: str, at: str, expect: int) -> None:
    """C does not return.  An operator vouches at one of the processes that returned: the other one hears of it.  Each
    learns once that it waits for two members, once that it waits for C, and is unblocked with the view."""
    with scenario("A B C", profile=majority(profile, expect), folders=1, application=Notified, formed=False) as group:
        group.start("A B C")
        goes_on(group, "A B C")
        history, lives = history_of(group, "A"), {name: group.address(name) for name in "ABC"}
        crashed(group, "A B C")
        group.start("A B")
        group.after(220)
        assert told(group, "A").reasons == [waits_for(lives["B"], lives["C"]), waits_for(lives["C"])]
        assert told(group, "B").reasons == [waits_for(lives["A"], lives["C"]), waits_for(lives["C"])]
        group[at].asks(Vouched(lives["C"]))
        goes_on(group, "A B")
        assert history_of(group, "A") != history
        assert told(group, at).answers == ["taken"]
        assert told(group, "A").news == told(group, "B").news == ["Blocked", "Blocked", "Unblocked"]


def test_a_process_is_unblocked_with_its_view() -> None:
    """A is back, B was, and an operator vouches for C: no member of the last view lives.  A alone is too few for a
    birth, and stays blocked until B is back."""
    with scenario("A B C", profile=majority("total", 3), formed=False, **KEPT) as group:
        group.start("A B C")
        goes_on(group, "A B C")
        gone = group.address("C")
        crashed(group, "A B C")
        group.start("A B")
        group.after(10)
        group.crash("B")
        group["A"].asks(Vouched(gone))
        group.after(30)
        assert told(group, "A").news == ["Blocked", "Blocked"]
        group.start("B")
        goes_on(group, "A B")
        assert told(group, "A").news == ["Blocked", "Blocked", "Unblocked"]


def test_a_process_without_a_folder_hands_the_word_of_an_operator_on() -> None:
    """B lost its folder.  It hears from A that C is missing, and an operator vouches at B for C and for the life of
    B."""
    with scenario("A B C", profile=majority("total", 3), formed=False, **KEPT) as group:
        group.start("A B C")
        goes_on(group, "A B C")
        gone = [group.address(name) for name in "BC"]
        crashed(group, "A B C")
        group.world.folders["B"].lives.clear()
        group.start("A B")
        group.after(10)
        for one in gone:
            group["B"].asks(Vouched(one))
        goes_on(group, "A B")
        assert told(group, "B").answers == ["taken", "taken"]


def test_an_operator_vouches_before_a_birth_for_a_member_that_lives() -> None:
    """A is back, and C lives in its last view.  No operator can vouch for C at A, until C has been silent for a
    while."""
    with group_of("A B C") as group:
        lives = group.address("C")
        crashed(group, "A B")
        group.until(lambda: told(group, "C").news == ["Blocked"], SOON)
        group.drop("ToFormer")
        group.start("A")
        group.after(5)
        group["A"].asks(Vouched(lives))
        group.after(5)
        group.crash("C")
        group["A"].asks(Vouched(lives))
        group.after(5)
        group["A"].asks(Vouched(lives))
        group.after(1)
        assert told(group, "A").answers == ["alive", "alive", "taken"]


@MEMBERSHIP
def test_what_a_former_life_accepted_is_repeated(profile: str) -> None:
    """A and B accept a view with D and without C.  A installs it alone and is cut off, and B dies.  B is back with its
    folder, and C is back, too: C learns the view from the former life of B, and makes no other.  When A is back, it
    goes on in its view."""
    for seed in range(4):
        with group_of("A B C", profile, seed) as group:
            group.isolate("C")
            group.drop("Install", src="A")
            group.start("D")
            group.until(lambda: len(group["A"].view) == 3 and "D" in group["A"].view, SOON, step=0.0001)
            group.isolate("A")
            group.crash("B")
            group.start("B")
            group.world.rules.clear()
            group.mend("C", "B D")
            group.after(20)
            assert group["C"].view == ("A", "B", "C")
            assert group["C"].runs
            group.mend("A")
            goes_on(group, "A B D", 60)
            group.until(lambda: "C" not in group.world.running, SOON)
            assert group["C"].ended == "excluded"
            group.settles()


@MEMBERSHIP
def test_a_view_that_a_former_life_installed_alone_is_handed_on(profile: str) -> None:
    """A decides a view with D as the first of two members, and is the only one that installs it.  B holds its cut, but
    has accepted nothing.  A dies and is back: B gets the view from its former life."""
    with group_of("A B", profile) as group:
        history = history_of(group, "A")
        group.drop("Propose", dest="B")
        group.drop("Install", src="A")
        group.start("D")
        group.until(lambda: len(group["A"].view) == 3, SOON, step=0.0001)
        decided = id_of(group, "A")
        group.crash("A")
        group.world.rules.clear()
        group.after(20)
        assert told(group, "B").news == ["Blocked"]
        group.start("A")
        group.until(lambda: id_of(group, "B") == decided, SOON, step=0.0001)
        goes_on(group, "A B D", 60)
        assert history_of(group, "B") == history
        group.settles()


@MEMBERSHIP
def test_a_view_whose_runs_ended_with_a_former_life_does_not_bind(profile: str) -> None:
    """The same, but B lacks a run of A, nobody else has it, and A lost its folder.  B takes the word of an operator for
    the end of A."""
    with group_of("A B", profile) as group:
        history, gone = history_of(group, "A"), group.address("A")
        group.drop("nakack.Data", src="A", dest="B")
        group.drop("Propose", dest="B")
        group.drop("Install", src="A")
        group["A"].sends(1)
        group.start("D")
        group.until(lambda: len(group["A"].view) == 3, SOON, step=0.0001)
        group.crash("A")
        group.world.rules.clear()
        del group.world.folders["A"]
        group.start("A")
        group.after(20)
        assert group["B"].view == ("A", "B")
        group["B"].asks(Vouched(gone))
        goes_on(group, "A B D", 60)
        assert history_of(group, "B") != history


@MEMBERSHIP
def test_a_member_that_accepted_learns_from_a_former_life_that_the_view_was_decided(profile: str) -> None:
    """A, B and C accept a view with D.  A installs it alone and dies, and so does C.  A is back: B enters the view, and
    then goes on with D."""
    with group_of("A B C", profile) as group:
        group.drop("Install", src="A")
        group.start("D")
        group.until(lambda: len(group["A"].view) == 4, SOON, step=0.0001)
        decided = id_of(group, "A")
        crashed(group, "A C")
        group.world.rules.clear()
        group.after(20)
        assert told(group, "B").news == ["Blocked"]
        group.start("A")
        group.until(lambda: id_of(group, "B") == decided, SOON, step=0.0001)
        goes_on(group, "A B D", 60)
        group.settles()


def test_a_process_beside_its_former_life_answers_for_nobody() -> None:
    """The lock of the folder belongs to the life that runs."""
    with group_of("A B C") as group:
        beside = group.world.start_beside("B", stranger=False)
        assert beside.env.former is None
        group.after(1)
        assert beside.ended


def test_a_former_life_of_a_view_that_is_over_changes_nothing() -> None:
    """B dies, and A and C go on.  B is back: it joins, and no member asks its former life."""
    with group_of("A B C") as group:
        group.crash("B")
        goes_on(group, "A C")
        group.start("B")
        goes_on(group, "A B C")
        assert not any(member.counters["former incarnations that are answered for"] for member in group.members)
        group.settles()


def test_the_journal_shows_the_former_life() -> None:
    """The records in the journal of a former life, among them those of the process that answers for it, give its last
    view, the ballot to which it is bound, and the proposal that it accepted."""
    with scenario("A B C", profile=majority("total"), folders=1, journal=True, **QUICK) as group:
        crashed(group, "B C")
        former = group.address("B")
        group.drop("Install", src="A")
        group.start("B")
        group.until(lambda: "C" not in group["A"].view, SOON)
        life = FormerLife(former)
        for record in records_of(group.world.lives[former].journal):
            life.take(*record)
        shown = group.world.folders["B"].lives[former]
        assert life.view is not None
        assert shown.view is not None
        assert shown.bound is not None
        assert [str(member) for member in shown.view.members] == list(life.view.members)
        assert str(shown.bound) == str(life.bound)
        assert life.accepted == shown.accepted != ""
        assert life.made == shown.made
        group.world.rules.clear()
        group.start("C")
        goes_on(group, "A B C")


def records_of(journal: MemoryJournal | None) -> Iterator[tuple[str, ViewId | None, dict[str, Any]]]:
    """The records in a journal: kind, view, and fields by their names."""
    assert journal is not None
    for part in walk(journal.getvalue()):
        for row in part.records if isinstance(part, Frame) else []:
            head = dict(zip(PREFIX, row, strict=False))
            fields = dict(zip(FIELDS[head["kind"]], row[len(PREFIX) :], strict=False))
            yield head["kind"], None if head["view"] is None else ViewId(*head["view"]), fields
