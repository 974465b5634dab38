"""Drawn schedules as histories for the audit: nobody wrote them for it, and everything in them is right."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pygroups.sim.schedules.catalog import WHOLE_JOURNALS
from tests.patience import patience

SCHEDULES: Final = 4  # of each profile; `make long` plays more
FULL_DISKS: Final = 4  # schedules of each profile with full disks, from the seed
FULL_DISKS_FIRST: Final = 100_000
PROFILES: Final = ("fifo", "total")
UNICAST_FIRST: Final = 200_000  # the first seed of the schedules without a group
UNIFORM: Final = {"uniform": 300_020, "uniform-fifo": 300_120}  # the first seeds of these profiles


def play_drawn(
    root: Path, schedules: int = SCHEDULES, first: int = 0, faults: Sequence[str] = WHOLE_JOURNALS
) -> list[dict[str, Any]]:
    """What `pygroups simulate` says of each profile; the journals are in `root`. `first` is the first seed.

    A group is named after its seed, so that each profile has seeds of its own.
    """
    return [
        played(root, profile, first + number * schedules, schedules, faults) for number, profile in enumerate(PROFILES)
    ]


def play_unicast(root: Path) -> dict[str, Any]:
    """The same of the profile `unicast`, whose processes are no group."""
    return played(root, "unicast", UNICAST_FIRST, SCHEDULES)


def play_uniform(root: Path) -> list[dict[str, Any]]:
    """The same of the profiles in which a majority decides each view."""
    return [played(root, profile, first, SCHEDULES) for profile, first in UNIFORM.items()]


def played(
    root: Path, profile: str, first: int, schedules: int, faults: Sequence[str] = WHOLE_JOURNALS
) -> dict[str, Any]:
    """What `pygroups simulate` says of these schedules of one profile, from the seed `first`."""
    seeds = f"{first}:{first + schedules}"
    command = [sys.executable, "-m", "pygroups", "simulate", "--profile", profile, "--seeds", seeds]
    command += ["--faults", ",".join(faults)]
    done = subprocess.run(
        [*command, "--journal", str(root), "--json"],
        stdout=subprocess.PIPE,
        text=True,
        timeout=patience(300),
        check=False,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
