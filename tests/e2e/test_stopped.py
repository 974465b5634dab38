"""A member that is stopped with SIGSTOP under full load costs the others no memory; see stopped.py."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.e2e.group import Group
from tests.e2e.stopped import SHORT, check, play

pytestmark = pytest.mark.slow
CASES = [
    *[("tcp", "default", -1), ("udp", "exclude", 0)],
    *[("tcp", "wait", 0), ("tcp", "exclude", -1), ("tcp", "exclude", 0)],
    *[("udp", "wait", -1), ("udp", "exclude", -1)],
]


@pytest.mark.long
@pytest.mark.parametrize(("transport", "case", "which"), CASES)
def test_a_member_is_stopped_under_full_load(tmp_path: Path, transport: str, case: str, which: int) -> None:
    times = SHORT.stretched()
    check(play(tmp_path, case, times, which, transport), times)


@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_a_coordinator_that_was_left_behind_delivers_nothing_in_its_old_view(tmp_path: Path, profile: str) -> None:
    """Its application sends right when it runs again: no other member would ever deliver the message in that view."""
    times = SHORT.stretched()
    config = {"heartbeat": times.heartbeat, "heartbeat_timeout": times.heartbeat_timeout}
    with Group(tmp_path, profile=profile, journal=None, settings=config) as group:
        stopped, *others = group.start(*"ABC")
        whole = set(stopped.members)
        stopped.signal(signal.SIGSTOP)
        without = whole - {stopped.address}
        group.until("the others go on", lambda: all(set(worker.members) == without for worker in others))
        stopped.order("send", count=20, size=100)
        stopped.signal(signal.SIGCONT)
        group.until("it sends", lambda: stopped.progress["accepted"] == 20)
        group.settle()
        group.quiet({})
        (life,) = [life for life in group.lives() if life.address == stopped.address]
    stale = [chapter.delivered for chapter in life.chapters if set(chapter.members) == whole][:1]
    assert stale == [[]]
    assert sum(len(chapter.delivered) for chapter in life.chapters) == 20, "it delivers them later"
