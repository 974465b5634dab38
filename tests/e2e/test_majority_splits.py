"""Firewall rules cut five processes apart where a majority decides each view; see majority_splits.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.majority_splits import CASES, MajoritySplit, check_journals

pytestmark = pytest.mark.long
SECONDS = 2.0  # after the minority was told that it is blocked


@pytest.mark.parametrize(
    "cases",
    [[("two and three", 0)], [("no side has a majority", 3)]],
    ids=["a minority", "two minorities"],
)
def test_a_minority_delivers_nothing_and_views_are_one_chain(tmp_path: Path, cases: list[tuple[str, int]]) -> None:
    """Two members are excluded and start again; without a majority on any side at least three go on after the heal.
    An audit judges the journals."""
    splits = []
    for number, (case, unblocked) in enumerate(cases):
        split = MajoritySplit(tmp_path / str(number), CASES[case])
        result = split.play_majority(SECONDS)
        assert result.unblocked >= unblocked, result
        splits.append(split)
    check_journals(*splits)
