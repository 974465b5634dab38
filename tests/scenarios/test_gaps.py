"""Which members a gap names: those that delivered its messages, also when one merge follows another."""

from __future__ import annotations

import pytest

from pygroups.sim import scenario
from tests.merging import INTERVAL, QUICK, whole
from tests.scenarios.test_merging import merged_views

BOUND = 40 * INTERVAL


@pytest.mark.parametrize("profile", ["fifo", "total"])
def test_a_gap_names_only_members_that_delivered_its_messages(profile: str) -> None:
    """{A B | C D | E F}: C D and E F merge, and part again; then A B and C D merge.  C and D announced the messages of
    E as a gap: they stand above them, and do not have them."""
    with scenario("A B C D E F", profile=profile, **QUICK) as group:
        for one, other in (("A B", "C D"), ("A B", "E F"), ("C D", "E F")):
            group.cut(one, other)
        group.until(lambda: all(len(group[name].view) == 2 for name in "ABCDEF"), BOUND)
        group["E"].sends(5)
        group.until(lambda: len(group["F"].delivered_from("E")) == 5, BOUND)
        group.mend("C D", "E F")
        group.until(lambda: len(group["C"].view) == 4 and len(group["F"].view) == 4, BOUND)
        group["E"].sends(3)
        group.until(lambda: len(group["C"].delivered_from("E")) == 3, BOUND)
        group.cut("C D", "E F")
        group.until(lambda: len(group["C"].view) == 2, BOUND)
        group.mend("A B", "C D")
        group.until(lambda: len(group["A"].view) == 4, BOUND)
        named = {(gap.first, gap.count): gap.subgroup for gap in merged_views(group, "A")[-1].gaps}
        both = tuple(sorted(group[name].address for name in "CD"))
        assert {key: tuple(sorted(value)) for key, value in named.items()} == {(1, 5): (), (6, 3): both}
        group.heal()
        group.until(lambda: whole(group), BOUND)
        assert [gap.subgroup for gap in merged_views(group, "C")[0].gaps if gap.origin == group["E"].address] == [
            tuple(group[name].address for name in "EF")
        ]
