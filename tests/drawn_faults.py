"""Faults of a fixture's group, drawn from a seed."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence

from pygroups import UsageError
from pygroups.testing import Group

KINDS = ("crash", "crash", "weather", "partition", "heal", "none")


async def fault(
    group: Group,
    chance: random.Random,
    names: Sequence[str],
    start: Callable[[str], None],
    kinds: Sequence[str] = KINDS,
) -> None:
    """One fault, or none.  `start` starts the program of a process again that has crashed."""
    kind, name = chance.choice(kinds), chance.choice(names)
    if kind == "crash":
        with contextlib.suppress(UsageError):  # it has ended already
            group.crash(name)
        await asyncio.sleep(chance.uniform(0, 8))
        start(name)
    elif kind == "weather":
        group.weather(loss=chance.uniform(0, 0.2), reorder=chance.uniform(0, 0.2), late=0.01)
    elif kind == "partition":
        group.partition([name])
    elif kind == "heal":
        group.heal()
