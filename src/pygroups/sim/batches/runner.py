"""Plays schedules and reports the outcomes: one seed, or many on all cores."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.layer import Env
from pygroups.core.stack import Stack
from pygroups.core.trace import Crossing
from pygroups.layers.profiles import profile_named

from ..promises.broken import Broken, Witness
from ..promises.checks import checks_of
from ..promises.judge import Judge
from ..promises.two_groups import judge_of
from ..schedules.draw import Wish, draw
from ..schedules.schedule import Schedule
from ..world import faults
from ..world.ending import settle
from ..world.stacks import builder_of
from ..world.story import Crossed, Lines, Story
from ..world.watch import Watch
from ..world.world import World

# A schedule with fewer messages, with one sender, or with less than this share of its messages delivered by any member,
# tested little and is counted as empty.
MESSAGES_MIN: Final = 200
SENDERS_MIN: Final = 2
HEARD_MIN: Final = 0.5
OURS: Final = Path(__file__).parents[2]
STACK: Final = ("core", "layers", "wire")  # folders in OURS with the code of members
TURN: Final = "turn.py"  # this file hands a member's output to the simulated world
NETWORK: Final = "network: "  # prefix of the network's counters, among the drops
NO_ROUTE: Final = "no route"


class Outcome(msgspec.Struct, kw_only=True):
    """The outcome of one schedule."""

    seed: int
    witness: Witness | None  # the promise that was broken
    trace: str = ""  # the traceback, if a member failed with an exception
    now: int = 0  # time of the end or of the violation, in microseconds of virtual time
    counts: dict[str, int] = {}
    faults: dict[str, int] = {}  # counts of the world's faults and of the network's treatment of frames
    drops: dict[str, int] = {}  # by reason
    facts: dict[str, int] = {}  # by promise, the number of judged facts: Judge.facts

    @property
    def empty(self) -> bool:
        """Whether the schedule broke no promise and tested little."""
        messages, heard = self.counts.get("messages", 0), self.counts.get("messages heard", 0)
        few = messages < MESSAGES_MIN or self.counts.get("senders", 0) < SENDERS_MIN
        return self.witness is None and (few or heard < HEARD_MIN * messages)


class Totals(msgspec.Struct, kw_only=True):
    """The sums of many outcomes."""

    schedules: int = 0
    empty: int = 0
    virtual_s: float = 0.0
    counts: dict[str, int] = {}
    faults: dict[str, int] = {}
    drops: dict[str, int] = {}
    facts: dict[str, int] = {}

    def add(self, outcome: Outcome) -> None:
        self.schedules += 1
        self.empty += outcome.empty
        self.virtual_s += outcome.now / 1_000_000
        for sums, addends in (
            (self.counts, outcome.counts),
            (self.faults, outcome.faults),
            (self.drops, outcome.drops),
            (self.facts, outcome.facts),
        ):
            for name, count in addends.items():
                sums[name] = sums.get(name, 0) + count


def play(
    schedule: Schedule,
    *,
    build: Callable[[Env], Stack] | None = None,
    judge: Judge | None = None,
    journals: Path | None = None,
    tell: Callable[[str], None] | None = None,
    story: Story | None = None,
    traced: bool = False,
    until: int | None = None,
) -> Outcome:
    """Play `schedule` to its end, or until the time `until` (microseconds); nothing is judged after that time.

    `journals` is a folder for the members' journals, in seed-<n>/<name>@<incarnation>/.  The events go to `story`, or
    else as lines to `tell`.  With `traced` the story also gets each crossing of a border between two layers.
    """
    judge = judge or judge_of(schedule.others, lambda: checks_of(profile_named(schedule.profile).services))

    def crossed(member: Address, crossing: Crossing) -> None:
        world.tell(member.name, Crossed(crossing))

    world = World(
        schedule,
        build or builder_of(schedule.profile, crossed if traced else None),
        judge,
        at_moments=faults.at_moments,
        journals=journals is not None,
        story=Lines(tell) if story is None and tell is not None else story,
    )
    witness, trace = None, ""
    if until is not None:
        world.agenda.at(until, _stop)
    try:
        _play(world)
    except _Stopped:
        pass
    except Broken as broken:
        witness = broken.witness
    except Exception as error:  # noqa: BLE001 (a layer's exception is a finding, reported with its seed)
        witness, trace = _raised(error), traceback.format_exc()
    if journals is not None:
        for member in world.lives.values():
            assert member.journal is not None
            member.journal.save(journals)
    return _outcome(world, judge, witness, trace)


class _Stopped(Exception):
    """The requested time for the schedule is over."""


def _stop() -> None:
    raise _Stopped


def _play(world: World) -> None:
    schedule, agenda = world.schedule, world.agenda
    if world.network.silences:
        world.judge.disturbed()
    agenda.plan((action.at, faults.apply, (world, action)) for action in schedule.actions)
    Watch(world).look()
    agenda.run_until(schedule.heal_at)
    if schedule.stays:
        world.calm()
        agenda.run_until(schedule.heal_at + schedule.stays)
    if not schedule.for_good:
        world.heal()
        settle(world)


def _raised(error: Exception) -> Witness:
    frames = traceback.extract_tb(error.__traceback__)
    files = [Path(frame.filename) for frame in frames]
    inside = any(file.is_relative_to(OURS / room) and file.name != TURN for file in files for room in STACK)
    who = "a member raised an exception" if inside else "the simulator raised an exception, and no member did"
    detail = f"{who}: {type(error).__name__}: {error} ({Path(frames[-1].filename).name}:{frames[-1].lineno})"
    return Witness(promise="no-exception", detail=detail)


def _outcome(world: World, judge: Judge, witness: Witness | None, trace: str) -> Outcome:
    counts = dict(judge.counters)
    counts["senders"] = len(judge.senders)
    counts["messages heard"] = sum(judge.heard.values()) - len(judge.heard)
    counts |= world.counters
    happened = {name: count for name, count in world.counters.items() if name != NO_ROUTE}
    network = {name: count for name, count in world.network.counters.items() if count}
    drops = {f"{NETWORK}{name}": count for name, count in network.items()}
    if world.pipes is not None:
        network |= {"connections broken": world.pipes.broken, "lost with connections": world.pipes.in_flight}
    if NO_ROUTE in world.counters:
        drops[NETWORK + NO_ROUTE] = world.counters[NO_ROUTE]
    for member in world.lives.values():
        sent = member.watched.counts() if member.watched is not None else {}
        for name, count in sent.items():
            counts[name] = counts.get(name, 0) + count
        for name, count in member.env.counters.items():
            if name.startswith("drop "):
                reason = name.removeprefix("drop ")
                drops[reason] = drops.get(reason, 0) + count
            else:
                counts[name] = counts.get(name, 0) + count
    return Outcome(
        seed=world.schedule.seed,
        witness=witness,
        trace=trace,
        now=world.agenda.now,
        counts=counts,
        faults={"starts": len(world.lives), **happened, **network},
        drops=drops,
        facts=judge.facts,
    )


# -- many


def play_seed(seed: int, wish: Wish, journals: Path | None = None) -> Outcome:
    """Draw and play the schedule of `seed`."""
    return play(draw(seed, wish), journals=journals)


def play_seeds(seeds: Iterable[int], wish: Wish, jobs: int, journals: Path | None = None) -> Iterator[Outcome]:
    """The outcomes of `seeds`, in their order, from `jobs` processes."""
    work = partial(play_seed, wish=wish, journals=journals)
    if jobs == 1:
        yield from map(work, seeds)
        return
    with multiprocessing.get_context("fork").Pool(jobs, begin_worker) as pool:
        yield from pool.imap(work, seeds, chunksize=2)


def begin_worker() -> None:
    """Set up a process that only plays schedules.

    Ctrl-C reaches every process of a terminal; a worker ignores it, and the process that counts the outcomes handles
    it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # existing objects live as long as the process
