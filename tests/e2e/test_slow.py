"""A member that does not read bounds everybody: senders wait, memory stays small, and nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from pygroups import Config
from tests.e2e.group import Group, until
from tests.e2e.logs import all_faults, complete, digest

pytestmark = pytest.mark.slow
SIZE: Final = 1_000
MESSAGES: Final = 12_000  # from each: twelve windows
WINDOW: Final = Config().window
MEMORY: Final = 150 << 20
STILL_SECONDS: Final = 2.0


def stand_still(numbers: Callable[[], list[int]]) -> list[int]:
    """Wait until nothing has changed for some time; what they are then."""
    since = [time.monotonic()]
    seen = [numbers()]

    def still() -> bool:
        if numbers() != seen[0]:
            seen[0], since[0] = numbers(), time.monotonic()
        return time.monotonic() > since[0] + STILL_SECONDS

    until("everybody stands still", still)
    return seen[0]


@pytest.mark.parametrize("profile", ["total", "fifo"])
def test_a_member_that_does_not_read_makes_senders_wait(tmp_path: Path, profile: str) -> None:
    with Group(tmp_path, profile=profile, journal=None) as group:
        *senders, deaf = group.start(*"ABCD")
        deaf.ask("hears", "do not read")

        def numbers() -> list[int]:
            return [sender.progress["accepted"] for sender in senders]

        for sender in senders:
            sender.order("send", count=MESSAGES, size=SIZE)
        group.until("somebody has sent something", lambda: any(numbers()))
        for standing in stand_still(numbers):
            assert WINDOW // 2 < standing * SIZE <= WINDOW
        assert "sent" not in senders[0].reports
        deaf.order("read")
        group.until("all is sent", lambda: all("sent" in sender.reports for sender in senders))
        accepted = dict.fromkeys([sender.address for sender in senders], MESSAGES)
        group.quiet(accepted)
        peaks = {worker.name: worker.memory_peak() for worker in group.living}
        assert all(peak < MEMORY for peak in peaks.values()), peaks
        group.leave()
        lives = group.lives()
    assert not all_faults(lives, profile)
    assert not list(complete(lives, accepted))
    assert profile == "fifo" or len({digest(life) for life in lives}) == 1
