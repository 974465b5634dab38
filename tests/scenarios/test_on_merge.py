"""on_merge: one side of a merge wins, and the members of the others take its state.  The checks of the simulator
judge the marks, the states and the gaps; these scenarios show which side wins, and what happens at faults."""

from __future__ import annotations

from typing import Any

import pytest

from pygroups.core.events import NewView
from pygroups.core.limits import MILLISECOND
from pygroups.sim.scenarios.group import ScenarioGroup, scenario
from pygroups.sim.schedules.schedule import Habits, OnMerge
from tests.merging import QUICK, whole
from tests.scenarios.common import MEMBERSHIP

SPLIT = {**QUICK, "state_timeout": 1_500 * MILLISECOND}


def split(group: ScenarioGroup, *sides: str) -> None:
    """Each of the sides gets a view of its own, and each member sends in it."""
    for number, side in enumerate(sides):
        for other in sides[number + 1 :]:
            group.cut(" ".join(side), " ".join(other))
    group.until(lambda: all(group[side[0]].view == tuple(side) for side in sides), within=8)
    for member in group.members:
        member.sends(5, every=0.02)
    group.after(0.3)


def mend(group: ScenarioGroup) -> None:
    group.world.network.mend_all()


def merges(group: ScenarioGroup) -> None:
    group.until(lambda: whole(group), within=20, step=0.01)


def replaced(group: ScenarioGroup) -> str:
    """The members whose state a merge replaced."""
    return "".join(sorted(name for name in group.world.running if group[name].counters["state replaced"]))


@MEMBERSHIP
@pytest.mark.parametrize(
    ("sides", "on_merge", "losers"),
    [
        (("AB", "CDE"), "keep", ""),
        (("AB", "CDE"), "primary", "AB"),  # more than half of the last primary view
        (("ABE", "CD"), "last", "CD"),
        (("A", "B", "CD", "E"), "primary", "ABE"),  # no side is primary: the largest wins
        (("A", "B", "C", "D", "E"), "primary", "BCDE"),  # ... and of equal ones that with the lowest address
        (("AB", "CDE"), "fails", ""),
        (("A", "BC", "DE"), "fails", ""),
    ],
)
def test_the_side_that_wins(profile: str, sides: tuple[str, ...], on_merge: OnMerge, losers: str) -> None:
    with scenario("A B C D E", profile=profile, on_merge=on_merge, **SPLIT) as group:
        split(group, *sides)
        mend(group)
        merges(group)
        group.settles()
        failed = sum(member.counters["merge without a winner"] for member in group.members)
        assert failed >= 1 if on_merge == "fails" else failed == 0
        assert replaced(group) == losers
        for member in group.members:
            member.sends(2)
        group.settles()


@MEMBERSHIP
@pytest.mark.parametrize("moment", ["MergeCollect", "MergePropose", "MergeInstall"])
def test_the_leader_dies_and_the_members_agree_on_the_winner(profile: str, moment: str) -> None:
    """The checks find two members of one merged view that know different winners."""
    for leaves in ("nothing", "some", "all"):
        with scenario("A B C D E", profile=profile, on_merge="last", **SPLIT) as group:
            split(group, "AB", "CDE")
            group.crash("A", moment, leaves=leaves)
            mend(group)
            group.until(lambda group=group: "A" not in group.world.running, within=20)  # type: ignore[misc]
            merges(group)
            group.settles()
            assert replaced(group) == "B"


@MEMBERSHIP
@pytest.mark.parametrize("victim", ["C", "D"])
def test_a_provider_dies_while_it_gives_the_state(profile: str, victim: str) -> None:
    with scenario("A B C D E", profile=profile, on_merge="last", **SPLIT) as group:
        split(group, "AB", "CDE")
        group.crash(victim, "StateData", leaves="nothing") if victim == "C" else group.later(0.5, group.crash, "D")
        mend(group)
        group.until(lambda: victim not in group.world.running, within=20)
        merges(group)
        group.settles()
        assert replaced(group) == "AB"


