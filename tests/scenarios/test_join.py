"""Joining: views that everybody has, and a digest that neither skips nor waits for what nobody sends."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pygroups.core.address import Address
from pygroups.core.driver_events import Answered
from pygroups.core.events import Event, NewView
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.core.view import ViewId
from pygroups.layers.gms.layer import Gms
from pygroups.layers.profiles import PROFILES
from pygroups.layers.stable.votes import Vote, Votes
from pygroups.sim.promises.facts import Check
from pygroups.sim.scenarios.apps import Acting, messages_of
from pygroups.sim.scenarios.group import scenario
from pygroups.sim.schedules.schedule import Habits
from tests.scenarios.common import BOTH


def test_JOIN_02() -> None:
    """A vote that reports two of three members, and an older vote, lower nothing, and the third member is kept."""
    a, b, c = members = tuple(Address(name, "0") for name in "ABC")
    votes, view = Votes(members), ViewId(1, a)

    def vote(number: int, delivered: list[int], seen: list[int]) -> Vote:
        return Vote(view, number, delivered, seen, delivered, delivered)

    votes.add(a, vote(1, [10, 30, 50], [10, 30, 50]), 0)
    votes.add(a, vote(2, [11, 30, 0], [11, 35, 0]), 0)
    assert (votes.last[a].delivered, votes.last[a].seen) == ([11, 30, 50], [11, 35, 50])
    votes.add(a, vote(2, [11, 30, 0], [11, 35, 0]), 0)
    votes.add(a, vote(1, [9, 29, 49], [9, 29, 49]), 0)
    assert (votes.last[a].delivered, votes.last[a].seen) == ([11, 30, 50], [11, 35, 50])
    for one in (b, c):
        votes.add(one, vote(1, [12, 31, 51], [12, 31, 51]), 0)
    msg = votes.combined(view, 1)
    assert (msg.purge, msg.seen) == ([11, 30, 50], [12, 35, 51])


def test_JOIN_03() -> None:
    """Two connect; right after each connect the view has the right size, at both the same."""
    with scenario("A B", formed=False) as group:
        group.start("A")
        group.until(lambda: bool(group["A"].view), within=2)
        assert group["A"].view == ("A",)
        group.start("B")
        group.until(lambda: bool(group["B"].view), within=2)
        assert group["A"].view == group["B"].view == ("A", "B")
        assert group["A"].view_id == group["B"].view_id


@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_JOIN_04(profile: str) -> None:
    """Two members, one multicast each: each receives both."""
    with scenario("A B", profile=profile) as group:
        group["A"].sends("a")
        group["B"].sends("b")
        group.settles()
        assert sorted(group["A"].texts) == sorted(group["B"].texts) == ["a", "b"]


@pytest.mark.parametrize("seed", range(10))
def test_JOIN_07(seed: int) -> None:
    """Ten start at the same moment, and their applications are slow: within five seconds one view."""
    names = "A B C D E F G H I J"
    with scenario(names, formed=False, seed=seed, habits=Habits(reads_after=100 * MILLISECOND)) as group:
        group.start(names)
        group.until(lambda: all(len(member.view) == 10 for member in group.members), within=5)
        assert len({member.view for member in group.members}) == 1


class Replies:
    """A greets whoever joins, in the turn of the view; whoever is greeted answers at once."""

    def __init__(self, acting: Acting) -> None:
        self.acting = acting

    def on_event(self, event: Event) -> None:
        if isinstance(event, NewView) and self.acting.me.name == "A":
            for joiner in event.joined:
                if joiner != self.acting.me:
                    self.acting.send(b"hello " + joiner.name.encode())
                    self.acting.tell(joiner, b"psst")
        for message in messages_of(event):
            if message.text == f"hello {self.acting.me.name}":
                self.acting.send(b"thanks")


def test_JOIN_10() -> None:
    """What is sent to a joiner arrives before the joiner has its view, and its handler sends a reply."""
    with scenario("A B C", application=Replies, formed=False) as group:
        group.forms("A B")
        lost = group.drop("Install", dest="C")
        group.start("C")
        group.until(lambda: "C" in group["A"].view, within=2)
        group.after(0.3)
        assert not group["C"].view
        lost.stop()
        group.settles()
        assert group["A"].texts == ["hello B", "thanks", "hello C", "thanks"]
        assert group["C"].texts == ["hello C", "thanks"]
        assert [message.text for message in group["C"].received] == ["psst"]


class LayersOfViews(Check):
    """The layers of a member for which the check `views-in-order` judged that they got a view, for each view."""

    def __init__(self) -> None:
        self.judged: dict[tuple[str, ViewId], list[str]] = {}

    def passed_layers(self, member: Address, view: ViewId, layers: Mapping[str, list[ViewId]]) -> None:
        self.judged[member.name, view] = list(layers)


def test_JOIN_13() -> None:
    """B's first view is held for seconds below it; C joins meanwhile: B ends in the view of three, everywhere in it.

    The check `views-in-order` of every scenario judges that each layer gets each view.
    """
    passed = LayersOfViews()
    with scenario("A B C", formed=False, checks=[passed]) as group:
        group.start("A")
        group.until(lambda: bool(group["A"].view), within=2)
        held = group.delay("Install", dest="B", by=3.0, count=1)
        group.start("B")
        group.until(lambda: bool(held.hits), within=2)
        group.start("C")
        group.until(lambda: all(group[name].view == ("A", "B", "C") for name in "ABC"), within=15)
        group.after(4)
        for name in "ABC":
            assert group[name].view == ("A", "B", "C")
            layers = [layer.__name__ for layer in PROFILES["total"].layers if not issubclass(layer, Gms)]
            assert passed.judged[name, group[name].view_id] == layers
        group["B"].sends(5)
        group.settles()
        assert group["C"].delivered_from("B") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_JOIN_15(profile: str) -> None:
    """The coordinator gives the digest; ten more messages follow and may be forgotten, before the joiner installs."""
    with scenario("A B", profile=profile, stable_period=10 * MILLISECOND, stable_bytes=100) as group:
        group["A"].sends(35)
        group.settles()
        lost = group.drop("Install", dest="C")
        group.start("C")
        group.until(lambda: group["A"].view == group["B"].view == ("A", "B", "C"), within=5)
        group["A"].sends(10, size=200)
        group["B"].sends(10, size=200)
        group.after(0.2)
        assert not group["C"].view
        lost.stop()
        group.settles()
        assert group["C"].delivered_from("A") == list(range(36, 46))
        assert group["C"].delivered_from("B") == list(range(1, 11))


def test_the_digest_35_36_37() -> None:
    """A's digest is 35; number 36 is sent while D joins, 37 when it has: D begins with 36 and lacks nothing."""
    with scenario("A B C") as group:
        group["A"].sends(35)
        group.settles()
        lost = group.drop("Install", dest="D")
        group.start("D")
        group.until(lambda: "D" in group["A"].view, within=5)
        group["A"].sends(1)
        group.until(lambda: group["B"].delivered_from("A")[-1] == 36, within=1)
        assert not group["D"].view
        lost.stop()
        group.until(lambda: "D" in group["D"].view, within=5)
        group["A"].sends(1)
        group.settles()
        assert group["D"].delivered_from("A") == [36, 37]
        assert group["B"].delivered_from("A") == list(range(1, 38))


