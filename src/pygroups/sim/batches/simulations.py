"""The interface for programs: draw schedules, play them with other stacks and further promises, minimize them, save
them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pygroups.core.errors import UsageError
from pygroups.core.layer import Env
from pygroups.core.stack import Stack
from pygroups.layers.profiles import Profile, profile_named

from ..promises.checks import checks_of
from ..promises.facts import Check
from ..promises.two_groups import judge_of
from ..schedules.catalog import FAULTS
from ..schedules.draw import Wish, draw
from ..schedules.schedule import Schedule, from_json, to_json
from ..world.stacks import builder_of
from . import runner
from .runner import Outcome, Totals
from .shrink import Shrinker

Build = Callable[[Env], Stack]
Checks = Callable[[], Sequence[Check]]  # makes new checks for each schedule, because a check has state


class Simulated(NamedTuple):
    """The outcome of many schedules, up to the first that broke a promise."""

    totals: Totals
    failure: Outcome | None  # the outcome of the schedule that broke a promise, with the `witness`
    schedule: Schedule | None  # the schedule that broke a promise

    def held(self) -> None:
        """Raise AssertionError, with seed and witness, if a promise was broken."""
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

    - `profile`: the name of a profile, or a Profile of the caller, judged by what its layers give; its name is
      that of a built-in profile, whose schedules are drawn.
    - `build`: makes a member's stack, in place of the profile's.
    - `checks`: makes further checks for each schedule.
    - `members`, `minutes` (of faults, simulated) and `faults` (see catalog.FAULTS): drawn by default.

    Raises UsageError for an unknown profile or fault.
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
    """The schedule of a seed.  The schedule changes when the simulator changes: save the schedule itself to keep it."""
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
    """Play one schedule to its end, or until the time `until` (microseconds), or until a promise is broken.  The
    outcome then has the `witness`.

    `profile` is a Profile of the caller, in place of the schedule's.  `build` and `checks` are as in simulate().
    `journals` is a folder for the members' journals.  `tell` receives the events, line by line.
    """
    played = profile if isinstance(profile, Profile) else profile_named(profile or schedule.profile)
    promised = played.services
    if build is None:
        build = builder_of(played)
    judge = judge_of(schedule.others, lambda: [*checks_of(promised), *checks()])
    return runner.play(schedule, build=build, judge=judge, journals=journals, tell=tell, until=until)


def shrunk(
    schedule: Schedule,
    *,
    profile: str | Profile | None = None,
    build: Build | None = None,
    checks: Checks = tuple,
    tries: int = 1_000,
) -> Schedule:
    """A small schedule that breaks the same promise in the same way, found in at most `tries` tries.  Raises
    UsageError if `schedule` breaks no promise."""

    def played(candidate: Schedule, until: int | None) -> Outcome:
        return play(candidate, profile=profile, build=build, checks=checks, until=until)

    return Shrinker(schedule, played, tries=tries).run()


def read_schedule(file: Path) -> Schedule:
    """Read a schedule from a file.  Raises UsageError if the file cannot be read, or contains no schedule of this
    version."""
    try:
        return from_json(file.read_bytes())
    except OSError as error:
        raise UsageError(f"the schedule {file} cannot be read: {error.strerror}") from error
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error


def write_schedule(schedule: Schedule, file: Path) -> None:
    """Write a schedule as JSON that people can read and change; `pygroups simulate --schedule FILE` plays it."""
    file.write_bytes(to_json(schedule))
