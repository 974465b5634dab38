"""Two groups of one name that are born apart with other settings: they must never merge.

Some of the processes have other settings.  The directory first shows each process only the members of its own group,
and from a drawn time on the members of both groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

FAULT: Final = "settings"
SHARE: Final = 0.03  # share of the schedules with this fault, among those of all faults


class SecondGroup(NamedTuple):
    """The processes with other settings, and the time at which the two groups can find each other."""

    names: tuple[str, ...] = ()
    meet_at: int = 0


def draw_others(rng: Random, names: Sequence[str], since: int, until: int, *, share: float) -> SecondGroup:
    """Draw whether some of `names` have other settings, and when the groups meet, between two times."""
    if rng.random() >= share:
        return SecondGroup()
    others = rng.sample(names, rng.randint(1, len(names) - 1))
    return SecondGroup(tuple(sorted(others)), rng.randrange(since, max(until, since + 1)))
