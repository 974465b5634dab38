"""`View.primary` comes back: after a restart, after a merge, and not while others may go on somewhere else."""

from __future__ import annotations

import pytest

from pygroups.core.address import Address
from pygroups.core.driver_events import Dead, Found
from pygroups.layers.merge2.layer import Merge2
from pygroups.sim import ScenarioGroup, scenario
from tests.merging import INTERVAL, QUICK, whole
from tests.scenarios.common import MEMBERSHIP


def primary(group: ScenarioGroup, name: str) -> bool:
    return group[name].primary


def sees_no_ends(group: ScenarioGroup) -> None:
    """Discovery shows the members, and is not sure that it shows all: as over a network."""
    find = group.world.directory.find

    def incomplete(who: Address, founding: bool = True) -> Found:
        found = find(who, founding)
        found.complete = False
        return found

    group.world.directory.find = incomplete  # type: ignore[method-assign]


def together(group: ScenarioGroup, names: str) -> bool:
    return all(group[name].view == tuple(names) for name in names)


@MEMBERSHIP
def test_the_first_of_two_crashes_and_starts_again(profile: str) -> None:
    """B is half of two, without the first: not primary.  The new A listens where the old one did, which is over."""
    with scenario("A B", profile=profile, **QUICK) as group:
        sees_no_ends(group)
        group.crash("A")
        group.until(lambda: together(group, "B"), within=10)
        group.after(10 * INTERVAL)
        assert not primary(group, "B"), "a firewall can refuse as well as a host without a process"
        group.start("A")
        group.until(lambda: together(group, "BA") and primary(group, "A") and primary(group, "B"), within=30 * INTERVAL)
        group.start("C")
        group.until(lambda: together(group, "BAC") and primary(group, "C"), within=10)


@MEMBERSHIP
def test_two_of_three_crash_at_once(profile: str) -> None:
    with scenario("A B C", profile=profile, **QUICK) as group:
        sees_no_ends(group)
        group.crash("A")
        group.crash("B")
        group.until(lambda: together(group, "C"), within=10)
        group.start("A")
        group.after(20 * INTERVAL)
        assert group["C"].view == ("C", "A") and not primary(group, "C"), "B may live"
        group.start("B")
        group.until(lambda: together(group, "CAB") and primary(group, "B"), within=30 * INTERVAL)


def test_discovery_sees_the_end_of_the_others() -> None:
    """As the locks of the kernel show it on one machine: B is primary again without a new A."""
    with scenario("A B", **QUICK) as group:
        group.crash("A")
        group.until(lambda: together(group, "B"), within=10)
        assert not primary(group, "B")
        group.until(lambda: primary(group, "B"), within=12 * INTERVAL)
        assert group["B"].view == ("B",)


def test_members_that_leave_are_no_electors() -> None:
    with scenario("A B C", **QUICK) as group:
        for name in "AB":
            group.leave(name)
            group.until(lambda name=name: name not in group["C"].view, within=10)  # type: ignore[misc]
            assert primary(group, "C")


@MEMBERSHIP
@pytest.mark.parametrize("sides", ["AB|CD", "ABC|DE", "A|B|C"])
@pytest.mark.parametrize("refused", [False, True])
def test_a_split_has_one_primary_side_at_most(sides: str, profile: str, refused: bool) -> None:
    """Also if a firewall refuses between the sides."""
    names, parts = sides.replace("|", ""), sides.split("|")
    with scenario(" ".join(names), profile=profile, **QUICK) as group:
        links = [(a, b) for one in parts for other in parts if one != other for a in one for b in other]
        group.world.judge.disturbed()
        group.world.network.cut(links, refused=refused)
        for link in links if refused else ():
            group.world.reset(*link)
        group.until(lambda: all(together(group, part) for part in parts), within=10)
        group.after(30 * INTERVAL)
        leads = [part for part in parts if primary(group, part[0])]
        assert leads == ([] if len(parts) == 3 else parts[:1])
        group.world.network.mend_all()
        group.until(lambda: whole(group) and all(primary(group, name) for name in names), within=20 * INTERVAL)


def test_the_side_that_lost_its_electors_does_not_follow_those_that_went_on() -> None:
    """C is cut off; D joins A and B, which crash and start again in D's view.  Now C reaches them, and D does not: C
    knows that A and B are over, and sees a view without itself."""
    with scenario("A B C", **QUICK) as group:
        group.cut("C")
        group.until(lambda: together(group, "AB") and together(group, "C"), within=10)
        group.start("D")
        group.cut("C", "D")
        group.until(lambda: together(group, "ABD"), within=10)
        for name in "AB":
            group.crash(name)
            group.until(lambda name=name: name not in group["D"].view, within=10)  # type: ignore[misc]
            group.start(name)
            group.until(lambda name=name: name in group["D"].view, within=10)  # type: ignore[misc]
        group.mend("C", "A B")
        group.after(30 * INTERVAL)
        assert group["C"].view == ("C",) and not primary(group, "C") and primary(group, "D")
        group.world.network.mend_all()
        group.until(lambda: whole(group) and primary(group, "C"), within=20 * INTERVAL)


def test_a_dead_member_is_forgotten() -> None:
    """An idle group does not dial the dead for ever: one whose end is certain never again, others some times."""
    with scenario("A B C D", **QUICK) as group:
        sees_no_ends(group)
        c, d = group["C"].address, group["D"].address
        for name in "CD":
            group.crash(name)
        group.until(lambda: together(group, "AB"), within=10)
        assert c in known(group, "A") and d in known(group, "A")
        group["A"].hears(Dead(c, certain=True))
        group.after(0.1)
        assert c not in known(group, "A") and c in known(group, "B")
        group.until(lambda: not known(group, "A") and not known(group, "B"), within=700 * INTERVAL, step=1)


def known(group: ScenarioGroup, name: str) -> dict[Address, object]:
    layers = group[name].member.stack.layers
    return next(layer.finding.known for layer in layers if isinstance(layer, Merge2))
