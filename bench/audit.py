"""What an audit costs, in CPU: `python -m bench.audit [--parts ...] [--records N,N] [--journals N] [--demo JOURNALS]`.

Histories are drawn (`histories.py`): three groups, 30 views, joins, deaths, runs of 1 to 1,000 messages.  Each part
runs in a process of its own, so that its memory is its own, and counts the CPU of that process, of what it started and
of Spark's JVM.  Walls are told too; on a busy machine they mean nothing.

- `ingest`: journals to a table, at `--journals` run records
- `rules`: from a table, at each of `--records`: block digests, the order rules alone and with all that they read, all
  promises, the measures
- `duckdb`, `python`: the same questions asked of DuckDB on the same files, and of a plain loop over a part of them
- `skip`: a run missing at the start of a view of a million runs at eight members
- `members`: as many records with 8, 16, 32 and 64 members at a time and twice as many views: the memory of the process
  that drives the audit, which may grow with members squared
- `demo`: an audit of the journals that `--demo` names, from the start of Python to the JSON
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from threading import Thread
from typing import Any, Final

from bench.common import HOME, Result
from bench.histories import Shape
from bench.opinions import duckdb_asks, python_loop
from bench.written import write_journals, write_tables

PARTS: Final = ("ingest", "rules", "duckdb", "python", "skip", "members", "demo")
FREE_BYTES: Final = 80  # on the disk for each run record of a table
SECONDS: Final = 3_000  # after which a part is given up
MASTER: Final = "local[2]"
ORDER: Final = ("total-order", "gap-free-prefix", "fifo", "no-duplication", "integrity", "run-identity")
TRIES: Final = ("first", "again", "third")
LOOP_RECORDS: Final = 1_000_000
SKIP: Final = Shape(9_000_000, groups=1, views=1, skip=True)  # a million runs: eight deliveries and a send of each
MEMBERS: Final = (8, 16, 32, 64)  # of each view, in histories of as many records
MEMBERS_RECORDS: Final = 500_000
SETTINGS: Final = ("PYSPARK_SUBMIT_ARGS", "JAVA_TOOL_OPTIONS")
"""Another heap or collector for Spark's JVM, to find out how much memory an audit needs."""
Measured = dict[str, Any]


@contextmanager
def timed(into: Measured, name: str, records: int) -> Iterator[None]:
    """Writes CPU microseconds a record and wall seconds of what is done inside."""
    from pygroups.pipeline.timings import cpu_seconds

    began, used = time.perf_counter(), cpu_seconds()
    yield
    into[f"{name}_us"] = round((cpu_seconds() - used) / records * 1e6, 3)
    into[f"{name}_s"] = round(time.perf_counter() - began, 1)


def ingest_part(folder: Path, records: int) -> Measured:
    """Journals of one segment size to a table, with as many workers as cores."""
    from pygroups.pipeline.ingest import ingest

    told: Measured = {"records": write_journals(Shape(records), folder / "journals")}
    told["journal_bytes"] = sum(file.stat().st_size for file in (folder / "journals").rglob("*.journal"))
    with timed(told, "ingest", told["records"]):
        done = ingest([folder / "journals"], folder / "table")
    told["rows"] = done.rows  # votes and events too
    told["table_bytes"] = sum(file.stat().st_size for file in (folder / "table").rglob("*.parquet"))
    return told


def rules_part(table: Path, records: int) -> Measured:
    """Everything that Spark does, in one session; a JVM compiles what it does first, so the parts are done twice."""
    from pygroups.pipeline.audit import audit
    from pygroups.pipeline.ingest import Table
    from pygroups.pipeline.prepare import prepare
    from pygroups.pipeline.promises import RULES
    from pygroups.pipeline.recorded import open_table
    from pygroups.pipeline.report.gather import findings_of
    from pygroups.pipeline.session import make_session
    from pygroups.pipeline.store import Store
    from pygroups.pipeline.verdicts import count

    told: Measured = {"records": records}
    memory = Memory()
    session = make_session(master=MASTER)
    for again in ("first", "again"):
        for name, wanted in (("digests", ORDER[:1]), ("order_rules", ORDER)):
            rules = [rule for rule in RULES if rule.promise in wanted]
            with timed(told, f"{name}_{again}", records), tempfile.TemporaryDirectory() as folder:
                recorded = open_table(session, Table(table), small=False)
                count(prepare(recorded, rules, Store(session, Path(folder))), rules)
    told |= _order_alone(session, table, records)
    with timed(told, "promises", records):
        result = audit([table], master=MASTER)
    with timed(told, "measures", records):
        findings_of(result)
    told["broken"] = [verdict.promise for verdict in result.verdicts if verdict.verdict == "broken"]
    told["held"] = len({verdict.promise for verdict in result.verdicts if verdict.verdict == "held"})
    return told | {"steps": _steps(result), "peak_mb": memory.peak_mb}


