"""Firewall rules cut five processes apart under load, and the network heals; see splits.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.splits import CASES, Split, check, check_journals

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SECONDS = 4.0  # after the sides have formed
PLAYED = [
    ("two and three", "total", True),
    ("the coordinator alone", "fifo", True),
    ("one and four", "total", False),
    ("nobody hears the coordinator", "total", False),
    ("one does not hear the others", "fifo", False),
    ("one pair, one way", "total", False),
]


def test_the_network_is_cut_and_heals(tmp_path: Path) -> None:
    """One audit judges the journals of all groups."""
    journals = []
    for number, (case, profile, state) in enumerate(PLAYED):
        split = Split(tmp_path / str(number), CASES[case], profile=profile, state=state)
        check(split.play(SECONDS))
        journals.append(split.group.journal)
    check_journals(*journals)
