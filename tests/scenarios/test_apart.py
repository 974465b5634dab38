"""Two groups of one name that were born apart with different settings never become one group.

Each group goes on by itself: processes join, leave and crash in it as if the other group were not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pytest

from pygroups.core.address import Address
from pygroups.core.driver_events import Found
from pygroups.core.layer import Env
from pygroups.core.limits import Config
from pygroups.core.merge_events import StaysApart
from pygroups.core.stack import Stack
from pygroups.sim import scenario
from pygroups.sim.scenarios.group import ScenarioGroup
from pygroups.sim.schedules.steps import Way
from pygroups.sim.world.on_merge import choose
from pygroups.sim.world.stacks import builder_of
from tests.merging import INTERVAL, QUICK

LONG: Final = 60 * INTERVAL  # in a third of this time groups with the same settings are one
ONE, OTHER = "AB", "CD"
LATER = {"E": ONE, "F": OTHER}
BORN: Final = {"A": ("A", "B"), "B": ("A", "B"), "C": ("C", "D"), "D": ("C", "D")}


def another_profile(env: Env) -> str:
    return "fifo"


def another_window(env: Env) -> str:
    env.config = Config(**{**QUICK, "window": 1 << 19})
    return "total"


def another_on_merge(env: Env) -> str:
    choose(env, "primary")
    return "total"


DIFFERENCES: Final[dict[Callable[[Env], str], str]] = {
    another_profile: "this group has profile=total, the other profile=fifo",
    another_window: "this group has window=1048576, the other window=524288",
    another_on_merge: "this group has on_merge=keep, the other on_merge=primary",
}
each_difference = pytest.mark.parametrize("differs", DIFFERENCES, ids=lambda differs: differs.__name__)


def side_of(name: str) -> str:
    return ONE if name in ONE or LATER.get(name) == ONE else OTHER


@dataclass
class Apart:
    """Two groups, and the network between them."""

    group: ScenarioGroup
    all_see_all: bool = False

    def meet(self) -> None:
        """The network heals: the members of the two groups can find and reach each other.  Joiners still find the
        members of one side only."""
        self.group.mend(list(ONE), list(OTHER))
        self.group.after(LONG)

    def heard(self, name: str) -> list[tuple[str, str]]:
        """The processes that stay apart, as the application of `name` hears of them, with the reasons."""
        heard = [one.what for one in self.group._listener.heard if one.who == name]
        return [(event.peer.name, event.detail) for event in heard if isinstance(event, StaysApart)]

    def views(self) -> dict[str, tuple[str, ...]]:
        return {member.name: member.view for member in self.group.members}


@contextmanager
def born_apart(differs: Callable[[Env], str] | None) -> Iterator[Apart]:
    """A, B and C, D, with other settings at C, D, E and F.

    The promises of `fifo`, which both profiles keep, are judged while time passes.  At the end they are not: there they
    demand one group.
    """
    group = scenario([*ONE, *OTHER, *LATER], profile="fifo", formed=False, **QUICK)
    world, there = group.world, Apart(group)
    find = world.directory.find

    def built(env: Env) -> Stack:
        plain = differs is None or side_of(env.me.name) == ONE
        return builder_of("total" if plain else differs(env))(env)  # type: ignore[misc]

    def found(who: Address, founding: bool = True) -> Found:
        """A process without a view finds the members of its side, over a directory that each side has alone."""
        members, side = world.directory.members, side_of(who.name)
        if there.all_see_all or who in members:
            return find(who, founding)
        here = {one: contact for one, contact in members.items() if side_of(one.name) == side}
        return Found(here, founding and not here)

    world.build, world.directory.find = built, found  # type: ignore[method-assign]
    try:
        group.cut(list(ONE), list(OTHER))
        for name in (*ONE, *OTHER):
            group.start(name)
            group.until(lambda name=name: bool(group[name].view), within=5)  # type: ignore[misc]
        group.until(lambda: there.views() == BORN, within=5)
        yield there
    except AssertionError as error:
        error.add_note(group.told())
        raise


def test_groups_with_the_same_settings_merge() -> None:
    """The control: without a difference the two sides become one group."""
    with born_apart(None) as there:
        there.meet()
        assert set(there.views().values()) == {("A", "B", "C", "D")}
        assert there.heard("A") == []


@each_difference
def test_groups_with_other_settings_stay_apart_and_hear_why_once(differs: Callable[[Env], str]) -> None:
    with born_apart(differs) as there:
        there.meet()
        assert there.views() == BORN
        why = DIFFERENCES[differs]
        for name in ONE:
            assert sorted(there.heard(name)) == [("C", why), ("D", why)]
        for name in OTHER:
            heard = sorted(there.heard(name))
            assert [peer for peer, _ in heard] == ["A", "B"]
            assert all(detail.startswith("this group has ") and detail != why for _, detail in heard)


@each_difference
def test_each_group_goes_on_and_delivers_nothing_of_the_other(differs: Callable[[Env], str]) -> None:
    """Messages, a join, a crash and a leave in each group, while each member knows the members of the other group."""
    with born_apart(differs) as there:
        group = there.group
        there.meet()
        for name in (*ONE, *OTHER):
            group[name].sends([f"from {name}"])
        group.start("E")
        group.start("F")
        group.until(lambda: group["E"].view == ("A", "B", "E") and group["F"].view == ("C", "D", "F"), within=10)
        group.crash("A")
        group.leave("D")
        group.until(lambda: group["B"].view == ("B", "E") and group["C"].view == ("C", "F"), within=10)
        group["E"].sends(["from E"])
        group["F"].sends(["from F"])
        group.after(LONG)
        assert there.views() == {"B": ("B", "E"), "E": ("B", "E"), "C": ("C", "F"), "F": ("C", "F")}
        assert sorted(group["B"].texts) == ["from A", "from B", "from E"]
        assert sorted(group["C"].texts) == ["from C", "from D", "from F"]
        for member in group.members:
            assert member.unsent == 0
            assert "malformed packet" not in member.drops


@each_difference
def test_a_joiner_that_finds_both_groups_joins_the_one_with_its_settings(differs: Callable[[Env], str]) -> None:
    """A, B, C and D are in one directory.  E and F each ask three of them, so a member of the other group refuses."""
    with born_apart(differs) as there:
        there.meet()
        there.all_see_all = True
        group = there.group
        group.start("E")
        group.start("F")
        group.until(lambda: group["E"].view == ("A", "B", "E") and group["F"].view == ("C", "D", "F"), within=5)


@each_difference
def test_a_joiner_that_finds_only_the_other_group_is_refused(differs: Callable[[Env], str]) -> None:
    """F has the settings of C and D, which have crashed.  A and B refuse F."""
    with born_apart(differs) as there:
        there.meet()
        there.all_see_all = True
        group = there.group
        group.crash("C")
        group.crash("D")
        group.start("F")
        group.after(2)
        (ended,) = [life for life in group.world.lives.values() if life.address.name == "F"]
        assert (ended.ended, ended.why_ended) == (
            "refused",
            DIFFERENCES[differs].replace("this group", "the group").replace("the other", "the joiner"),
        )


@pytest.mark.parametrize("profile", ["fifo", "total"])
@pytest.mark.parametrize("way", ["both", "out"])
def test_sides_that_one_cut_link_keeps_apart_hear_why_once(way: Way, profile: str) -> None:
    """A and C never hear each other again, the other links work: each member of both sides gets the reason."""

    def heard(name: str) -> list[tuple[str, str]]:
        events = [one.what for one in group._listener.heard if one.who == name]
        return [(event.reason, event.detail) for event in events if isinstance(event, StaysApart)]

    with scenario("A B C D", profile=profile, **QUICK) as group:
        group.cut("A B", "C D")
        group.until(lambda: group["A"].view == ("A", "B") and group["C"].view == ("C", "D"), within=10)
        group.cut("A", "C", way=way)
        group.mend("A B", "C D")
        group.after(LONG)
        for member in group.members:
            assert member.view in (("A", "B"), ("C", "D"))
            ((reason, detail),) = heard(member.name)
            assert reason == "links" and "A@" in detail and "C@" in detail
        group.mend("A", "C", way=way)
        group.until(lambda: group["A"].view == ("A", "B", "C", "D"), within=10)


def test_a_cut_that_ends_is_no_reason_to_report() -> None:
    with scenario("A B C D", **QUICK) as group:
        group.cut("A B", "C D")
        group.after(LONG)
        group.heal()
        group.until(lambda: group["A"].view == ("A", "B", "C", "D"), within=10)
        group.after(LONG)
        assert not [one for one in group._listener.heard if isinstance(one.what, StaysApart)]
