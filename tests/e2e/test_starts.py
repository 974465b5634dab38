"""Processes that start at the same moment found one group, not several, however they find each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.starts import SECONDS_MAX, VIEWS_MAX, WAYS, start_at_once
from tests.patience import patience

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("profile", "prepared"), [("total", False), ("fifo", True)], ids=["in a row", "fifo"])
def test_eight_at_once_end_in_one_view(profile: str, prepared: bool, tmp_path: Path) -> None:
    start_at_once(tmp_path, prepared=prepared, profile=profile)


@pytest.mark.parametrize("way", WAYS)
def test_JOIN_07_eight_processes_in_each_kind_of_discovery(way: str, tmp_path: Path) -> None:
    started = start_at_once(tmp_path, prepared=True, way=way)
    assert started.seconds < patience(SECONDS_MAX)
    assert started.views <= patience(VIEWS_MAX)


def test_twenty_at_once_are_in_one_view_within_five_seconds(tmp_path: Path) -> None:
    started = start_at_once(tmp_path, prepared=True, processes=20)
    assert started.seconds < patience(SECONDS_MAX)
    assert started.views <= patience(VIEWS_MAX)
