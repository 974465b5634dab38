"""All blocks under faults drawn from a seed: equal at each view, one holder, each number and each task once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pygroups.testing import Group
from tests.blocks.drawn import Drawn


def play(profile: str, seed: int, folder: Path) -> Drawn:
    group = Group(seed=seed)
    played: list[Drawn] = []

    async def story() -> None:
        played.append(Drawn(group, profile, folder))
        await played[0].play()

    group.run(story)
    return played[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pygroups.testing.LeftOpen")
@pytest.mark.parametrize("profile", ["total", "uniform", "total1999"])
@pytest.mark.parametrize("seed", range(2))
def test_blocks_hold_their_promises(profile: str, seed: int, tmp_path: Path) -> None:
    judge = play(profile, seed, tmp_path).judge
    assert judge.agreed


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pygroups.testing.LeftOpen")
@pytest.mark.parametrize("profile", ["total", "uniform", "total1999"])
@pytest.mark.parametrize("hundred", range(10))
def test_blocks_hold_their_promises_in_a_thousand_schedules(profile: str, hundred: int, tmp_path: Path) -> None:
    for seed in range(1_000 + 100 * hundred, 1_100 + 100 * hundred):
        play(profile, seed, tmp_path / str(seed))
