"""Two processes of one name on two sides: the older one ends, and the rest is one group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pygroups.core.merge_events import StaysApart
from pygroups.sim import scenario
from pygroups.sim.scenarios.group import ScenarioGroup
from pygroups.sim.world.member import SimulatedMember
from tests.merging import INTERVAL, QUICK

SOON = 30 * INTERVAL


@contextmanager
def group_of(names: str, profile: str, seed: int = 0) -> Iterator[ScenarioGroup]:
    """The world ends every second process of a name when it heals, so the promises are judged while time passes."""
    group = scenario(names, profile=profile, seed=seed, **QUICK)
    try:
        yield group
    except AssertionError as error:
        error.add_note(group.told())
        raise


def hides(group: ScenarioGroup, *names: str) -> None:
    """A joiner does not find these members."""
    for name in names:
        group.world.directory.members.pop(group[name].address, None)


def lives(group: ScenarioGroup) -> dict[SimulatedMember, tuple[str, ...]]:
    """The members of the view of each process that runs."""
    running = [one for one in group.world.lives.values() if not one.ended]
    return {one: tuple(m.name for m in one.view.members) if one.view else () for one in running}


def of_one_group(group: ScenarioGroup, *names: str) -> bool:
    views = [one.view.id if one.view else None for one in lives(group)]
    return len(set(views)) == 1 and all(sorted(view) == sorted(names) for view in lives(group).values())


each_profile = pytest.mark.parametrize("profile", ["fifo", "total"])


@each_profile
def test_a_name_used_again_on_the_other_side_of_a_split(profile: str) -> None:
    with group_of("A B C D", profile) as group:
        older = group["A"].member
        group.cut("A B", "C D")
        group.until(lambda: group["A"].view == ("A", "B") and group["C"].view == ("C", "D"), within=SOON)
        group["A"].sends(5)
        hides(group, "A", "B")
        group.mend("A", "C D")  # only the first host reaches both sides: its second process joins C and D
        newer = group.world.start_beside("A", stranger=False)
        group.until(lambda: newer.view is not None, within=SOON)
        group.heal()
        group.until(lambda: of_one_group(group, "A", "B", "C", "D"), within=SOON)
        assert older.ended == "name taken" and str(newer.address) in older.why_ended
        assert not newer.ended
        assert set(group["B"].delivered_from("A")) >= set(range(1, 6)), "the older process lost no message"


def test_sides_that_one_name_keeps_apart_tell_their_programs() -> None:
    """The older process is cut off from the news for a while: both sides hear why they stay apart, once."""
    with group_of("A B C", "total") as group:
        older = group["C"].member
        group.pause("C")
        group.until(lambda: sorted(group["A"].view) == ["A", "B"], within=SOON)
        newer = group.world.start_beside("C", stranger=False)
        group.until(lambda: newer.view is not None, within=SOON)
        group.drop("GiveWay")
        group.drop("MergeReq", src="C")  # as the leader of a merge the older process would see the newer one itself
        group.resume("C")

        def told() -> list[tuple[str, StaysApart]]:
            return [(one.who, one.what) for one in group._listener.heard if isinstance(one.what, StaysApart)]

        group.until(lambda: {who for who, _ in told()} >= {"A", "B"}, within=3 * SOON)
        assert {event.reason for _, event in told()} == {"names"}
        assert {event.detail for _, event in told()} == {f"{older.address} and {newer.address} have the same name"}
        assert len(told()) == len({(who, event.peer) for who, event in told()})
        group.world.rules.clear()
        group.until(lambda: bool(older.ended) and of_one_group(group, "A", "B", "C"), within=3 * SOON)


@each_profile
@pytest.mark.parametrize("names", ["A B", "A B C"])
@pytest.mark.parametrize("stopped", ["A", "B"])
def test_a_process_that_was_stopped_and_replaced_ends(stopped: str, names: str, profile: str) -> None:
    with group_of(names, profile) as group:
        older = group[stopped].member
        group.pause(stopped)
        others = [name for name in names.split() if name != stopped]
        group.until(lambda: sorted(group[others[0]].view) == others, within=SOON)
        newer = group.world.start_beside(stopped, stranger=False)
        group.until(lambda: newer.view is not None, within=SOON)
        group.resume(stopped)
        group.until(lambda: bool(older.ended) and of_one_group(group, *names.split()), within=SOON)
        assert older.ended == "name taken" and str(newer.address) in older.why_ended
        assert not newer.ended and len(group.world.lives) == len(names.split()) + 1
