"""Firewall rules cut five processes apart under load, and the network heals; see splits.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.splits import CASES, Split, check, check_journals, heard_by

SECONDS = 4.0  # after the sides have formed
PLAYED = [("two and three", "total", True), ("the coordinator alone", "fifo", True)]
LONG = [
    ("one and four", "total", False),
    ("nobody hears the coordinator", "total", False),
    ("one does not hear the others", "fifo", False),
    ("one pair, one way", "total", False),
]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("played", [PLAYED, pytest.param(LONG, marks=pytest.mark.long)], ids=["first", "more"])
def test_the_network_is_cut_and_heals(tmp_path: Path, played: list[tuple[str, str, bool]]) -> None:
    """One audit judges the journals of all groups."""
    journals = []
    for number, (case, profile, state) in enumerate(played):
        split = Split(tmp_path / str(number), CASES[case], profile=profile, state=state)
        check(split.play(SECONDS))
        journals.append(split.group.journal)
    check_journals(*journals)


def view(*subgroups: str) -> str:
    return f"V {json.dumps({'subgroups': [list(side) for side in subgroups]})}"


def test_a_gap_for_the_other_side_is_counted() -> None:
    assert heard_by("B", [view(), "M A 1 0", "M C 1 1", view("AB", "CD"), "G C 2 3", "M A 2 0"]) == (
        {"A": 2, "C": 4},
        3,
    )
    with_the_state_of_the_others = [view(), "M A 1 0", view("AB", "CD"), "R C", "G A 2 3", "M A 5 0"]
    assert heard_by("B", with_the_state_of_the_others) == ({"A": 5}, 3)


@pytest.mark.parametrize(
    ("log", "fault"),
    [
        ([view("AB", "CD"), "G A 2 3"], "the own side"),
        ([view("AB", "CD"), "R C", "G D 2 3"], "the own side"),
        ([view("AB", "CD"), view(), "G C 2 3"], "not merged"),
        ([view(), "M C 1 0", view("AB", "CD"), "G C 3 3"], "and not 2"),
        ([view(), "M C 1 0", "M C 1 1"], "and not 2"),
    ],
)
def test_planted_faults_are_found(log: list[str], fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        heard_by("B", log)
