"""The first view where a majority decides: more than half of the expected processes decide it, and no lock.

The ids are those of the scenarios in docs/layers/gms.md.
"""

from __future__ import annotations

import pytest

from pygroups.core.layer import NEVER
from pygroups.sim import scenario
from pygroups.sim.scenarios.group import ScenarioGroup
from tests.majority import majority
from tests.scenarios.common import MEMBERSHIP, QUICK

SOON = 10.0  # seconds until a group is born, or goes on


def unborn(names: str, expect: int, profile: str = "total", seed: int = 0) -> ScenarioGroup:
    return scenario(names, profile=majority(profile, expect), formed=False, seed=seed, **QUICK)


def is_born(group: ScenarioGroup, names: str, within: float = SOON) -> str:
    """These members are in one view, in any order.  Returns the id of their history."""
    members = names.split()
    group.until(lambda: all(sorted(group[name].view) == members for name in members), within)
    (history,) = {view.history for name in members if (view := group[name].member.view) is not None}
    return history


@MEMBERSHIP
def test_prim_01_two_members_on_both_sides_of_a_split(profile: str) -> None:
    """Neither founds the group.  It heals: one primary chain."""
    with unborn("A B", 2, profile) as group:
        group.cut("A", "B")
        group.start("A B")
        group.after(60)
        assert group["A"].views == group["B"].views == []
        group.mend("A", "B")
        is_born(group, "A B", 40)
        assert group["A"].views == group["B"].views == [("A", "B")]
        group["B"].sends(3)
        group.settles()


def test_too_few_processes_found_nothing() -> None:
    """Two of five wait.  The third one makes them a majority, and the other two join."""
    with unborn("A B C D E", 5) as group:
        group.start("A D")
        group.after(60)
        assert group["A"].views == group["D"].views == []
        group.start("C")
        history = is_born(group, "A C D", 40)
        group.start("B E")
        assert is_born(group, "A B C D E") == history
        group.settles()


def test_each_side_of_a_split_may_be_the_majority() -> None:
    """Three of five are born on one side, and the others wait until they hear of the group."""
    with unborn("A B C D E", 5) as group:
        group.cut("A B", "C D E")
        group.start("A B C D E")
        history = is_born(group, "C D E")
        group.after(30)
        assert group["A"].views == group["B"].views == []
        group.mend("A B", "C D E")
        assert is_born(group, "A B C D E", 40) == history


@pytest.mark.parametrize("moment", ["Call", "Called", "First", "Taken", "Install"])
def test_a_process_dies_at_each_step_of_the_birth(moment: str) -> None:
    """The others are born all the same, with the view that was accepted or with another one."""
    died = 0
    for victim in "ABCDE":
        for leaves in ("some", "nothing"):
            with unborn("A B C D E", 5) as group:
                group.start("A B C D E")
                group.crash(victim, moment, leaves=leaves)
                group.until(lambda: any(group[name].view for name in "ABCDE"), SOON)
                runs = [name for name in "ABCDE" if name in group.world.running]
                died += len(runs) == 4
                for name in runs:
                    group[name].member.armed.clear()  # a victim that is not led to that step lives
                is_born(group, " ".join(runs), 20)
    assert died >= 2


@MEMBERSHIP
def test_a_decided_first_view_is_taken_over(profile: str) -> None:
    """The leader alone installs the first view and is cut off.  The other two cannot know that: they take the same
    view, and go on without the leader."""
    for seed in range(6):
        with unborn("A B C", 3, profile, seed) as group:
            group.drop("Call")
            group.start("A B C")
            group.after(1)  # now all know each other
            group.world.rules.clear()
            group.drop("Install")
            group.until(lambda: any(group[name].view for name in "ABC"), SOON, step=0.0001)
            (leader,) = [name for name in "ABC" if group[name].view]
            born, others = group[leader].member.view, [name for name in "ABC" if name != leader]
            assert born is not None
            group.isolate(leader)
            group.world.rules.clear()
            history = is_born(group, " ".join(others), 20)
            assert history == born.history
            assert group[others[0]].views[0] == group[leader].views[0] == tuple("ABC")
            group.mend(leader)
            group.until(lambda: leader not in group.world.running, SOON)  # noqa: B023
            assert group[leader].ended == "excluded"


def test_a_late_proposal_is_refused() -> None:
    """The proposal of A is late.  C, which cannot reach A, leads meanwhile and decides a view with B, which does not
    learn it.  Then the proposal of A arrives at B, and C is cut off: A and B take the view of C."""
    with unborn("A B C", 3) as group:
        group.drop("Call")
        group.start("A B C")
        group.after(1)  # now all know each other
        group.world.rules.clear()
        group.drop("Call", src="B")
        group.drop("Install", src="C")
        group.cut("A", "C")
        proposed = group.watch("First", src="A", dest="B")
        group.drop("First", src="A")
        group.until(lambda: bool(proposed.hits and group["C"].view), 40, step=0.0001)
        group.again(proposed.hits[0])
        group.isolate("C")
        group.world.rules.clear()
        group.until(lambda: bool(group["B"].view), 20)
        assert group["B"].view_id == group["C"].view_id
        group.heal()
        is_born(group, "A B C", 60)


def test_two_leaders_of_a_birth() -> None:
    """A and B both call the others, and do not hear each other.  One first view comes of it."""
    for seed in range(10):
        with unborn("A B C D", 4, seed=seed) as group:
            group.cut("A", "B")
            group.start("A B C D")
            group.until(lambda: len({group[name].view for name in "CD"} - {()}) > 0, 40)
            group.mend("A", "B")
            is_born(group, "A B C D", 40)


def test_a_process_that_hears_of_a_living_group_founds_none() -> None:
    """Two of three die and come back without any memory.  They are a majority of the expected processes, but C lives:
    they wait for it as long as it is blocked."""
    with unborn("A B C", 3) as group:
        group.start("A B C")
        history = is_born(group, "A B C")
        group.crash("A")
        group.crash("B")
        group.start("A B")
        group.after(60)
        assert group["A"].views == group["B"].views == []
        group.crash("C")
        assert is_born(group, "A B", 40) != history


def test_a_process_that_heard_of_a_living_group_waits_for_a_late_answer_of_discovery() -> None:
    """C is dead, and A alone is the primary component of the view of A and C.  B and a new C are a majority of the
    expected processes.  Discovery names A to them, and each answer takes up to a second.  They join A."""
    for seed in range(4):
        with unborn("A B C", 3, seed=seed) as group:
            group.start("A C")
            history = is_born(group, "A C")
            group.crash("C")
            is_born(group, "A")
            group.world.directory.mislead("late", NEVER)
            group.cut("A", "B C")  # A answers no Join
            group.start("B C")
            group.after(20)
            assert group["B"].views == group["C"].views == []
            group.mend("A", "B C")
            assert is_born(group, "A B C") == history


def test_a_group_with_another_number_is_not_joined_at_its_birth() -> None:
    """A process that expects another number of processes takes no part."""
    with unborn("A B C", 3) as group:
        group.start("A B C")
        for name in "BC":
            group[name].member.env.expect = 2
        is_born(group, "B C")
        group.until(lambda: len(group["A"].view) == 3, SOON)
        assert group["B"].drops["birth of another profile"] or group["C"].drops["birth of another profile"]
