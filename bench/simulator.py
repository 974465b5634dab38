"""How fast the simulator is: the load of its budget, on one process per core, and the drawn schedules of a batch.

The load: 5 members of profile `total`, 50 multicasts of 100 bytes a second in all, round robin, default configuration,
a calm network, frames through the codec, all checks on.  Budget: 2 cluster-hours a real minute on 2 cores, which is a
simulated second in 16.7 ms of CPU (docs: bench/README.md).
"""

from __future__ import annotations

import argparse
import cProfile
import multiprocessing
import os
import pstats
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import common  # first: it makes this tree the one that is measured

from pygroups.core.limits import SECOND
from pygroups.sim.batches.runner import Outcome, begin_worker, play
from pygroups.sim.schedules.draw import Wish, draw
from pygroups.sim.schedules.schedule import Habits, Schedule, Weather, stream
from pygroups.sim.schedules.steps import Action, Send, StartProcess

NAMES: Final = ("A", "B", "C", "D", "E")
RATE, SIZE = 50, 100  # multicasts a second in all, bytes
FORMED: Final = 1 * SECOND  # by then the group stands; the load begins
BUDGET_HOURS: Final = 2.0  # simulated in a real minute
OTHERS_MAX: Final = 0.05  # of the machine, for other programs while this measures: more, and nothing is said of it
DRAWN: Final = 40  # schedules in a round
COUNTED: Final = {  # what a profile counts: the module and the function that is called for each
    "turns": ("sim/world/member", "turn"),
    "frames that arrive": ("core/stack", "receive"),
    "votes": ("layers/stable/layer", "on_vote"),
    "messages of the coordinator that arrive": ("layers/stable/layer", "on_stability_msg"),
    "announcements that arrive": ("layers/nakack", "on_highest_seq"),
    "acknowledgements of unicasts": ("layers/unicast2/layer", "on_ack"),
}


class Spent(NamedTuple):
    """What simulating so many seconds took one process."""

    simulated_s: float
    cpu_s: float
    schedules: int = 1


def load(seconds: int, seed: int) -> Schedule:
    """The budget's load, as a schedule."""
    chance, between = stream(seed, "load"), SECOND // RATE
    starts: list[Action] = [StartProcess(at=0, who=name) for name in NAMES]
    sends: list[Action] = [
        Send(at=at + chance.randrange(between), who=NAMES[number % len(NAMES)], count=1, size=SIZE)
        for number, at in enumerate(range(FORMED, seconds * SECOND, between))
    ]
    return Schedule(
        seed=seed,
        profile="total",
        names=NAMES,
        habits=dict.fromkeys(NAMES, Habits()),
        config={},
        weather=Weather(),
        rejoin=False,
        actions=(*starts, *sends),
        heal_at=seconds * SECOND,
        bound=10 * SECOND,
    )


def held(outcome: Outcome) -> Outcome:
    """The outcome, of which every promise held."""
    if outcome.witness is not None:
        raise RuntimeError(f"seed {outcome.seed}: {outcome.witness}")
    return outcome


def simulate(seconds: int, seed: int) -> Spent:
    """Play the load.  The quiet second at its end is in the CPU time and not in the simulated time."""
    schedule = load(seconds, seed)
    before = time.process_time()
    outcome = held(play(schedule))
    cpu_s = time.process_time() - before
    messages = (seconds * SECOND - FORMED) // (SECOND // RATE)
    assert outcome.counts["deliveries"] == messages * len(NAMES), outcome.counts
    return Spent(seconds, cpu_s)


def simulate_drawn(schedules: int, first: int) -> Spent:
    """Draw and play schedules as `pygroups simulate` does."""
    before = time.process_time()
    outcomes = [held(play(draw(seed, Wish("total")))) for seed in range(first, first + schedules)]
    return Spent(sum(outcome.now for outcome in outcomes) / SECOND, time.process_time() - before, schedules)


# -- on all cores


