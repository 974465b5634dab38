"""An attacker: frames of a process that is in no view, at drawn instants while the other faults last.

The random numbers come from a stream of their own, so that a seed without an attacker draws what it drew before.
"""

from __future__ import annotations

from random import Random
from typing import Final

from msgspec import structs

from pygroups.core.limits import MILLISECOND

from .fault_plan import FORMATION
from .schedule import Schedule
from .steps import COORDINATOR, WHOEVER, Attack

FAULT: Final = "attack"
SHARE: Final = 0.1  # share of the schedules with this fault, among those of all faults
ATTACKS_MAX: Final = 12
FRAMES_MAX: Final = 60  # of one attack


def add(rng: Random, schedule: Schedule, *, share: float) -> Schedule:
    """Draw whether `schedule` has an attacker."""
    if rng.random() >= share or schedule.heal_at <= FORMATION + MILLISECOND:
        return schedule
    victims = (COORDINATOR, WHOEVER, *schedule.names)
    attacks = [
        Attack(
            at=rng.randrange(FORMATION // 2, schedule.heal_at),
            who=rng.choice(victims),
            frames=rng.randint(1, FRAMES_MAX),
        )
        for _ in range(rng.randint(1, ATTACKS_MAX))
    ]
    return structs.replace(schedule, actions=tuple(sorted([*schedule.actions, *attacks], key=lambda step: step.at)))
