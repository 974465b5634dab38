"""Groups in which a majority of each view decides the next one, for the tests of the primary component."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import structs

from pygroups.core.events import Blocked, Event, Unblocked, VouchedFor
from pygroups.core.layer import Env
from pygroups.layers.gms.majority.primary import PrimaryGms
from pygroups.layers.profiles import PROFILES, Profile
from pygroups.sim.batches.runner import Outcome, play
from pygroups.sim.promises.checks import checks_of
from pygroups.sim.promises.judge import Judge
from pygroups.sim.scenarios.apps import Acting, Actor
from pygroups.sim.schedules.draw import Wish, draw
from pygroups.sim.schedules.schedule import Schedule
from pygroups.sim.world.stacks import builder_of


class Notified(Actor):
    """An application that records whether its member is blocked, and the answers to an operator."""

    def __init__(self, acting: Acting) -> None:
        self.news: list[str] = []
        self.reasons: list[str] = []
        self.answers: list[str] = []  # to an operator

    def on_event(self, event: Event) -> None:
        if isinstance(event, Blocked | Unblocked):
            self.news.append(type(event).__name__)
        if isinstance(event, Blocked):
            self.reasons.append(event.reason)
        if isinstance(event, VouchedFor):
            self.answers.append(event.answer)


def majority(name: str, expect: int = 0) -> Profile:
    """The profile in which a majority decides each view, with the order of this built-in profile.  `expect` processes
    take part in the birth of the group; without it the directory's lock decides."""
    return with_gms(name, _configured(expect))


UNIFORM: Final = {"total": "uniform", "fifo": "uniform-fifo"}


def with_gms(name: str, gms: type[PrimaryGms]) -> Profile:
    """The profile in which a majority decides each view, with the order of this built-in profile and another GMS."""
    profile = PROFILES[UNIFORM[name]]
    return profile._replace(layers=tuple(gms if layer is PrimaryGms else layer for layer in profile.layers))


def _configured(expect: int) -> type[PrimaryGms]:
    class Configured(PrimaryGms):
        def __init__(self, env: Env) -> None:
            env.expect = expect
            super().__init__(env)

    return Configured


def played(schedule: Schedule, expect: int = 0, folders: float = 0, journals: Path | None = None) -> Outcome:
    """The outcome of a schedule in this stack, with the promises of its profile and those of the chain.  The members
    write their journals below `journals`."""
    profile = majority(schedule.profile, expect)
    judge = Judge(checks_of(profile.services))
    schedule = structs.replace(schedule, folders=folders)
    return play(schedule, build=builder_of(profile), judge=judge, journals=journals)


def drawn(
    seed: int, profile: str = "total", *, expected: bool = False, folders: float = 0, journals: Path | None = None
) -> Outcome:
    """The outcome of the schedule of `seed`.  With `expected` all its processes take part in the birth of the group;
    otherwise the directory's lock decides.  `folders`: the chance that a process has the folder of its former lives."""
    schedule = draw(seed, Wish(profile, majority=True))
    return played(schedule, len(schedule.names) if expected else 0, folders, journals)