def rounds_of(work: Any, size: int, jobs: int, repeat: int) -> list[dict[str, float]]:
    """`repeat` times `work` in as many processes at once: what each round came to."""
    rounds = []
    with multiprocessing.get_context("fork").Pool(jobs, begin_worker) as pool:
        pool.starmap(work, [(max(1, size // 10), seed) for seed in range(jobs)])  # warm
        for number in range(repeat):
            busy, began = common.busy_seconds(), time.monotonic()
            spent: Sequence[Spent] = pool.starmap(work, [(size, jobs * number + job) for job in range(jobs)], 1)
            elapsed, busy = time.monotonic() - began, common.busy_seconds() - busy
            rounds.append(figures(spent, elapsed, busy))
    return rounds


def figures(spent: Sequence[Spent], elapsed: float, busy: float) -> dict[str, float]:
    """One round: all processes together, and what the machine did beside them."""
    simulated, cpu = sum(one.simulated_s for one in spent), sum(one.cpu_s for one in spent)
    return {
        "hours_per_minute": round(simulated / 60 / elapsed, 3),
        "cpu_ms_per_simulated_s": round(cpu / simulated * 1_000, 2),
        "schedules_per_cpu_s": round(sum(one.schedules for one in spent) / cpu, 2),
        "cpu_share_of_others": round(max(0.0, busy - cpu) / elapsed / (os.cpu_count() or 1), 3),
    }


def calls_per_simulated_s(seconds: int) -> int:
    """Function calls, those into C too: a figure that no other program disturbs."""
    counts: list[int] = []
    for length in (seconds, 2 * seconds):  # the difference has no start in it
        profile = cProfile.Profile()
        profile.runcall(simulate, length, 1)
        counts.append(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]
    return round((counts[1] - counts[0]) / seconds)


def measure(options: argparse.Namespace) -> None:
    """Both figures, each a line; valid only if the machine had little else to do in a round."""
    for what, work, size in (("load", simulate, options.seconds), ("drawn", simulate_drawn, DRAWN)):
        result = common.Result("simulator")
        rounds = rounds_of(work, size, options.jobs, options.repeat)
        best = min(rounds, key=lambda one: one["cpu_share_of_others"])
        extra: dict[str, Any] = {}
        if what == "load":
            extra = {
                "hours_per_minute_by_cpu": round(options.jobs / 60 / least(rounds) * 1_000, 3),
                "budget_hours_per_minute": BUDGET_HOURS,
                "calls_per_simulated_s": calls_per_simulated_s(20),
            }
        result.write(
            what=what,
            jobs=options.jobs,
            valid=best["cpu_share_of_others"] <= OTHERS_MAX and options.jobs <= (os.cpu_count() or 1),
            **best,
            least_cpu_ms_per_simulated_s=round(least(rounds), 2),
            median_cpu_ms_per_simulated_s=statistics.median(one["cpu_ms_per_simulated_s"] for one in rounds),
            **extra,
            rounds=rounds,
        )


def least(rounds: Sequence[dict[str, float]]) -> float:
    return min(one["cpu_ms_per_simulated_s"] for one in rounds)


# -- where the time goes


def profiled(seconds: int) -> None:
    """Print the share of each module in the time of one process, measured by cProfile, which makes calls dearer."""
    simulate(5, 0)
    profile = cProfile.Profile()
    profile.runcall(simulate, seconds, 1)
    stats: Any = pstats.Stats(profile)
    own: dict[str, float] = {}
    calls: dict[str, int] = {}
    for (file, _, function), (_, count, seconds_in, _, callers) in stats.stats.items():
        if file == "~":  # built in: on the account of whoever calls it
            for (caller, _, _), (_, number, spent, _) in callers.items():
                own[place(caller)] = own.get(place(caller), 0) + spent
                calls[place(caller)] = calls.get(place(caller), 0) + number
        else:
            own[place(file, function)] = own.get(place(file, function), 0) + seconds_in
            calls[place(file, function)] = calls.get(place(file, function), 0) + count
    for what, (module, function) in COUNTED.items():
        count = sum(
            row[1] for (file, _, name), row in stats.stats.items() if name == function and file.endswith(f"{module}.py")
        )
        print(f"{what}: {count / seconds:,.0f} a simulated second")
    total = sum(own.values())
    rooms: dict[str, float] = {}
    for name, spent in own.items():
        rooms[name.split("/")[0]] = rooms.get(name.split("/")[0], 0) + spent
    print("| where | share | calls per simulated second |\n|---|---|---|")
    for name, spent in sorted(rooms.items(), key=lambda item: -item[1]):
        print(f"| **{name}** | **{spent / total:.1%}** | |")
        inner = {inside: own[inside] for inside in own if inside.split("/")[0] == name and inside != name}
        for inside, spent_inside in sorted(inner.items(), key=lambda item: -item[1]):
            if spent_inside >= 0.01 * total:
                print(f"| {inside} | {spent_inside / total:.1%} | {calls[inside] / seconds:,.0f} |")


def place(file: str, function: str = "") -> str:
    """The module of ours that a file is, or what else it belongs to."""
    if file.startswith("<"):
        return "generated (constructors of NamedTuples)"
    path = Path(file)
    home = common.HOME / "src" / "pygroups"
    return str(path.relative_to(home).with_suffix("")) if path.is_relative_to(home) else "Python's library"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--seconds", type=int, default=120, help="simulated, of the load, in each process")
    options.add_argument("--jobs", type=int, default=2, help="processes at once")
    options.add_argument("--repeat", type=int, default=5, help="rounds")
    options.add_argument("--profile", action="store_true", help="print where the time goes, and measure nothing else")
    chosen = options.parse_args()
    if chosen.profile:
        profiled(chosen.seconds)
    else:
        measure(chosen)


if __name__ == "__main__":
    main()