def _order_alone(session: Any, table: Path, records: int) -> Measured:
    """What the order rules cost beside the tables of lives, views, events and streams, which other rules need too.

    `order_alone` makes the blocks, adds up the runs and counts for all rules of ORDER. `streams_order` makes the
    streams with the columns of these rules and `streams_plain` without them: the difference belongs to the order rules
    too. `blocks_alone` is the part of the block digests.
    """
    from pygroups.pipeline.block_scan import blocks_of, purges_of, streams_of
    from pygroups.pipeline.findings import columns_of
    from pygroups.pipeline.ingest import Table
    from pygroups.pipeline.prepare import prepare, runs_in_doubt, trusted
    from pygroups.pipeline.promises import RULES
    from pygroups.pipeline.recorded import open_table
    from pygroups.pipeline.runs import sample_of
    from pygroups.pipeline.store import Store
    from pygroups.pipeline.verdicts import count

    told: Measured = {}
    rules = [rule for rule in RULES if rule.promise in ORDER]
    columns = {"order": columns_of(rules, "streams"), "plain": {}}
    with tempfile.TemporaryDirectory() as folder:
        store = Store(session, Path(folder))
        recorded = open_table(session, Table(table), small=False)
        tables = prepare(recorded, rules, store)
        said, purges = trusted(recorded.history.runs, tables.lives).where("kind <= 3"), purges_of(tables.votes)
        made = (tables.deliveries, tables.lives, tables.streams, {})
        for again in TRIES:
            with timed(told, f"order_alone_{again}", records):
                blocks = store.keep("bench/blocks", blocks_of(*made))
                sample = sample_of(said, blocks, tables.lives, whole=recorded.whole)
                runs = runs_in_doubt(sample, tables.lives, store)
                count(replace(tables, blocks=blocks, runs=runs), rules)
            with timed(told, f"blocks_alone_{again}", records):
                _run(blocks_of(*made))
            for name, added in columns.items():
                with timed(told, f"streams_{name}_{again}", records):
                    _run(streams_of(said, tables.lives, purges, added))
    return told


def _run(frame: Any) -> None:
    """All rows are made and none is kept."""
    frame.write.format("noop").mode("overwrite").save()


def skip_part(table: Path, records: int) -> Measured:
    """How soon, and in how much memory, the member that lacks the first run of a large view is named."""
    from pygroups.pipeline.audit import audit

    told: Measured = {"records": records}
    memory = Memory()
    with timed(told, "audit", records):
        result = audit([table], master=MASTER)
    witnesses = [one for verdict in result.verdicts for one in verdict.violations]
    named = {(witness.promise, witness.member, witness.origin, witness.first) for witness in witnesses}
    told["settings"] = {name: os.environ[name] for name in SETTINGS if name in os.environ}
    return told | {"named": sorted(map(list, named)), "steps": _steps(result), "peak_mb": memory.peak_mb}


def members_part(table: Path, records: int) -> Measured:
    """The memory of an audit, and of it the part that this process needs to open the table, in which it keeps the
    members of each view."""
    from pygroups.pipeline.audit import audit
    from pygroups.pipeline.ingest import Table
    from pygroups.pipeline.recorded import _told, lives_of

    told: Measured = {"records": records}
    memory = Memory()
    with timed(told, "audit", records):
        result = audit([table], master=MASTER)
    told["held"] = len({verdict.promise for verdict in result.verdicts if verdict.verdict == "held"})
    tracemalloc.start()
    lives = lives_of(Table(table).manifest().to_pylist(), _told(Table(table)))
    told |= {"incarnations": len(lives), "opening_mb": round(tracemalloc.get_traced_memory()[1] / 1e6, 2)}
    return told | {"peak_mb": memory.peak_mb}


def demo_part(journals: Path, _: int) -> Measured:
    """A whole audit of small journals, from the start of Python to the JSON."""
    from pygroups.cli.main import main as command
    from pygroups.pipeline.timings import cpu_seconds

    began, memory = time.perf_counter(), Memory()
    code = command(["audit", str(journals), "--json", "--master", MASTER])
    spent = {"cpu_s": round(cpu_seconds(), 1), "wall_s": round(time.perf_counter() - began, 1)}
    return {"code": code} | spent | {"peak_mb": memory.peak_mb}


