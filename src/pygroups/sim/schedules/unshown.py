"""Sides that part and merge while the directory shows no member to any other: they must remember each other.

A directory helps in each merge, so a member that forgets the members of its earlier views is not noticed otherwise.
The sides part when all other faults have healed and all are in one view, so that nobody has ended meanwhile whom only
the directory could show.
"""

from __future__ import annotations

from random import Random
from typing import Final

from msgspec import structs

from pygroups.core.detection import detection
from pygroups.core.limits import MILLISECOND, SECOND, Config

from ..promises.facts import MEMBERS
from ..promises.progress import MERGES, bound_with_merges
from .schedule import Schedule
from .steps import Action, Cut, Mislead, Send, StartProcess

FAULT: Final = "unshown"
SHARE: Final = 0.03  # share of the schedules with this fault, among those of all faults
TOGETHER: Final = 2 * SECOND  # beside the time of a merge: until the members are in one view after the other faults


def add(rng: Random, schedule: Schedule, *, share: float) -> Schedule:
    """Draw whether `schedule` has this fault at its end, which lasts until `progress` has been judged."""
    if schedule.stays or len(schedule.names) < 2 or rng.random() >= share:
        return schedule
    config, names = Config(**schedule.config), schedule.names
    begins = schedule.heal_at + MERGES * config.merge_interval + TOGETHER
    lasts = detection(config, MEMBERS) + rng.randrange(200, 1_000) * MILLISECOND
    over = begins + lasts + 2 * bound_with_merges(config)
    side = rng.sample(names, rng.randint(1, len(names) - 1))
    steps: list[Action] = [StartProcess(at=schedule.heal_at + 300 * MILLISECOND, who=name) for name in names]
    steps += [
        Mislead(at=begins, how="nobody", lasts=over - begins),
        Cut(at=begins, side=tuple(side), lasts=lasts),
    ]
    for _ in range(rng.randint(3, 10)):
        at = begins + rng.randrange(0, lasts)
        steps.append(Send(at=at, who=rng.choice(names), count=rng.choice((1, 3, 10)), size=30))
    actions = sorted([*schedule.actions, *steps], key=lambda step: step.at)
    return structs.replace(schedule, actions=tuple(actions), stays=over - schedule.heal_at)
