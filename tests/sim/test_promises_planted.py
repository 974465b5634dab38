"""The planted histories that the audit is tested with go through the running checks: the verdicts must be equal."""

from __future__ import annotations

import pytest

from tests.pipeline.catalog import all_planted
from tests.pipeline.planted import Planted
from tests.sim.told import judged, lines

NOT_BUILT = {
    "clean-total1999": "the profile total1999 is not built",
    "clean-uniform": "the profile uniform is not built",
    "ahead-uniform-A": "the profile uniform is not built",
    "ahead-uniform-C": "the profile uniform is not built",
    "merged": "merging is not built",
    "merged-without-gap": "merging is not built",
    "reunited-without-fault": "merging is not built",
    "gap-over-own-A": "gaps are announced by merges, which are not built",
    "gap-over-own-C": "gaps are announced by merges, which are not built",
    "behind-a-hole-A": "a journal loses records, a running check hears everything",
    "behind-a-hole-C": "a journal loses records, a running check hears everything",
}
ALL = {planted.group: planted for planted in all_planted()}
PLANTED = [planted for group, planted in ALL.items() if group not in NOT_BUILT]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.group)
def test_a_planted_fault_breaks_what_it_breaks_and_nothing_else(planted: Planted) -> None:
    history = planted.make(planted.group)
    broken = judged(history).broken
    assert {witness.promise for witness in broken} == planted.breaks, "\n".join(lines(history, broken))
