"""Leaving: who stays agrees, who goes is told, and nobody's message is lost with it."""

from __future__ import annotations

import pytest

from pygroups.sim.scenarios.group import ScenarioGroup, scenario

TEN = "A B C D E F G H I J"


def agree(group: ScenarioGroup, names: str, within: float) -> None:
    """Soon exactly these are in a view, in this order, and all others have left."""
    wanted = tuple(names.split())
    group.until(lambda: [member.name for member in group.members if member.view != wanted] == [], within)
    assert tuple(sorted(member.name for member in group.members)) == tuple(sorted(wanted))


def test_LEAVE_01() -> None:
    """Ten; the first two close at once: the other eight agree."""
    with scenario(TEN) as group:
        group.leave("A")
        group.leave("B")
        agree(group, "C D E F G H I J", within=30)
        assert group["A"].ended == group["B"].ended == "left"


def test_LEAVE_02_alone() -> None:
    """A single member leaves."""
    with scenario("A") as group:
        group["A"].sends(3)
        group.settles()
        group.leave("A")
        group.until(lambda: group["A"].ended == "left", within=2)
        assert group["A"].unknown == []


@pytest.mark.parametrize(("who", "rest"), [("A", "B C D E F G H I J"), ("E", "A B C D F G H I J")])
def test_LEAVE_02(who: str, rest: str) -> None:
    """Of ten, the coordinator leaves or a participant does: nine stay, the first of them coordinates."""
    with scenario(TEN) as group:
        group[who].sends(10)
        group.after(0.001)
        group.leave(who)
        agree(group, rest, within=10)
        assert group[who].ended == "left"
        assert group[who].unknown == []
        for member in group.members:
            assert member.delivered_from(who) == list(range(1, 11))


def test_LEAVE_03() -> None:
    """Five coordinators leave one after the other: five are left, and the sixth coordinates."""
    with scenario(TEN) as group:
        for at, name in enumerate("ABCDE"):
            group.leave(name)
            agree(group, TEN[2 * at + 2 :], within=10)
        assert group["F"].view[0] == "F"


def test_LEAVE_03_all_at_once() -> None:
    """The same five in one moment."""
    with scenario(TEN) as group:
        for name in "ABCDE":
            group[name].sends(5)
        group.after(0.001)
        for name in "ABCDE":
            group.leave(name)
        agree(group, "F G H I J", within=30)
        for name in "ABCDE":
            assert group["F"].delivered_from(name) == [1, 2, 3, 4, 5]


def test_LEAVE_06() -> None:
    """B comes and goes ten times; then the two take turns, the coordinator leaving each time."""
    with scenario("A") as group:
        for _ in range(10):
            group.start("B")
            agree(group, "A B", within=5)
            group.leave("B")
            agree(group, "A", within=5)
        sizes = [len(view) for view in group["A"].views]
        assert sizes == [1] + [2, 1] * 10
        stays, goes = "A", "B"
        for _ in range(5):
            group.start(goes)
            agree(group, f"{stays} {goes}", within=5)
            group.leave(stays)
            agree(group, goes, within=5)
            stays, goes = goes, stays


def test_the_coordinator_leaves_while_somebody_joins() -> None:
    """A leaves in the moment in which D asks to join."""
    with scenario("A B C") as group:
        group.start("D")
        group.after(0.001)
        group.leave("A")
        agree(group, "B C D", within=10)
        assert group["A"].ended == "left"


def test_the_leaver_crashes_while_it_leaves() -> None:
    """A asks to leave and dies before the view without it."""
    with scenario("A B C") as group:
        group["A"].sends(5)
        group.after(0.001)
        group.leave("A")
        group.crash("A", moment="stops", leaves="nothing")
        agree(group, "B C", within=20)
        assert group["B"].delivered == group["C"].delivered


def test_NAK_13() -> None:
    """NAK-13: all others are silent, A waits for its window and leaves: it is out in time, and lists what it cannot
    know."""
    with scenario("A B C", run_bytes=1 << 10, window=5 << 10) as group:
        group.cut("A")
        group["B"].reads(False)
        group["B"].sends(20, size=1_000)
        group.after(0.5)
        assert group["B"].unsent > 0
        group.cut("B", "C")
        group.leave("B")
        group.until(lambda: group["B"].ended == "left", within=7)
        assert group["B"].unknown
