"""`pygroups simulate`: random schedules of faults in a simulated world, with running checks of every promise."""

from __future__ import annotations

import contextlib
import json as json_text
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cyclopts import Parameter

from pygroups.cli.options import Whole
from pygroups.cli.progress import ProgressLine, say
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
    """The kind of all schedules.

    Parameters
    ----------
    profile
        The profile: total, fifo, uniform, uniform-fifo, total1999, gossip, or unicast (processes without a group).
    members
        The number of members. By default each seed draws a number.
    minutes
        The simulated minutes of faults in each schedule. By default a few seconds.
    faults
        Only these faults, separated by commas. By default, or with swarm, each seed draws some of all faults.
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
    trace: str | None = None,
    json: bool = False,
) -> int:
    """Play random schedules of faults in a simulated world, and check every promise.

    Parameters
    ----------
    seeds
        The seeds to play: A:B for A up to but not including B, or one seed. By default 0:100.
    jobs
        The number of processes. By default one for each core.
    journal
        A folder for the members' journals, with one group for each seed. `pygroups audit` can check these journals.
    replay
        Play this seed and print its events as a table, with a column for each member.
    shrink
        Minimize the schedule of this seed, which must break a promise, for a minute or until Ctrl-C. Write the small
        schedule to the file of --schedule, and print its events.
    schedule
        Play the schedule in this file and print its events. With --shrink, write the small schedule to this file.
    trace
        With --replay or --schedule: print the events as lines, and a line for each layer that this message enters at
        each member: B#17 for message 17 of member B, or all for all messages and events.
    json
        Print one JSON object instead of text.
    """
    _check_together(seeds, kind, replay, shrink, schedule, journal, json)
    _check_seed("--replay", replay)
    _check_seed("--shrink", shrink)
    _check_trace(trace, shrink is None and (replay is not None or schedule is not None), json)
    wish = wish_of(kind.profile, kind.members, kind.minutes, kind.faults)
    workers = _workers(jobs)
    _check_can_write(schedule if shrink is not None else None, journal)
    if shrink is not None:
        return _shrink(shrink, wish, schedule, json)
    if (one := _one_schedule(schedule, replay, wish)) is not None:
        return _play(one[0], wish, one[1], journal, json, trace)
    return _run(seeds_of(seeds if seeds is not None else SEEDS), wish, workers, journal, json)


# -- checks of the options


def _check_together(
    seeds: str | None,
    kind: Kind,
    replay: int | None,
    shrink: int | None,
    schedule: Path | None,
    journal: Path | None,
    json: bool,
) -> None:
    """Raise UsageError for options that contradict each other."""
    which = [("--seeds", seeds), ("--replay", replay), ("--shrink", shrink)]
    given = [name for name, value in which if value is not None]
    if schedule is not None and shrink is None:
        given.append("--schedule")
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} each select the schedules to play: give only one of them")
    if schedule is not None and shrink is None and kind != ANY_KIND:
        raise UsageError("leave out --profile, --members, --minutes and --faults: the file of --schedule has them")
    if shrink is not None and journal is not None:
        raise UsageError("--shrink writes no journals: play the small schedule later, with --schedule and --journal")


def wish_of(profile: str, members: int | None, minutes: float | None, faults: str | None) -> Wish:
    """The wish for all schedules.  Raises UsageError for invalid values."""
    from pygroups.layers.profiles import profile_named
    from pygroups.sim.schedules.catalog import FAULTS, checked_faults
    from pygroups.sim.schedules.draw import MEMBERS_MAX, MEMBERS_MIN, Wish

    profile_named(profile)
    if members is not None and not MEMBERS_MIN <= members <= MEMBERS_MAX:
        raise UsageError(f"--members {members} must be from {MEMBERS_MIN} to {MEMBERS_MAX}")
    if minutes is not None and not 0.08 <= minutes <= 600:
        raise UsageError(f"--minutes {minutes:g} must be from 0.08 to 600")
    return Wish(profile, members, minutes, FAULTS if faults is None else checked_faults(faults))


def _workers(jobs: int | None) -> int:
    cores = len(os.sched_getaffinity(0))
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs} must be 1 or more")
    return cores if jobs is None else jobs


def _check_seed(option: str, seed: int | None) -> None:
    if seed is not None and seed < 0:
        raise UsageError(f"{option} {seed} must be 0 or more")


def _check_trace(trace: str | None, plays_one: bool, json: bool) -> None:
    if trace is None:
        return
    if not plays_one:
        raise UsageError("--trace follows a message through one schedule: give --replay SEED or --schedule FILE too")
    if json:
        raise UsageError("--trace prints lines: leave out --json")
    _message(trace)


def _message(trace: str) -> tuple[str, int] | None:
    """The sender and the number that --trace names; None for all messages."""
    if trace == "all":
        return None
    sender, _, number = trace.rpartition("#")
    if not sender or not (number.isascii() and number.isdecimal()):
        raise UsageError(f"--trace {trace[:60]} must name a message, for instance B#17, or be `all`")
    return sender, int(number)


def _known(message: tuple[str, int] | None, schedule: Schedule) -> tuple[str, int] | None:
    """The same message.  Raises UsageError if no process of the schedule has the name of its sender."""
    if message is not None and message[0].partition("@")[0] not in schedule.names:
        raise UsageError(f"--trace: the schedule has no member {message[0]}; its names are {', '.join(schedule.names)}")
    return message


def seeds_of(text: str) -> range:
    from pygroups.sim.batches.summary import parse_seeds

    seeds = parse_seeds(text) if len(text) <= 2 * len(str(sys.maxsize)) else None
    if seeds is None or seeds.stop > sys.maxsize:
        raise UsageError(f"--seeds {text[:60]} is too large: {sys.maxsize} is the last seed")
    return seeds


def _check_can_write(schedule: Path | None, journal: Path | None) -> None:
    """Raise UsageError for files that cannot be written, before the work starts."""
    if schedule is not None and schedule.is_dir():
        raise UsageError(f"the schedule cannot be written to {schedule}, which is a folder: name a file in the folder")
    if schedule is not None and not os.access(_place(schedule), os.W_OK):
        raise UsageError(f"the schedule cannot be written to {schedule}: {_refusal(_place(schedule))}")
    if journal is not None:
        try:
            journal.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"the journals cannot be written to {journal}: {error.strerror}") from error
        if not os.access(journal, os.W_OK):
            raise UsageError(f"the journals cannot be written to {journal}: {_refusal(journal)}")


def _refusal(path: Path) -> str:
    """The reason why nothing can be written to `path`."""
    return "this user has no permission to write there" if path.exists() else f"{path} does not exist"


def _place(file: Path) -> Path:
    """The path whose permission decides whether `file` can be written."""
    return file if file.exists() else file.parent


# -- one schedule


def _one_schedule(file: Path | None, seed: int | None, wish: Wish) -> tuple[Schedule, str] | None:
    """The only schedule to play, and the command that repeats it; None if there are many."""
    from pygroups.sim.batches.simulations import read_schedule
    from pygroups.sim.batches.summary import command
    from pygroups.sim.schedules.draw import draw

    if file is not None:
        return read_schedule(file), shlex.join(["pygroups", "simulate", "--schedule", str(file)])
    return (draw(seed, wish), command(seed, wish)) if seed is not None else None


def _play(
    schedule: Schedule,
    wish: Wish,
    repeat: str,
    journal: Path | None = None,
    json: bool = False,
    trace: str | None = None,
    **more: Any,
) -> int:
    """Play one schedule and print its events.  `repeat`: the command that repeats it.  With `json`, also print
    `more`."""
    from pygroups.sim.batches.runner import Totals, play
    from pygroups.sim.batches.summary import Summary
    from pygroups.sim.world.spacetime import SpaceTime
    from pygroups.sim.world.story import Followed

    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    table = None if json or trace else SpaceTime(schedule.names, columns)
    lines = Followed(print, _known(_message(trace), schedule)) if trace else None
    started = time.monotonic()
    outcome = play(schedule, journals=journal, story=lines or table, traced=lines is not None)
    totals = Totals()
    totals.add(outcome)
    if table is not None:
        _show(table, outcome)
    summary = Summary(totals, wish._replace(profile=schedule.profile), time.monotonic() - started)
    _print_counts(summary, outcome if outcome.witness else None, repeat, json, **more)
    return FAILED if outcome.witness else 0


def _show(table: SpaceTime, outcome: Outcome) -> None:
    """Print the table, in colors on a terminal."""
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
    """Find a small schedule that breaks the same promise as the schedule of `seed`."""
    from pygroups.sim.batches.runner import play
    from pygroups.sim.batches.shrink import LIMIT_S, Shrinker
    from pygroups.sim.batches.summary import command
    from pygroups.sim.schedules.draw import draw
    from pygroups.sim.schedules.schedule import to_json

    shrinker = Shrinker(draw(seed, wish), lambda one, until: play(one, until=until), seconds=LIMIT_S, tell=say)
    with contextlib.suppress(KeyboardInterrupt):  # keep the smallest schedule so far
        shrinker.run()
    say("")
    repeat = command(seed, wish).replace("--replay", "--shrink")
    if file is not None:
        file.write_bytes(to_json(shrinker.small))
        repeat = shlex.join(["pygroups", "simulate", "--schedule", str(file)])
    if not json:
        print(shrinker.said())
        if file is not None:
            print(f"wrote {file}; to play it again: `{repeat}`")
    return _play(shrinker.small, wish, repeat, json=json, shrunk=shrinker.figures())


# -- many schedules


def _run(seeds: range, wish: Wish, jobs: int, journal: Path | None, json: bool) -> int:
    """Play the seeds until a promise breaks, or until the last seed."""
    from pygroups.sim.batches.runner import Totals, play_seeds
    from pygroups.sim.batches.summary import Summary, command, faults_by_name

    progress = ProgressLine(len(seeds))
    totals, failed, interrupted = Totals(), None, False
    try:
        with _ctrl_c_noted() as noted:
            for outcome in play_seeds(seeds, wish, min(jobs, len(seeds)), journal):
                totals.add(outcome)
                progress.tell(totals.schedules, faults_by_name(totals.faults))
                if outcome.witness is not None:
                    failed = outcome
                    break
                if noted:
                    raise KeyboardInterrupt
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


@contextlib.contextmanager
def _ctrl_c_noted() -> Iterator[list[int]]:
    """Ctrl-C raises KeyboardInterrupt and is in the list too: C code that asks an object for an attribute can drop an
    exception that a signal raised there."""
    noted: list[int] = []

    def note(number: int, frame: object) -> None:
        noted.append(number)
        signal.default_int_handler(number, None)

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield noted  # the caller has a handler of its own, or ignores the signal
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _verdict(summary: Summary, failed: Outcome | None) -> int:
    """The exit code.  Prints the reason if the batch failed without a broken promise."""
    if failed is not None:
        return FAILED
    for shortcoming in summary.shortcomings():
        print(f"pygroups: {shortcoming}", file=sys.stderr)
    return FAILED if summary.shortcomings() else 0


def _print_counts(summary: Summary, failed: Outcome | None, repeat: str, json: bool, **more: Any) -> None:
    from pygroups.layers.profiles import profile_named
    from pygroups.sim.batches.summary import as_json, closing, failure
    from pygroups.sim.promises.checks import checks_of
    from pygroups.sim.promises.judge import Judge

    if json:
        promises = Judge(checks_of(profile_named(summary.wish.profile).services)).promises
        print(json_text.dumps(as_json(summary, failed, promises, repeat) | {"interrupted": False} | more))
        return
    if failed is not None:
        print(failure(failed, repeat))
    print(closing(summary))