def test_a_name_comes_back_at_once() -> None:
    """C crashes and starts again before anybody has noticed: its former life is verified and replaced."""
    with scenario("A B C", heartbeat_timeout=20 * SECOND) as group:
        former = group["C"].address
        group.crash("C")
        group.start("C")
        group.until(lambda: bool(group["C"].view), within=10)
        assert group["C"].address != former
        assert group["A"].view == ("A", "B", "C")
        assert group.world.running["A"].view is not None
        assert group["C"].address in group.world.running["A"].view.members


@BOTH
def test_an_answer_from_before_the_end_refuses_no_restart(profile: str) -> None:
    """B ends and starts again.  The answer of the first B to an earlier question comes when the coordinator has just
    asked whether that B lives: the name is free all the same."""
    with scenario("A B C", profile=profile) as group:
        former = group["B"].address
        group.cut("A", "B")  # A learns of the end late
        group.crash("B")
        group.start("B")
        group.mend("A", "B")
        (gms,) = [layer for layer in group["A"].member.stack.layers if isinstance(layer, Gms)]
        group.until(lambda: former in gms.leading.admission.contested, within=2, step=0.00002)
        group["A"].hears(Answered(former))
        group.until(lambda: group["B"].view == ("A", "C", "B"), within=10)
        assert group["B"].ended == ""
