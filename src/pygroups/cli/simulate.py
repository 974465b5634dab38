"""`pygroups simulate`: seeds of faults through a simulated world, with every promise checked as it runs."""

from __future__ import annotations

import contextlib
import json as json_text
import os
import shlex
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cyclopts import Parameter

from pygroups.cli.options import Whole
from pygroups.cli.progress import Progress, say
from pygroups.cli.refusals import FAILED, INTERRUPTED
from pygroups.core.errors import UsageError

if TYPE_CHECKING:
    from pygroups.sim.batches.runner import Outcome
    from pygroups.sim.batches.summary import Summary
    from pygroups.sim.schedules.draw import Wish
    from pygroups.sim.schedules.schedule import Schedule
    from pygroups.sim.world.spacetime import SpaceTime

SEEDS: Final = "0:100"


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
        Only these, with commas between them; swarm: all of them, of which each seed draws a part, as if not given.
    """

    profile: str = "total"
    members: Whole | None = None
    minutes: float | None = None
    faults: str | None = None


ANY_KIND: Final = Kind()


def simulate(
    *,
    seeds: str | None = None,
    kind: Kind = ANY_KIND,
    jobs: Whole | None = None,
    journal: Path | None = None,
    replay: Whole | None = None,
    shrink: Whole | None = None,
    schedule: Path | None = None,
    json: bool = False,
) -> int:
    """Run seeds of faults through a simulated world.

    Parameters
    ----------
    seeds
        Which: A:B for A up to but not B; 0:100 if not given.
    jobs
        Processes that work at once; as many as there are cores if not given.
    journal
        A folder for the members' journals; each seed is a group of its own there, and `pygroups audit` judges them.
    replay
        Play this one seed and print what happens as a table, a column for each member.
    shrink
        Make the schedule of this seed, which breaks a promise, as small as it goes within a minute, or until Ctrl-C;
        write it to the file that --schedule names, and print what happens in it.
    schedule
        Play the schedule in this file and print what happens; with --shrink, where to write it.
    json
        Print one JSON object instead of text.
    """
    from pygroups.sim.batches.simulations import read_schedule
    from pygroups.sim.batches.summary import command
    from pygroups.sim.schedules.draw import draw

    _check_together(seeds, kind, replay, shrink, schedule, journal, json)
    _check_seed("--replay", replay)
    _check_seed("--shrink", shrink)
    wish = _wish(kind.profile, kind.members, kind.minutes, kind.faults)
    workers = _workers(jobs)
    _check_can_write(schedule if shrink is not None else None, journal)
    if shrink is not None:
        return _shrink(shrink, wish, schedule, json)
    if schedule is not None:
        repeat = shlex.join(["pygroups", "simulate", "--schedule", str(schedule)])
        return _play(read_schedule(schedule), wish, repeat, journal, json)
    if replay is not None:
        return _play(draw(replay, wish), wish, command(replay, wish), journal, json)
    return _run(_seeds(seeds if seeds is not None else SEEDS), wish, workers, journal, json)


# -- what was asked for


def _check_together(
    seeds: str | None,
    kind: Kind,
    replay: int | None,
    shrink: int | None,
    schedule: Path | None,
    journal: Path | None,
    json: bool,
) -> None:
    """UsageError for options of which one makes the other meaningless."""
    which = [("--seeds", seeds), ("--replay", replay), ("--shrink", shrink)]
    given = [name for name, value in which if value is not None]
    if schedule is not None and shrink is None:
        given.append("--schedule")
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} each say what to play: give one of them")
    if schedule is not None and shrink is None and kind != ANY_KIND:
        raise UsageError("the file of --schedule says all: leave --profile, --members, --minutes and --faults out")
    if shrink is not None and journal is not None:
        raise UsageError("--shrink writes no journals: play the file of --schedule with --journal after it")


def _wish(profile: str, members: int | None, minutes: float | None, faults: str | None) -> Wish:
    """What all schedules shall be like; UsageError for what cannot be."""
    from pygroups.layers.profiles import profile_named
    from pygroups.sim.schedules.catalog import FAULTS, checked_faults
    from pygroups.sim.schedules.draw import MEMBERS_MAX, MEMBERS_MIN, Wish

    profile_named(profile)
    if members is not None and not MEMBERS_MIN <= members <= MEMBERS_MAX:
        raise UsageError(f"--members {members} does not work: {MEMBERS_MIN} to {MEMBERS_MAX} do")
    if minutes is not None and not 0.08 <= minutes <= 600:
        raise UsageError(f"--minutes {minutes:g} does not work: 0.08 to 600 do")
    return Wish(profile, members, minutes, FAULTS if faults is None else checked_faults(faults))


def _workers(jobs: int | None) -> int:
    cores = len(os.sched_getaffinity(0))
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs} does not work: 1 or more do")
    return cores if jobs is None else jobs


def _check_seed(option: str, seed: int | None) -> None:
    if seed is not None and seed < 0:
        raise UsageError(f"{option} {seed} does not work: seeds begin at 0")


def _seeds(text: str) -> range:
    from pygroups.sim.batches.summary import parse_seeds

    seeds = parse_seeds(text) if len(text) <= 2 * len(str(sys.maxsize)) else None
    if seeds is None or seeds.stop > sys.maxsize:
        raise UsageError(f"--seeds {text[:60]} goes too far: {sys.maxsize} is the last seed")
    return seeds


def _check_can_write(schedule: Path | None, journal: Path | None) -> None:
    """UsageError for what cannot be written: now, and not after a minute of work."""
    if schedule is not None and (schedule.is_dir() or not os.access(_place(schedule), os.W_OK)):
        raise UsageError(f"the schedule cannot be written to {schedule}")
    if journal is not None:
        try:
            journal.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"the journals cannot be written to {journal}: {error.strerror}") from error
        if not os.access(journal, os.W_OK):
            raise UsageError(f"the journals cannot be written to {journal}")


def _place(file: Path) -> Path:
    """What has to let us write so that `file` is written."""
    return file if file.exists() else file.parent


# -- one schedule


def _play(
    schedule: Schedule, wish: Wish, repeat: str, journal: Path | None = None, json: bool = False, **more: Any
) -> int:
    """One schedule, with its story; `repeat` is the command line for it.  With `json`, `more` is printed too."""
    from pygroups.sim.batches.runner import Totals, play
    from pygroups.sim.batches.summary import Summary
    from pygroups.sim.world.spacetime import SpaceTime

    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    table = None if json else SpaceTime(schedule.names, columns)
    started = time.monotonic()
    outcome = play(schedule, journals=journal, story=table)
    totals = Totals()
    totals.add(outcome)
    if table is not None:
        _show(table, outcome)
    summary = Summary(totals, wish._replace(profile=schedule.profile), time.monotonic() - started)
    _print_counts(summary, outcome if outcome.witness else None, repeat, json, **more)
    return FAILED if outcome.witness else 0


def _show(table: SpaceTime, outcome: Outcome) -> None:
    """Print the table: in colors on a terminal."""
    if not sys.stdout.isatty():
        for line in table.lines(outcome.witness):
            print(line.plain())
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in table.lines(outcome.witness):
        console.print(Text.assemble(*line.parts), soft_wrap=True)


def _shrink(seed: int, wish: Wish, file: Path | None, json: bool) -> int:
    """Find a small schedule that breaks the same promise as `seed`."""
    from pygroups.sim.batches.runner import play
    from pygroups.sim.batches.shrink import LIMIT_S, Shrinker
    from pygroups.sim.batches.summary import command
    from pygroups.sim.schedules.draw import draw
    from pygroups.sim.schedules.schedule import to_json

    shrinker = Shrinker(draw(seed, wish), lambda one, until: play(one, until=until), seconds=LIMIT_S, tell=say)
    with contextlib.suppress(KeyboardInterrupt):  # the best so far is worth having
        shrinker.run()
    say("")
    repeat = command(seed, wish).replace("--replay", "--shrink")
    if file is not None:
        file.write_bytes(to_json(shrinker.small))
        repeat = shlex.join(["pygroups", "simulate", "--schedule", str(file)])
    if not json:
        print(shrinker.said())
        if file is not None:
            print(f"wrote {file}: repeat it with `{repeat}`")
    return _play(shrinker.small, wish, repeat, json=json, shrunk=shrinker.figures())


# -- many


def _run(seeds: range, wish: Wish, jobs: int, journal: Path | None, json: bool) -> int:
    """Until the first seed that breaks a promise, or the last."""
    from pygroups.sim.batches.runner import Totals, play_seeds
    from pygroups.sim.batches.summary import Summary, command, faults_by_name

    progress = Progress(len(seeds))
    totals, failed, interrupted = Totals(), None, False
    try:
        for outcome in play_seeds(seeds, wish, min(jobs, len(seeds)), journal):
            totals.add(outcome)
            progress.tell(totals.schedules, faults_by_name(totals.faults))
            if outcome.witness is not None:
                failed = outcome
                break
    except KeyboardInterrupt:
        interrupted = True
    progress.end()
    summary = Summary(totals, wish, progress.seconds)
    repeat = command(failed.seed, wish) if failed is not None else ""
    _print_counts(summary, failed, repeat, json, interrupted=interrupted)
    if interrupted:
        print(f"pygroups: interrupted after {totals.schedules:,} of {len(seeds):,} schedules", file=sys.stderr)
        return INTERRUPTED
    return _verdict(summary, failed)


def _verdict(summary: Summary, failed: Outcome | None) -> int:
    """The exit code; says why, if it is not for a broken promise that it is not 0."""
    if failed is not None:
        return FAILED
    for shortcoming in summary.shortcomings():
        print(f"pygroups: {shortcoming}", file=sys.stderr)
    return FAILED if summary.shortcomings() else 0


def _print_counts(summary: Summary, failed: Outcome | None, repeat: str, json: bool, **more: Any) -> None:
    from pygroups.sim.batches.summary import as_json, closing, failure
    from pygroups.sim.promises.judge import Judge, checks_of

    if json:
        promises = Judge(checks_of(summary.wish.profile)).promises
        print(json_text.dumps(as_json(summary, failed, promises, repeat) | {"interrupted": False} | more))
        return
    if failed is not None:
        print(failure(failed, repeat))
    print(closing(summary))
