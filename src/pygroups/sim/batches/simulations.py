"""Schedules for programs: draw them, play them with own stacks and own promises, make them smaller, keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pygroups.core.errors import UsageError
from pygroups.core.layer import Env
from pygroups.core.stack import Stack
from pygroups.layers.profiles import Profile, profile_named

from ..promises.facts import Check
from ..promises.judge import PROFILES, Judge, checks_of
from ..schedules.catalog import FAULTS
from ..schedules.draw import Wish, draw
from ..schedules.schedule import Schedule, from_json, to_json
from ..world.stacks import builder_of
from . import runner
from .runner import Outcome, Totals
from .shrink import Shrinker

Build = Callable[[Env], Stack]
Checks = Callable[[], Sequence[Check]]  # makes new ones: a check remembers what it saw


class Simulated(NamedTuple):
    """What came of many schedules, up to the first that broke a promise."""

    totals: Totals
    failure: Outcome | None  # of the schedule that broke a promise; its `witness` says which
    schedule: Schedule | None  # that schedule

    def held(self) -> None:
        """AssertionError, with seed and witness, if a promise was broken."""
        if self.failure is not None:
            raise AssertionError(f"seed {self.failure.seed}: {self.failure.witness}\n{self.failure.trace}".rstrip())


def simulate(
    seeds: Iterable[int],
    *,
    profile: str | Profile = "total",
    build: Build | None = None,
    checks: Checks = tuple,
    members: int | None = None,
    minutes: float | None = None,
    faults: Sequence[str] = FAULTS,
) -> Simulated:
    """Draw and play the schedules of `seeds`, in this process, until one breaks a promise.

    `profile`: the name of a profile, or an own Profile with the name of the one whose promises it shall keep; `build`:
    what makes a member's stack, in place of the profile's.  `checks` makes further promises for each schedule.
    `members`, `minutes` (of faults, simulated) and `faults` (see catalog.FAULTS) are drawn if they are not given.
    """
    totals = Totals()
    for seed in seeds:
        schedule = schedule_of(seed, profile=profile, members=members, minutes=minutes, faults=faults)
        outcome = play(schedule, profile=profile, build=build, checks=checks)
        totals.add(outcome)
        if outcome.witness is not None:
            return Simulated(totals, outcome, schedule)
    return Simulated(totals, None, None)


def schedule_of(
    seed: int,
    *,
    profile: str | Profile = "total",
    members: int | None = None,
    minutes: float | None = None,
    faults: Sequence[str] = FAULTS,
) -> Schedule:
    """The schedule that a seed means.  It is another one after the simulator has changed: keep the schedule itself."""
    name = profile if isinstance(profile, str) else profile.name
    profile_named(name)
    for fault in faults:
        if fault not in FAULTS:
            raise UsageError(f"there is no fault {fault!r}; there are: {', '.join(FAULTS)}")
    return draw(seed, Wish(name, members, minutes, tuple(faults)))


def play(
    schedule: Schedule,
    *,
    profile: str | Profile | None = None,
    build: Build | None = None,
    checks: Checks = tuple,
    journals: Path | None = None,
    tell: Callable[[str], None] | None = None,
    until: int | None = None,
) -> Outcome:
    """Play one schedule to its end, `until` that time (microseconds), or until a promise is broken: `witness` of the
    outcome.

    `profile`: an own Profile, in place of the one that the schedule names; `build` and `checks` as in simulate().
    `journals`: a folder for the members' journals.  `tell` hears what happens, line by line.
    """
    if build is None:
        build = builder_of(schedule.profile if profile is None else profile)
    promised = checks_of(schedule.profile) if schedule.profile in PROFILES else []
    judge = Judge([*promised, *checks()])
    return runner.play(schedule, build=build, judge=judge, journals=journals, tell=tell, until=until)


def shrunk(
    schedule: Schedule,
    *,
    profile: str | Profile | None = None,
    build: Build | None = None,
    checks: Checks = tuple,
    tries: int = 1_000,
) -> Schedule:
    """A small schedule that breaks the same promise in the same way, found in at most so many `tries`; UsageError if
    this one breaks none."""

    def played(candidate: Schedule, until: int | None) -> Outcome:
        return play(candidate, profile=profile, build=build, checks=checks, until=until)

    return Shrinker(schedule, played, tries=tries).run()


def read_schedule(file: Path) -> Schedule:
    """The schedule in a file; UsageError if there is none, or none that this version knows."""
    try:
        return from_json(file.read_bytes())
    except OSError as error:
        raise UsageError(f"the schedule {file} cannot be read: {error.strerror}") from error
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error


def write_schedule(schedule: Schedule, file: Path) -> None:
    """Keep a schedule, as JSON that people can read and change; `pygroups simulate --schedule FILE` plays it too."""
    file.write_bytes(to_json(schedule))
