"""An operator who vouches that processes have ended for good, where a majority decides each view."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from .steps import Action, Vouch

SHARE: Final = 0.5  # of the schedules in which an operator vouches
CALLS_MAX: Final = 6  # of the operator in one schedule


def calls(rng: Random, names: Sequence[str], since: int, until: int) -> list[Action]:
    """Draw whether an operator vouches in this schedule, and when, between two times."""
    count = rng.randint(1, CALLS_MAX) if rng.random() < SHARE else 0
    return [Vouch(at=rng.randrange(since, until), who=rng.choice(names)) for _ in range(count)]
