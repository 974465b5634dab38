"""Views and suspicion in a whole stack: who lives stays, who is gone goes, whoever dies in the middle of it."""

from __future__ import annotations

import pytest

from pygroups.core.address import Address
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.core.suspicion_events import Silent
from pygroups.core.view import ViewId
from pygroups.layers.gms.decisions.suspicion import Suspicion
from pygroups.layers.gms.heads import Accuse, Collect, Ready
from pygroups.layers.gms.layer import Gms
from pygroups.layers.unicast2 import heads as unicast2
from pygroups.sim import ScenarioGroup, scenario
from pygroups.sim.scenarios.player import Player
from tests.scenarios.common import MEMBERSHIP, QUICK


def agree(group: ScenarioGroup, names: str, within: float) -> None:
    """Soon exactly these are in a view, in this order."""
    wanted = tuple(names.split())
    group.until(lambda: all(group[name].view == wanted for name in wanted), within)


def test_VIEW_05() -> None:
    """B and C fall silent 100 ms apart; C is heard after a second: only B is taken for dead."""
    with scenario("A B C", heartbeat=250 * MILLISECOND, heartbeat_timeout=SECOND, verify_timeout=2 * SECOND) as group:
        group.isolate("B")
        group.after(0.1)
        group.isolate("C")
        group.after(2.0)
        assert group["A"].view == ("A", "B", "C")
        group.mend("C")
        agree(group, "A C", within=5)
        assert all("C" in view for view in group["A"].views[2:])


def test_VIEW_06() -> None:
    """Of five, E takes B for silent, and so do the others after it: B answers, and nobody holds it against B."""
    with scenario("A B C D E") as group:
        for name in "EACD":
            group[name].hears(Silent(group["B"].address))
            group.after(0.01)
        group.after(10)
        for member in group.members:
            assert member.view == ("A", "B", "C", "D", "E")
            assert not any(member.holds)


def test_VIEW_06_an_accusation_without_a_reason() -> None:
    """Of five, E accuses B to all others, although E hears B, and takes that back after half a second: B stays, and
    within ten seconds nobody holds a suspicion."""
    with scenario("A B C D E") as group:
        b, e, view = group.address("B"), group["E"], group["A"].view_id
        assert view is not None

        def accuse(suspects: dict[Address, Suspicion]) -> None:
            for name in "ABCD":
                gms_of(e).tell(group.address(name), Accuse(view, suspects))

        e.member.arrive(lambda: accuse({b: Suspicion.SILENT}))
        group.after(0.5)
        assert all(b in gms_of(group[name]).suspicions.accusations[e.address] for name in "ABCD")
        e.member.arrive(lambda: accuse({}))
        group.after(9.5)
        all_are_trusted(group)


def test_VIEW_06_an_accusation_that_is_taken_back() -> None:
    """E cannot hear B for a while and accuses B to all others, wrongly.  Ten seconds after the cut has ended nobody
    holds a suspicion or an accusation, and B stays."""
    with scenario("A B C D E", **QUICK) as group:
        group.cut("B", "E", way="out")
        group.until(lambda: all(gms_of(group[name]).suspicions.accusations for name in "AC"), within=5)
        group.mend("B", "E", way="out")
        group.after(10)
        all_are_trusted(group)


def all_are_trusted(group: ScenarioGroup) -> None:
    """All five are in the view, and none of them holds a suspicion or an accusation."""
    for member in group.members:
        assert member.view == ("A", "B", "C", "D", "E")
        assert not gms_of(member).suspicions.known
        assert not gms_of(member).suspicions.accusations
        assert not any(member.holds)


def gms_of(member: Player) -> Gms:
    return next(layer for layer in member.member.stack.layers if isinstance(layer, Gms))


@MEMBERSHIP
@pytest.mark.parametrize("leaves", ["all", "first", "nothing"])
@pytest.mark.parametrize("moment", ["Ready", "Collect", "Propose", "Install", "Done"])
def test_the_leader_dies_in_each_step(moment: str, leaves: str, profile: str) -> None:
    """E is gone, A leads the change, and dies with this head on the wire: to all, to one, or to nobody."""
    with scenario("A B C D E", profile=profile, **QUICK) as group:
        for name in "ABCD":
            group[name].sends(20, every=0.005)
        group.after(0.05)
        group.crash("A", moment=moment, leaves=leaves)  # type: ignore[arg-type]
        group.crash("E")
        agree(group, "B C D", within=15)
        group.settles()
        assert not group["A"].runs
        assert group["B"].delivered_from("D") == list(range(1, 21))
        if profile == "total":
            assert group["B"].delivered == group["C"].delivered == group["D"].delivered


