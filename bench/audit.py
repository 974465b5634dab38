"""How fast an audit is: `python bench/audit.py [--records N] [--members M] [--per-frame K]`.

Writes the journals of a group in which M members order N run records (sends and deliveries, in one view after another),
audits them, and prints seconds and records a second for each step. The session is warm: a small audit runs before.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from pygroups.journal.frames import Record
from pygroups.journal.writer import JournalWriter
from pygroups.pipeline import audit as auditing
from pygroups.pipeline.session import make_session
from pygroups.pipeline.store import Store

RUN_MESSAGES = 20


def write_group(root: Path, records: int, members: int, per_frame: int, views: int = 10) -> int:
    """Journals of about `records` run records; returns how many records were written."""
    names = [chr(65 + at) for at in range(members)]
    lives = [f"{name}@{ord(name):016x}" for name in names]
    journals = [
        JournalWriter(root, "bench", name, f"{ord(name):016x}", "total", host="here", boot_id="boot") for name in names
    ]
    runs = records // (members + 1)
    written = 0
    for at, journal in enumerate(journals):
        batch: list[Record] = [("start", None, {"gauges": {"bound_us": 1_000_000}})]
        for number, record in enumerate(_story(at, names, lives, runs, views)):
            batch.append(record)
            if len(batch) >= per_frame:
                journal.write(batch, 1_700_000_000_000_000 + number * 10, number * 10)
                written += len(batch)
                batch = []
        journal.write(batch, 1_700_000_000_000_000, 0)
        written += len(batch)
        journal.close()
    return written


def _story(me: int, names: list[str], lives: list[str], runs: int, views: int) -> Any:
    members = len(names)
    nexts = [1] * members
    each = max(runs // views, 1)
    view, position, previous = (0, lives[0]), 0, None
    for run in range(runs):
        if run % each == 0:
            previous, view, position = (view if run else None), (view[0] + 1, lives[0]), 0
            fields: dict[str, object] = {"members": lives, "transitional": lives if previous else [lives[me]]}
            if previous:
                fields |= {"previous_number": previous[0], "previous_creator": previous[1]}
            yield "view", view, fields
        origin = run * 7 % members
        what: dict[str, object] = {
            "origin": names[origin],
            "origin_incarnation": lives[origin].partition("@")[2],
            "first": nexts[origin],
            "count": RUN_MESSAGES,
            "bytes": 100 * RUN_MESSAGES,
            "checksum": run * 0x9E3779B97F4A7C1 % (1 << 63),
        }
        nexts[origin] += RUN_MESSAGES
        if origin == me:
            yield "send", view, what
        yield "deliver", view, what | {"stream": lives[0], "seq": run % each, "position": position, "order": run % each}
        position += RUN_MESSAGES
    yield "quiet", view, {}
    yield "stats", view, {"gauges": {"window": 0}}


def processor_seconds() -> float:
    """Of this process and all below it: Java, and Spark's Python workers."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we looked
        parents[int(folder.name)] = int(fields[1])
        used[int(folder.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    ours = {os.getpid()}
    for _ in range(8):  # generations
        ours |= {process for process, parent in parents.items() if parent in ours}
    return sum(used[process] for process in ours)


class Timed(Store):
    """A store that tells how long each table took, and how much of the processors."""

    seconds: dict[str, float]
    processor: dict[str, float]

    def keep(self, name: str, frame: Any) -> Any:
        begin, used = time.perf_counter(), processor_seconds()
        kept = super().keep(name, frame)
        self.seconds[name] = round(time.perf_counter() - begin, 2)
        self.processor[name] = round(processor_seconds() - used, 2)
        return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--per-frame", type=int, default=4)
    call = parser.parse_args()
    auditing.Store = Timed  # type: ignore[misc]
    auditing.SMALL_BYTES = -1
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_group(root / "warm", 3000, call.members, call.per_frame)
        begin = time.perf_counter()
        written = write_group(root / "large", call.records, call.members, call.per_frame)
        writing = time.perf_counter() - begin
        make_session(master="local[2]")
        Timed.seconds, Timed.processor = {}, {}
        auditing.audit([root / "warm"], master="local[2]")
        Timed.seconds, Timed.processor = {}, {}
        begin, used = time.perf_counter(), processor_seconds()
        result = auditing.audit([root / "large"], master="local[2]")
        whole, used = time.perf_counter() - begin, processor_seconds() - used
    assert not result.broken
    assert result.rows == written
    steps = Timed.seconds
    told = {
        "records": written,
        "load_average": round(os.getloadavg()[0], 1),
        "writing_s": round(writing, 1),
        "ingest_records_per_s": round(written / steps["bronze"]),
        "rules_s": steps["gold/findings"],
        "rules_records_per_s": round(written / steps["gold/findings"]),
        "audit_s": round(whole, 1),
        "audit_processor_s": round(used, 1),
        "steps_s": steps,
        "steps_processor_s": Timed.processor,  # steps that run at the same time count each other
    }
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
