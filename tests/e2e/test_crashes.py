"""Processes die by SIGKILL while all send: the others have one order, nothing lost from the living, nothing twice."""

from __future__ import annotations

import random
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.group import Group, Worker
from tests.e2e.logs import all_faults, complete, digest

pytestmark = pytest.mark.slow
MESSAGES: Final = 3_000  # from each
BURST: Final = {"size": 100, "burst": 30, "pause": 0.01}
FIRST, NEXT, LAST, OTHER = range(1), range(1, 2), range(-1, 0), range(1, 3)
"""Ranks in the view; the first one orders all messages."""


def kill_at(group: Group, victims: Sequence[Worker], accepted: int) -> None:
    """All at once, as soon as the first of them has sent so much."""
    group.until("the moment of the kill", lambda: victims[0].progress["accepted"] >= accepted)
    for victim in victims:
        victim.signal(signal.SIGKILL)
    for victim in victims:
        assert victim.ended() == -signal.SIGKILL


LONG = pytest.mark.long  # the simulator draws them too


@pytest.mark.parametrize(
    ("profile", "members", "victims"),
    [
        pytest.param("total", 3, [OTHER], id="another", marks=LONG),
        pytest.param("total", 4, [FIRST], id="sequencer", marks=LONG),
        pytest.param("total", 5, [FIRST, NEXT], id="sequencer and next"),
        pytest.param("total", 5, [FIRST, LAST], id="sequencer and last", marks=LONG),
        pytest.param("total", 8, [range(8)], id="any of eight"),
        pytest.param("fifo", 4, [FIRST, OTHER], id="two in fifo", marks=LONG),
        pytest.param("fifo", 3, [LAST], id="last in fifo"),
    ],
)
def test_the_living_have_everything(profile: str, members: int, victims: list[range], tmp_path: Path) -> None:
    """`victims`: one of each of these ranks dies, all at the same moment."""
    chance = random.Random(f"{profile} {members} {victims}")
    with Group(tmp_path, profile=profile, journal=None) as group:
        workers = group.start(*"ABCDEFGH"[:members])
        dying = [workers[chance.choice(ranks) % members] for ranks in victims]
        for worker in workers:
            worker.order("send", count=MESSAGES, **BURST)
        kill_at(group, dying, chance.randrange(MESSAGES // 2))
        survivors = group.living
        assert len(survivors) == members - len(dying)
        assert any("sent" not in worker.reports for worker in survivors), "the kill came when all was sent"
        group.until("the living have sent everything", lambda: all("sent" in worker.reports for worker in survivors))
        group.settle()
        accepted = dict.fromkeys([worker.address for worker in survivors], MESSAGES)
        group.quiet(accepted)
        group.leave()
        lives = group.lives()
    living = [life for life in lives if life.address in accepted]
    assert not list(complete(living, accepted))
    assert not all_faults(lives, profile)
    if profile == "total":
        assert len({digest(life) for life in living}) == 1
