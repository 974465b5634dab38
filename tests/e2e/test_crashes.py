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

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
MESSAGES: Final = 3_000  # from each
BURST: Final = {"size": 100, "burst": 30, "pause": 0.01}


def kill_at(group: Group, victims: Sequence[Worker], accepted: int) -> None:
    """All at once, as soon as the first of them has sent so much."""
    group.until("the moment of the kill", lambda: victims[0].progress["accepted"] >= accepted)
    for victim in victims:
        victim.signal(signal.SIGKILL)
    for victim in victims:
        assert victim.ended() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("members", "victims"),
    [(3, "ABC"), (5, "A"), (8, "BCDEFGH"), (4, "A"), (5, "AB"), (5, "AE"), (4, "CD"), (3, "AB")],
    ids=[
        "any of 3",
        "sequencer of 5",
        "any of 8",
        "sequencer of 4",
        "first two",
        "first and last",
        "last two",
        "to one",
    ],
)
@pytest.mark.parametrize("profile", ["total"])
def test_the_living_have_one_order_and_everything(members: int, victims: str, profile: str, tmp_path: Path) -> None:
    chance = random.Random(f"{members} {victims}")
    with Group(tmp_path, profile=profile, journal=None) as group:
        workers = group.start(*"ABCDEFGH"[:members])
        for worker in workers:
            worker.order("send", count=MESSAGES, **BURST)
        one = len(victims) > 2
        names = chance.choice(victims) if one else victims
        kill_at(group, [worker for worker in workers if worker.name in names], chance.randrange(MESSAGES // 2))
        survivors = group.living
        assert len(survivors) == members - len(names)
        assert any("sent" not in worker.reports for worker in survivors), "the kill came when all was sent"
        group.until("the living have sent everything", lambda: all("sent" in worker.reports for worker in survivors))
        group.settle()
        accepted = dict.fromkeys([worker.address for worker in survivors], MESSAGES)
        group.quiet(accepted)
        group.leave()
        lives = group.lives()
    assert not all_faults(lives)
    living = [life for life in lives if life.address in accepted]
    assert not list(complete(living, accepted))
    assert len({digest(life) for life in living}) == 1
