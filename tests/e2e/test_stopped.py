"""A member that is stopped with SIGSTOP under full load costs the others no memory; see stopped.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.stopped import SHORT, check, play

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
CASES = [
    *[("tcp", "default", -1), ("tcp", "wait", 0), ("tcp", "exclude", -1), ("tcp", "exclude", 0)],
    *[("udp", "wait", -1), ("udp", "exclude", -1), ("udp", "exclude", 0)],
]


@pytest.mark.parametrize(("transport", "case", "which"), CASES)
def test_a_member_is_stopped_under_full_load(tmp_path: Path, transport: str, case: str, which: int) -> None:
    times = SHORT.stretched()
    check(play(tmp_path, case, times, which, transport), times)