@MEMBERSHIP
@pytest.mark.parametrize("moment", ["ReadyRsp", "CollectAck", "Accept", "InstallAck"])
def test_a_participant_dies_in_each_step(moment: str, profile: str) -> None:
    """E is gone, and C dies when it answers."""
    with scenario("A B C D E", profile=profile, **QUICK) as group:
        for name in "ABCD":
            group[name].sends(20, every=0.005)
        group.after(0.05)
        group.crash("C", moment=moment, leaves="nothing")
        group.crash("E")
        agree(group, "A B D", within=15)
        group.settles()
        assert not group["C"].runs
        assert group["B"].delivered_from("D") == list(range(1, 21))


@MEMBERSHIP
@pytest.mark.parametrize("moment", ["Ready", "Collect", "Propose", "Install", "Digest", "StateData"])
def test_the_leader_dies_while_somebody_joins(moment: str, profile: str) -> None:
    """D joins; A dies in the middle of taking it in: D is taken in by the others."""
    with scenario("A B C", profile=profile, **QUICK) as group:
        group["B"].sends(30, every=0.005)
        group.crash("A", moment=moment, leaves="first")
        group.start("D")
        agree(group, "B C D", within=20)
        group.settles()
        assert group["B"].delivered_from("B") == group["C"].delivered_from("B") == list(range(1, 31))
        group["D"].sends(3)
        group.settles()
        assert group["B"].delivered_from("D") == [1, 2, 3]


@MEMBERSHIP
@pytest.mark.parametrize("moment", ["Join", "ReadyRsp", "InstallAck"])
def test_the_joiner_dies_while_it_joins(moment: str, profile: str) -> None:
    """The joiner D dies in the middle of it: the others go on as before, and its name may come back."""
    with scenario("A B C", profile=profile, **QUICK) as group:
        group["B"].sends(30, every=0.005)
        group.start("D")
        group.crash("D", moment=moment)
        group.until(lambda: not group["D"].runs, within=5)
        group.start("D")
        agree(group, "A B C D", within=15)
        group.settles()
        assert group["A"].delivered_from("B") == list(range(1, 31))


@MEMBERSHIP
def test_the_last_two_leaders_die_one_after_the_other(profile: str) -> None:
    """A dies, B leads and dies with its Install at C alone, C hands it on."""
    with scenario("A B C D", profile=profile, **QUICK) as group:
        group["D"].sends(40, every=0.01)
        group.after(0.1)
        group.crash("B", moment="Install", leaves="first")
        group.crash("A")
        agree(group, "C D", within=15)
        group.settles()
        assert group["C"].delivered == group["D"].delivered
        assert group["C"].delivered_from("D") == list(range(1, 41))


@MEMBERSHIP
def test_a_member_wakes_up_in_the_others_flush(profile: str) -> None:
    """B is paused until the others begin to go on without it, and runs again in the middle of that."""
    with scenario("A B C", profile=profile, **QUICK) as group:
        collects = group.watch("Collect", dest="C", count=1)
        group["C"].sends(100, every=0.01)
        group.pause("B")
        group.until(lambda: bool(collects.hits), within=5)
        group.resume("B")
        group.settles()
        assert group["A"].delivered_from("C") == list(range(1, 101))


@pytest.mark.parametrize("head", [Ready, Collect])
def test_a_stranger_leads_nobody(head: type[Ready | Collect]) -> None:
    """X, which is no member, speaks of the group's view under the highest ballot there can be: it is dropped and
    counted, nobody stops, and the next view comes as ever."""
    with scenario("A B C") as group:
        view = group["A"].view_id
        assert view is not None
        stranger = ViewId(1 << 62, group.address("X"))
        for name in "ABC":
            group.inject("X", name, head(stranger, view), unicast2.Data(1, 0, 0, 0, True))
        group.after(0.1)
        group["B"].sends("b")
        group.after(1)
        assert group["C"].texts == ["b"]
        assert all(member.drops for member in group.members)
        group.crash("C")
        agree(group, "A B", within=10)
