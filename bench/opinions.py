"""The audit's large questions, asked of DuckDB and of a plain Python loop, to know what Spark's answers cost.

Neither is an audit: no exact steps, no witnesses, no lives, no skips; what a dead member lacks at the end of its last
view is counted as a difference.  Both answer three questions over the table `runs`:

- digests: is every block of 65,536 messages of a view the same at all members, by place, run and body?
- order rules: that; does every delivery continue its sender's numbers; was it sent so?
- sets: did all members deliver the same runs of each sender in each view? (the loop: together with the others)
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow.parquet as pq

Measured = dict[str, Any]
THREADS: Final = 2
BLOCK: Final = 65_536  # as the audit has it
LOOP_RECORDS: Final = 1_000_000  # no more: a loop is linear
BATCH: Final = 1 << 16

DIGESTS: Final = f"""
WITH blocks AS (
    SELECT "group", view, position // {BLOCK} AS block, life, count(*) AS runs,
           bit_xor(hash(position, sender, first, count, bytes, checksum)) AS bits,
           sum(hash(position, sender, first, count, bytes, checksum) & 2147483647) AS low
    FROM runs WHERE kind = 1 GROUP BY ALL
), compared AS (
    SELECT "group", view, block, count(DISTINCT (runs, bits, low)) AS forms FROM blocks GROUP BY ALL
)
SELECT count(*) FROM compared WHERE forms > 1
"""
IRREGULAR: Final = "SELECT count(*) FROM runs WHERE kind = 1 AND first <> expected"
UNSENT: Final = """
WITH reference AS (
    SELECT "group", view, arg_max(life, runs) AS life
    FROM (SELECT "group", view, life, count(*) AS runs FROM runs WHERE kind = 1 GROUP BY ALL) GROUP BY ALL
)
SELECT count(*)
FROM runs d JOIN reference USING ("group", view, life)
LEFT JOIN runs s ON s.kind = 0 AND s.life = d.sender AND s.first = d.first
WHERE d.kind = 1 AND (s.count, s.bytes, s.checksum) IS DISTINCT FROM (d.count, d.bytes, d.checksum)
"""
SETS: Final = """
WITH streams AS (
    SELECT "group", view, sender, life, count(*) AS runs, bit_xor(hash(first)) AS bits,
           sum(hash(first) & 2147483647) AS low
    FROM runs WHERE kind = 1 GROUP BY ALL
), compared AS (
    SELECT "group", view, sender, count(DISTINCT (runs, bits, low)) AS forms FROM streams GROUP BY ALL
)
SELECT count(*) FROM compared WHERE forms > 1
"""


@contextmanager
def timed(into: Measured, name: str, records: int) -> Iterator[None]:
    began, used = time.perf_counter(), _cpu()
    yield
    into[f"{name}_us"] = round((_cpu() - used) / records * 1e6, 3)
    into[f"{name}_s"] = round(time.perf_counter() - began, 1)


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def duckdb_asks(table: Path, records: int) -> Measured:
    """Each question twice, of the files as they lie there: the first reading may find the disk cold."""
    connection = duckdb.connect()
    connection.execute(f"SET threads TO {THREADS}")
    connection.execute("SET memory_limit = '2GB'")
    files = f"read_parquet('{table}/runs/*/*/*.parquet', hive_partitioning = true)"
    connection.execute(f"CREATE VIEW runs AS SELECT * FROM {files}")
    told: Measured = {"records": records, "duckdb": duckdb.__version__}
    for again in ("first", "again"):
        for name, queries in (("digests", [DIGESTS]), ("order_rules", [DIGESTS, IRREGULAR, UNSENT]), ("sets", [SETS])):
            with timed(told, f"{name}_{again}", records):
                found = [connection.execute(query).fetchall()[0][0] for query in queries]
            told[f"{name}_found"] = found
    return told | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10}


def python_loop(table: Path, records: int) -> Measured:
    """The first million records of a group, life by life, in dictionaries."""
    told: Measured = {}
    used, asked = 0.0, 0
    seen = _Seen()
    names = ["kind", "view", "sender", "first", "count", "bytes", "checksum", "position", "expected"]
    folder = min(path for path in (table / "runs").iterdir())
    for file in sorted(folder.rglob("*.parquet")):
        life = file.stem
        for batch in islice(pq.ParquetFile(file).iter_batches(BATCH, columns=names), 1 + LOOP_RECORDS // BATCH):
            before = _cpu()
            seen.take(life, [column.to_pylist() for column in batch.columns])
            used += _cpu() - before
            asked += batch.num_rows
        if asked >= LOOP_RECORDS:
            break
    return told | {"records": asked, "all_questions_us": round(used / asked * 1e6, 3), "irregular": seen.irregular}


class _Seen:
    """What a loop has to remember."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[int, int, str], int] = {}
        self.sets: dict[tuple[int, int, str], int] = {}
        self.bodies: dict[tuple[int, int], tuple[int, int, int]] = {}
        self.irregular = self.altered = 0

    def take(self, life: str, columns: list[list[Any]]) -> None:
        blocks, sets, bodies = self.blocks, self.sets, self.bodies
        for kind, view, sender, first, count, size, checksum, position, expected in zip(*columns, strict=True):
            body = (count, size, checksum)
            if bodies.setdefault((sender, first), body) != body:
                self.altered += 1
            if kind != 1:
                continue
            place = (view, position // BLOCK, life)
            blocks[place] = blocks.get(place, 0) ^ hash((position, sender, first, count, size, checksum))
            stream = (view, sender, life)
            sets[stream] = sets.get(stream, 0) ^ hash((sender, first))
            if first != expected:
                self.irregular += 1