@MEMBERSHIP
def test_a_side_loses_twice(profile: str) -> None:
    """The states of the first merge are not there when the next split and merge come."""
    with scenario("A B C D E F", profile=profile, on_merge="last", **SPLIT) as group:
        split(group, "AB", "CD", "EF")
        group.drop("StateData", dest="A B")
        group.world.network.mend(group._links(["A", "B"], "C D", "both"))
        group.until(lambda: group["A"].view == ("A", "B", "C", "D"), within=20)
        mend(group)
        merges(group)
        group.world.rules.clear()
        group.settles()
        assert replaced(group) == "ABCD"
        assert group["A"].counters["state replaced"] == 2


@MEMBERSHIP
def test_a_side_without_a_state_cannot_win(profile: str) -> None:
    """C keeps no state, and a side without a state is not offered to the function."""
    with scenario("A B C", profile=profile, on_merge="last", formed=False, **SPLIT) as group:
        group.world.schedule.habits["C"] = Habits(state="keeps none")
        group.forms("A B C")
        split(group, "AB", "C")
        mend(group)
        merges(group)
        group.settles()
        assert replaced(group) == ""
        merged = [event for event in seen(group, "C") if event.winner is not None]
        assert [tuple(one.name for one in event.losers) for event in merged] == [("C",)]


def seen(group: ScenarioGroup, name: str) -> list[Any]:
    return [heard.what for heard in group._listener.heard if heard.who == name and isinstance(heard.what, NewView)]


@MEMBERSHIP
def test_a_joiner_that_waits_for_the_losing_state_gets_that_of_the_winner(profile: str) -> None:
    with scenario("A B D E", profile=profile, on_merge="last", **SPLIT) as group:
        split(group, "AB", "DE")
        group.drop("StateData", dest="C")
        group.cut("C", "D E")
        group.start("C")
        group.until(lambda: group["C"].view == ("A", "B", "C"), within=10)
        assert group["C"].member.state.waits
        mend(group)
        merges(group)
        group.world.rules.clear()
        group.settles()
        assert replaced(group) == "ABC"
        assert group["C"].counters["state lost"] == 0


@MEMBERSHIP
def test_a_state_lacks_what_an_earlier_merge_took_from_its_side(profile: str) -> None:
    """B brings the numbers of A to the side that wins, and not its state: so a mark says nothing about this state."""
    with scenario("A B C D E", profile=profile, on_merge="primary", **SPLIT) as group:
        split(group, "AB", "CDE")
        group.cut("A", "B")
        group.until(lambda: group["A"].view == ("A",) and group["B"].view == ("B",), within=8)
        group["A"].sends(2)
        group.after(0.3)
        group.mend("B", "C D E")
        group.until(lambda: group["B"].view == ("B", "C", "D", "E"), within=20)
        group.after(0.5)
        mend(group)
        merges(group)
        group.settles()
        assert replaced(group) == "AB"


@MEMBERSHIP
def test_a_side_that_went_on_without_the_state_does_not_win(profile: str) -> None:
    """B waits for the state of A, and is cut off from it.  B and C go on without it, and are primary."""
    with scenario("A", profile=profile, on_merge="primary", **SPLIT) as group:
        group["A"].sends(3)
        group.after(0.3)
        group.drop("StateData", src="A")
        group.start("B")
        group.start("C")
        group.until(lambda: group["C"].view == ("A", "B", "C"), within=8)
        group.cut("A", "B C")
        group.until(lambda: group["B"].counters["state lost"] == 1 and group["C"].view == ("B", "C"), within=8)
        group.after(1)
        assert group["C"].primary
        group["B"].sends(2)
        group.after(0.5)
        group.world.rules.clear()
        mend(group)
        merges(group)
        group.settles()
        assert replaced(group) == "BC"
