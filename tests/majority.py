"""Groups in which a majority of each view decides the next one, for the tests of the primary component."""

from __future__ import annotations

from pygroups.layers.gms.layer import Gms
from pygroups.layers.gms.primary import PrimaryGms
from pygroups.layers.merge2 import Merge2
from pygroups.layers.profiles import PROFILES, Profile
from pygroups.sim.batches.runner import Outcome, play
from pygroups.sim.promises.judge import Judge, checks_of
from pygroups.sim.schedules.draw import Wish, draw
from pygroups.sim.schedules.schedule import Schedule
from pygroups.sim.world.stacks import builder_of


def majority(name: str) -> Profile:
    """The built-in profile of this name, with views that a majority decides, and without MERGE2."""
    profile = PROFILES[name]
    layers = [layer for layer in profile.layers if layer is not Merge2]
    return profile._replace(layers=tuple(PrimaryGms if layer is Gms else layer for layer in layers))


def played(schedule: Schedule) -> Outcome:
    """The outcome of a schedule in this stack, with the promises of its profile and those of the chain."""
    judge = Judge(checks_of(schedule.profile, merges=False, majority=True))
    return play(schedule, build=builder_of(majority(schedule.profile)), judge=judge)


def drawn(seed: int, profile: str = "total") -> Outcome:
    """The outcome of the schedule of `seed`."""
    return played(draw(seed, Wish(profile)))
