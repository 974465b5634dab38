"""Faults that last and hit only a part of the group: one pair, one direction, one wrong proof, one joiner."""

from __future__ import annotations

from pygroups.sim import scenario
from tests.scenarios.common import BOTH


@BOTH
def test_a_pair_that_is_cut_off_does_not_hold_up_a_join(profile: str) -> None:
    """B and C cannot reach each other, A reaches both.  C sends all the time; D joins, nobody waits for the pair."""
    with scenario("A B C", profile=profile) as group:
        group.cut("B", "C")
        group["C"].sends(150, every=0.01)
        group.after(1.2137)
        group.start("D")
        group.until(lambda: group["A"].view == ("A", "B", "C", "D"), within=1.5)
        assert group["A"].counters.get("flush restarted", 0) == 0
        group.mend("B", "C")
        group.settles()
        assert group["B"].delivered_from("C") == list(range(1, 151))
