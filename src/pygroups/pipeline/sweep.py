"""Seeds of the simulator spread over a Spark cluster: a few seconds of work in a task, one row for each seed.

The rows are Parquet files in the folder `seeds` of the output, and beside them `sweep.json` has the kind of schedules.
A sweep goes in waves, and each wave is one job that appends its rows.  A sweep that was killed repeats the wave that it
was in; a later sweep of the same kind plays only the seeds that have no row.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from pygroups._version import __version__
from pygroups.core.errors import UsageError
from pygroups.pipeline.remote import Answer, answer_of
from pygroups.pipeline.session import describe
from pygroups.sim.batches.runner import Totals, play_seed
from pygroups.sim.batches.summary import command
from pygroups.sim.schedules.draw import Wish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASK_SEEDS: Final = 12  # about three seconds of work
TASKS_PER_CORE: Final = 4  # in one wave
FAILURES_MAX: Final = 1_000  # broken seeds that a result lists; the table has all
SCHEMA: Final = """
    seed long, verdict string, promise string, detail string, command string, simulated_s double, cpu_s double,
    counts map<string, long>, faults map<string, long>, drops map<string, long>, facts map<string, long>
"""
_COUNTS: Final = pa.map_(pa.string(), pa.int64())
_ROWS: Final = pa.schema(
    [
        ("seed", pa.int64()),
        ("verdict", pa.string()),  # held, broken, or empty: it broke no promise and tested little
        ("promise", pa.string()),
        ("detail", pa.string()),
        ("command", pa.string()),  # repeats the seed
        ("simulated_s", pa.float64()),
        ("cpu_s", pa.float64()),
        *[(name, _COUNTS) for name in ("counts", "faults", "drops", "facts")],
    ]
)


class Failure(NamedTuple):
    """A seed whose schedule broke a promise."""

    seed: int
    promise: str
    detail: str
    command: str


class SweepResult(NamedTuple):
    """What the table says about the seeds of one call, those of earlier calls included."""

    totals: Totals
    failures: list[Failure]  # the first FAILURES_MAX, by seed
    broken: int
    played: int  # in this call
    seconds: float


def sweep(
    session: "SparkSession", seeds: range, wish: Wish, out: Path, tell: Callable[[int, int], None] = lambda *_: None
) -> SweepResult:
    """Play the seeds that have no row in `out` yet, and sum up all of them.  `tell` gets the seeds that are done, and
    how many there are.

    Raises UsageError if `out` has the seeds of another kind of schedules, or of another version of pygroups.
    """
    began, played = time.monotonic(), 0
    table = out / "seeds"
    begun = bool(answer_of(session, _claim, out, wish))
    wave = TASK_SEEDS * TASKS_PER_CORE * _cores(session)
    for start in range(seeds.start, seeds.stop, wave):
        stop = min(start + wave, seeds.stop)
        tell(start - seeds.start, len(seeds))
        describe(session, f"pygroups sweep: seeds {start:,} to {stop - 1:,} of profile {wish.profile}")
        known = _known(session, table, start, stop) if begun or played else set()
        missing = sorted(set(range(start, stop)) - known)
        if missing:
            _play(session, missing, wish).write.mode("append").parquet(str(table))
            played += len(missing)
    tell(len(seeds), len(seeds))
    describe(session, "pygroups sweep: sums")
    rows = _rows(session, table).where(f"seed >= {seeds.start} and seed < {seeds.stop}").dropDuplicates(["seed"])
    return _summed(rows.cache(), played, time.monotonic() - began)


def _claim(out: Path, wish: Wish) -> Answer:
    """Note the kind of schedules in `out`, or compare it with the one that is there.  The answer has the table, if it
    is there."""
    kind = {"version": __version__, **{name: value for name, value in wish._asdict().items() if value is not None}}
    kind = json.loads(json.dumps(kind))
    note = out / "sweep.json"
    if note.exists():
        found = json.loads(note.read_text())
        if found != kind:
            differing = ", ".join(sorted({name for name in {*found, *kind} if found.get(name) != kind.get(name)}))
            raise UsageError(
                f"{out} has the seeds of another sweep ({differing} differs): give another folder for --out"
            )
        return {"seeds": b""} if (out / "seeds").exists() else {}
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} has other files: give a new or empty folder for --out")
    out.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps(kind, indent=1) + "\n")
    return {}


def _cores(session: "SparkSession") -> int:
    """How many tasks Spark runs at a time, as far as it says."""
    from pyspark.sql import functions as sf

    return session.range(1 << 10).select(sf.spark_partition_id()).distinct().count()


def _rows(session: "SparkSession", table: Path) -> "DataFrame":
    return session.read.schema(SCHEMA).parquet(str(table))


def _known(session: "SparkSession", table: Path, start: int, stop: int) -> set[int]:
    """The seeds from `start` to `stop` that have a row."""
    known = _rows(session, table).where(f"seed >= {start} and seed < {stop}").select("seed").distinct().collect()
    return {row.seed for row in known}


def _play(session: "SparkSession", seeds: list[int], wish: Wish) -> "DataFrame":
    tasks = [seeds[at : at + TASK_SEEDS] for at in range(0, len(seeds), TASK_SEEDS)]
    numbers = session.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(partial(played, tasks=tasks, wish=wish), SCHEMA)


def played(batches: Iterator[pa.RecordBatch], tasks: Sequence[Sequence[int]], wish: Wish) -> Iterator[pa.RecordBatch]:
    """The rows of the seeds of the tasks whose numbers are in `batches`.  Runs in Spark's workers."""
    for batch in batches:
        rows = [_row(seed, wish) for task in batch.column("id").to_pylist() for seed in tasks[task]]
        yield pa.RecordBatch.from_pylist(rows, schema=_ROWS)


def _row(seed: int, wish: Wish) -> dict[str, object]:
    began = time.process_time()
    outcome = play_seed(seed, wish)
    witness = outcome.witness
    return {
        "seed": seed,
        "verdict": "broken" if witness is not None else "empty" if outcome.empty else "held",
        "promise": None if witness is None else witness.promise,
        "detail": None if witness is None else str(witness),
        "command": command(seed, wish),
        "simulated_s": outcome.now / 1e6,
        "cpu_s": time.process_time() - began,
        **{name: list(getattr(outcome, name).items()) for name in ("counts", "faults", "drops", "facts")},
    }


def _summed(rows: "DataFrame", played: int, seconds: float) -> SweepResult:
    from pyspark.sql import functions as sf

    totals = Totals()
    by_verdict = rows.groupBy("verdict").agg(sf.count("seed"), sf.sum("simulated_s"))
    for verdict, count, simulated in by_verdict.collect():
        totals.schedules += count
        totals.empty += count if verdict == "empty" else 0
        totals.virtual_s += simulated
    for name in ("counts", "faults", "drops", "facts"):
        sums = rows.selectExpr(f"explode({name}) as (name, number)").groupBy("name").sum("number").collect()
        getattr(totals, name).update({row[0]: row[1] for row in sums})
    broken = rows.where("verdict = 'broken'")
    first = broken.orderBy("seed").limit(FAILURES_MAX).select("seed", "promise", "detail", "command").collect()
    return SweepResult(totals, [Failure(*row) for row in first], broken.count(), played, seconds)
