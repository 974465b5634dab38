"""Whether a kept schedule guards anything: with the patch that brings its bug back it has to fail again.

`found/bugs.toml` has it, under the name of the schedule, in the form of the planted bugs.  What a schedule leaves to
chance (the delay of each frame) changes whenever a layer draws once more or sends one head more, so a schedule is
played under other chances too, as many as CHANCES: under one of them the bug must show.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tests.mutants import gate
from tests.mutants.planted_in_place import planted_in_place
from tests.mutants.planting import changes

if TYPE_CHECKING:
    from pygroups.layers.profiles import Profile

FOUND: Final = Path(__file__).with_name("found")
CHANCES: Final = 40
HOLDS: Final = "holds"


def stacks_of(profile: str) -> list[str | Profile]:
    """The stacks in which a kept schedule is played: most were found before the profiles had MERGE2, and their bugs lie
    in layers that stacks without it have, too."""
    from pygroups.core.services import GOSSIP
    from pygroups.layers.merge2.layer import Merge2
    from pygroups.layers.profiles import profile_named
    from tests.merging import without_merging

    named = profile_named(profile)
    return [profile, *([without_merging(profile)] if Merge2 in named.layers and GOSSIP not in named.services else [])]


def first_failure(file: Path, chances: int) -> str:
    """The chance under which `file` breaks a promise, and which; HOLDS if there is none."""
    from pygroups.sim.batches.runner import play
    from pygroups.sim.schedules.schedule import from_json
    from pygroups.sim.world.stacks import builder_of

    schedule = from_json(file.read_bytes())
    for chance in range(chances):
        for stack in stacks_of(schedule.profile):
            drawn = msgspec.structs.replace(schedule, seed=schedule.seed + chance)
            witness = play(drawn, build=builder_of(stack)).witness
            if witness is not None:
                return f"{chance}: {witness}"
    return HOLDS


@cache
def bugs() -> dict[str, dict[str, Any]]:
    """The bugs of all kept schedules, by the names of the schedules."""
    return tomllib.loads((FOUND / "bugs.toml").read_text())


def patch_of(name: str) -> gate.Mutant:
    """The bug that the schedule `name` once found."""
    entry = bugs()[name]
    return gate.Mutant(name, entry["bug"], "", changes(entry))


def with_its_bug(name: str) -> str:
    """What comes of the schedule `name` while its bug is planted in this process."""
    with planted_in_place(patch_of(name).changes):
        return first_failure(FOUND / f"{name}.json", CHANCES)
