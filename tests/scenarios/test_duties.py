"""Duties of time: what has to be done soon while nothing is in the way.  promises/duties.py judges each scenario."""

from __future__ import annotations

import pytest

from pygroups.sim.promises.broken import Broken
from pygroups.sim.scenarios.group import scenario

BOTH = pytest.mark.parametrize("profile", ["fifo", "total"])


@BOTH
@pytest.mark.parametrize("leavers", ["A", "C", "A B", "A B C"])
def test_whoever_leaves_in_a_calm_is_let_go_at_once(profile: str, leavers: str) -> None:
    with scenario("A B C D", profile=profile) as group:
        group.after(2)
        for name in "ABCD":
            group[name].sends(3)
        for leaver in leavers.split():
            group.leave(leaver)
        group.after(0.5)  # less than a heartbeat, by which a leaver could find out by itself
        assert [group[leaver].ended for leaver in leavers.split()] == ["left"] * len(leavers.split())
        assert group.judge.facts["leave-in-time"] == len(leavers.split())


def test_a_leave_that_takes_its_whole_time_is_noticed() -> None:
    with pytest.raises(Broken, match="leave-in-time"), scenario("A B C", profile="total") as group:
        group.after(20)
        group.world.network.cut([("B", "A"), ("B", "C")])
        group.judge.around.restless = lambda: False  # as if the others did not do their part for no reason
        group.leave("B")
        group.after(20)
