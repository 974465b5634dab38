"""A member is paused for longer than the others need to suspect it, and checks its membership when it runs again.

Every scenario is judged by all promises, `checks-membership` among them.
"""

from __future__ import annotations

import pytest

from pygroups.layers.profiles import Profile
from pygroups.sim import scenario
from pygroups.sim.scenarios.group import ScenarioGroup
from tests.majority import majority
from tests.scenarios.common import BOTH, QUICK

LONG = 2.0  # seconds: longer than detection takes
ALL = pytest.mark.parametrize("profile", ["total", "fifo", majority("total"), majority("fifo")], ids=str)


def group_of(names: str, profile: str | Profile) -> ScenarioGroup:
    group = scenario(names, profile=profile, **QUICK)
    group.after(1)
    return group


def counted(group: ScenarioGroup, name: str) -> int:
    """How often this member was in doubt about its membership."""
    return group[name].counters.get("membership in doubt", 0)


@pytest.mark.parametrize("who", ["A", "C"])
@ALL
def test_a_member_that_was_left_behind_delivers_nothing_in_its_old_view(profile: str | Profile, who: str) -> None:
    """A is the coordinator: it would order its own message, and deliver it, and no other member ever would."""
    with group_of("A B C", profile) as group:
        rest = tuple(name for name in "ABC" if name != who)
        group.pause(who)
        group.until(lambda: all(group[name].view == rest for name in rest), within=10)
        group.after(LONG)
        group[who].sends(["stale"])
        group.resume(who)
        if isinstance(profile, Profile):
            group.until(lambda: group[who].ended == "excluded", within=5)
            assert "stale" not in group[who].texts
        else:
            group.settles(30)
            assert group[who].history[-3:] == [f"[{who}]", "stale", "[A B C]"]


@ALL
def test_all_members_are_paused_at_once_and_go_on_in_their_view(profile: str | Profile) -> None:
    """Nobody suspects anybody, and a round trip is all it takes."""
    with group_of("A B C", profile) as group:
        for name in "ABC":
            group.pause(name)
        group.after(LONG)
        for name in "ABC":
            group[name].sends([f"of {name}"])
            group.resume(name)
        group.after(0.1)
        for name in "ABC":
            assert sorted(group[name].texts) == ["of A", "of B", "of C"]
            assert group[name].view == ("A", "B", "C")
            assert counted(group, name) == 1


@BOTH
def test_who_is_left_alone_goes_on(profile: str) -> None:
    """The others ended during the pause: no answer comes, and the next view ends the doubt."""
    with group_of("A B C", profile) as group:
        group.pause("C")
        group.crash("A")
        group.crash("B")
        group.after(LONG)
        group["C"].sends(["mine"])
        group.resume("C")
        group.until(lambda: group["C"].view == ("C",) and "mine" in group["C"].texts, within=10)


@BOTH
def test_a_member_that_does_not_answer_is_waited_for_until_it_is_suspected(profile: str) -> None:
    """B hangs, and its last heartbeat is in A's socket: A goes on with C when B is suspected."""
    with group_of("A B C", profile) as group:
        for name in "ABC":
            group.pause(name)
        group.after(LONG)
        group["A"].sends(["mine"])
        group.resume("A")
        group.resume("C")
        group.after(0.3)
        assert "mine" not in group["A"].texts
        group.until(lambda: "mine" in group["A"].texts and group["A"].view == ("A", "C"), within=5)
        group.resume("B")
        group.settles(30)


@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_a_majority_is_enough_where_a_majority_decides(profile: str) -> None:
    with group_of("A B C", majority(profile)) as group:
        for name in "ABC":
            group.pause(name)
        group.after(LONG)
        group["A"].sends(["mine"])
        group.resume("A")
        group.resume("C")
        group.after(0.1)
        before = group["A"].view_id
        assert "mine" not in group["A"].texts, "B does not hold it"
        group.resume("B")
        group.until(lambda: "mine" in group["A"].texts, 1)
        assert group["A"].view_id == before
        group.settles(30)


@ALL
def test_a_short_pause_asks_nothing(profile: str | Profile) -> None:
    with group_of("A B C", profile) as group:
        group.pause("A")
        group.after(0.3)
        group["A"].sends(["mine"])
        group.resume("A")
        group.settles(30)
        assert counted(group, "A") == 0
        assert "mine" in group["C"].texts


@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_messages_in_the_socket_of_an_excluded_member_are_not_delivered(profile: str) -> None:
    """A majority decides.  A crashes, and only C, which is paused, has its last message: the others go on without C."""
    with group_of("A B C D E", majority(profile)) as group:
        group.pause("C")
        group.cut("A", "B D E")
        group["A"].sends(["last"])
        group.after(0.01)
        group.crash("A")
        group.until(lambda: group["B"].view == ("B", "D", "E"), within=10)
        group.resume("C")
        group.until(lambda: group["C"].ended == "excluded", within=10)
        assert "last" not in group["C"].texts
