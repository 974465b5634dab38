"""`pygroups simulate`: seeds of faults through a simulated world, with every promise checked as it runs."""

from __future__ import annotations

import json as json_text
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cyclopts import Parameter

from pygroups.cli.refusals import FAILED
from pygroups.core.errors import UsageError

if TYPE_CHECKING:
    from pygroups.sim.draw import Wish
    from pygroups.sim.runner import Outcome, Totals
    from pygroups.sim.schedule import Schedule


@Parameter(name="*")
@dataclass(frozen=True)
class Kind:
    """What all schedules shall be like.

    Parameters
    ----------
    profile
        The stack of protocols.
    members
        How many members; drawn for each seed if not given.
    minutes
        Simulated minutes of faults in each schedule; a few seconds if not given.
    faults
        Only these, with commas between them.
    """

    profile: str = "total"
    members: int | None = None
    minutes: float | None = None
    faults: str | None = None


ANY_KIND: Final = Kind()


def simulate(
    *,
    seeds: str = "0:100",
    kind: Kind = ANY_KIND,
    jobs: int | None = None,
    journal: Path | None = None,
    replay: int | None = None,
    shrink: int | None = None,
    schedule: Path | None = None,
    json: bool = False,
) -> int:
    """Run seeds of faults through a simulated world.

    A seed means a schedule: a few members, at least 200 messages, crashes, isolations, pauses, partitions, loss. Time
    is virtual. The same seed always does the same. Exit code 1 when a promise was broken.

    Parameters
    ----------
    seeds
        Which: A:B for A up to but not B.
    jobs
        Processes that work at once; as many as there are cores if not given.
    journal
        A folder for the members' journals; each seed is a group of its own there, and `pygroups audit` judges them.
    replay
        Play this one seed and print what happens.
    shrink
        Make the schedule of this seed, which breaks a promise, as small as it goes; write it to the file that
        --schedule names, and print what happens in it.
    schedule
        Play the schedule in this file and print what happens; with --shrink, where to write it.
    json
        Print one JSON object instead of text.
    """
    from pygroups.sim.draw import draw
    from pygroups.sim.summary import parse_seeds

    wish = _wish(kind.profile, kind.members, kind.minutes, kind.faults)
    workers = _workers(jobs)
    if shrink is not None:
        return _shrink(shrink, wish, schedule)
    if schedule is not None:
        return _play(_read(schedule), wish, journal, json)
    if replay is not None:
        return _play(draw(replay, wish), wish, journal, json)
    return _run(parse_seeds(seeds), wish, workers, journal, json)


def _wish(profile: str, members: int | None, minutes: float | None, faults: str | None) -> Wish:
    """What all schedules shall be like; UsageError for what cannot be."""
    from pygroups.layers.profiles import profile_named
    from pygroups.sim.draw import FAULTS, MEMBERS_MAX, MEMBERS_MIN, Wish, checked_faults

    profile_named(profile)
    if members is not None and not MEMBERS_MIN <= members <= MEMBERS_MAX:
        raise UsageError(f"--members {members} does not work: {MEMBERS_MIN} to {MEMBERS_MAX} do")
    if minutes is not None and not 0.08 <= minutes <= 600:
        raise UsageError(f"--minutes {minutes:g} does not work: 0.1 to 600 do")
    return Wish(profile, members, minutes, FAULTS if faults is None else checked_faults(faults))


def _workers(jobs: int | None) -> int:
    cores = len(os.sched_getaffinity(0))
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs} does not work: 1 or more do")
    return cores if jobs is None else jobs


def _read(file: Path) -> Schedule:
    from pygroups.sim.schedule import from_json

    try:
        return from_json(file.read_bytes())
    except OSError as error:
        raise UsageError(f"the schedule {file} cannot be read: {error.strerror}") from error


def _play(schedule: Schedule, wish: Wish, journal: Path | None, json: bool) -> int:
    """One schedule, with its story."""
    from pygroups.sim.runner import Totals, play

    started = time.monotonic()
    outcome = play(schedule, journals=journal, tell=None if json else print)
    totals = Totals()
    totals.add(outcome)
    wish = wish._replace(profile=schedule.profile)
    return _close(totals, outcome if outcome.witness else None, wish, time.monotonic() - started, json)


def _shrink(seed: int, wish: Wish, file: Path | None) -> int:
    """Find a small schedule that breaks the same promise as `seed`."""
    from pygroups.sim.draw import draw
    from pygroups.sim.runner import play
    from pygroups.sim.schedule import to_json
    from pygroups.sim.shrink import alike, shrink

    schedule = draw(seed, wish)
    witness = play(schedule).witness
    if witness is None:
        raise UsageError(f"seed {seed} breaks no promise: there is nothing to shrink")

    def fails(candidate: Schedule) -> bool:
        found = play(candidate).witness
        return found is not None and alike(found, witness)

    small = shrink(schedule, fails, tell=_say)
    _say("")
    if file is not None:
        file.write_bytes(to_json(small))
        print(f"wrote {file}: repeat it with `pygroups simulate --schedule {file}`")
    return _play(small, wish, None, False)


def _run(seeds: range, wish: Wish, jobs: int, journal: Path | None, json: bool) -> int:
    """Until the first seed that breaks a promise, or the last."""
    from pygroups.sim.runner import Totals, play_seeds

    started = time.monotonic()
    totals = Totals()
    failed: Outcome | None = None
    for outcome in play_seeds(seeds, wish, min(jobs, len(seeds)), journal):
        totals.add(outcome)
        _progress(totals, len(seeds), started)
        if outcome.witness is not None:
            failed = outcome
            break
    _progress(totals, 0, started)
    return _close(totals, failed, wish, time.monotonic() - started, json)


def _close(totals: Totals, failed: Outcome | None, wish: Wish, seconds: float, json: bool) -> int:
    from pygroups.sim.promises.judge import Judge, checks_of
    from pygroups.sim.summary import as_json, closing, failure

    promises = Judge(checks_of(wish.profile)).promises
    if json:
        print(json_text.dumps(as_json(totals, failed, promises, wish)))
    else:
        if failed is not None:
            print(failure(failed, wish))
        print(closing(totals, seconds))
    return FAILED if failed is not None else 0


def _progress(totals: Totals, of: int, started: float) -> None:
    rate = totals.schedules / max(time.monotonic() - started, 0.001)
    _say(f"{totals.schedules:,} of {of:,} schedules, {rate:,.0f} a second" if of else "")


def _say(text: str) -> None:
    """One line that is written over, on a terminal only; no text takes it away."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