def _steps(result: Any) -> Measured:
    return {step.name: [round(step.cpu_seconds, 1), round(step.seconds, 1)] for step in result.work.steps}


class Memory:
    """The most resident memory that this process and all below it had at one time, looked at every 20 ms.

    Pages that two processes share count twice. `peak_mb` has the sum, and of that moment the part of each program.
    Which processes there are is asked twice a second only: for it all threads of the JVM are looked at, and that at
    every look took 6 % of a core from the audit.
    """

    def __init__(self) -> None:
        self.peak_mb: dict[str, int] = {"sum": 0}
        Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        from pygroups.pipeline.timings import processes_below

        for look in cycle(range(25)):
            if not look:
                processes = (os.getpid(), *processes_below(os.getpid()))
            found: dict[str, int] = {}
            for process in processes:
                name, kilobytes = _resident(process)
                found[name] = found.get(name, 0) + (kilobytes >> 10)
            if sum(found.values()) > self.peak_mb["sum"]:
                self.peak_mb = {"sum": sum(found.values())} | found
            time.sleep(0.02)


def _resident(process: int) -> tuple[str, int]:
    """The program of a process and its resident kilobytes; nothing of one that has ended or has no program yet.

    A process that the JVM is about to start has all the memory of the JVM, and the name of one of its threads.
    """
    try:
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
        program = Path(f"/proc/{process}/exe").readlink().name
    except OSError:
        return "ended", 0
    name = fields["Name"].strip()
    return (name, int(fields.get("VmRSS", "0").split()[0])) if program.startswith(name) else ("starting", 0)


WORKERS: Final[dict[str, Callable[[Path, int], Measured]]] = {
    "ingest": ingest_part,
    "rules": rules_part,
    "duckdb": duckdb_asks,
    "python": python_loop,
    "skip": skip_part,
    "members": members_part,
    "demo": demo_part,
}


def run_part(part: str, path: Path, records: int) -> Measured:
    """The part in a session of processes of its own; what went wrong if it did."""
    command = [sys.executable, "-m", "bench.audit", "--worker", part, "--folder", str(path), "--records", str(records)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=HOME, check=False, timeout=SECONDS, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        return {"part": part, "records": records, "gave_up_after_s": SECONDS}
    if done.returncode:
        return {"part": part, "records": records, "failed": done.stderr.strip().splitlines()[-1:]}
    return {"part": part} | json.loads(done.stdout.strip().splitlines()[-1])


def measure(call: argparse.Namespace, folder: Path) -> Iterator[Measured]:
    """The parts that were asked for, one after another; a table is drawn once for all that ask it."""
    if "ingest" in call.parts:
        yield run_part("ingest", folder / "ingest", call.journals)
        shutil.rmtree(folder / "ingest", ignore_errors=True)
    asking = [part for part in ("rules", "duckdb", "python") if part in call.parts]
    for records in map(int, call.records.split(",")) if asking else ():
        if shutil.disk_usage(folder).free < 2 * FREE_BYTES * records:
            yield {"records": records, "failed": "the disk is too full for such a table"}
            continue
        written = write_tables(Shape(records), folder / "table")
        for part in asking:
            yield run_part(part, folder / "table", written)
        shutil.rmtree(folder / "table")
    if "skip" in call.parts:
        written = write_tables(SKIP, folder / "skip")
        yield run_part("skip", folder / "skip", written)
    for members in MEMBERS if "members" in call.parts else ():
        written = write_tables(Shape(MEMBERS_RECORDS, groups=1, members=members, views=2 * members), folder / "members")
        yield {"members": members} | run_part("members", folder / "members", written)
        shutil.rmtree(folder / "members")
    if "demo" in call.parts and call.demo is not None:
        yield run_part("demo", call.demo, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--records", default="10000000", help="run records of the tables, with commas between")
    parser.add_argument("--journals", type=int, default=1_000_000, help="run records of the journals to ingest")
    parser.add_argument("--demo", type=Path, help="a folder of journals, as the demo leaves it")
    parser.add_argument("--worker", choices=WORKERS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="where the tables are written")
    call = parser.parse_args()
    if call.worker:
        print(json.dumps(WORKERS[call.worker](call.folder, int(call.records))))
        return
    call.parts = call.parts.split(",")
    if unknown := set(call.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(dir=call.folder) as folder:
        for measured in measure(call, Path(folder)):
            Result("audit").write(**measured)


if __name__ == "__main__":
    main()
