"""The tables of a stream: `violations`, `verdicts` and `measures`, Parquet files in folders `batch=N`.

A batch that is repeated replaces its own folders.
"""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pygroups.journal.schema import VIOLATION_COLUMNS
from pygroups.pipeline.ingest import Table
from pygroups.pipeline.ingest.layout import DELIVER, EVENTS, RUNS, SEND
from pygroups.pipeline.ingest.table import read_rows
from pygroups.pipeline.promises import RULES
from pygroups.pipeline.stream.judging import JUDGED, WHEN_A_VIEW_CLOSES
from pygroups.pipeline.stream.state import Progress, Standing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEFT: Final = "left to the audit"
_TEXT, _LONG = pa.string(), pa.int64()
VIOLATIONS: Final = pa.schema(
    [(name, _LONG if ddl == "bigint" else _TEXT) for name, ddl in VIOLATION_COLUMNS.items()] + [("history", _TEXT)]
)
VERDICTS: Final = pa.schema(
    [
        *((name, _TEXT) for name in ("promise", "group", "history", "verdict")),
        *((name, _LONG) for name in ("judged", "skipped", "broken")),
        ("reason", _TEXT),
    ]
)
MEASURES: Final = pa.schema(
    [
        *((name, _TEXT) for name in ("group", "member")),
        ("minute", pa.timestamp("us", tz="UTC")),
        *((name, _LONG) for name in ("sent", "delivered", "delivered_bytes", "delivered_runs", "views")),
    ]
)
_MINUTE_US: Final = 60_000_000
_SAME: Final = ", ".join(f"`{name}`" for name in (*VIOLATION_COLUMNS, "history") if name != "detail")


def prepare_tables(out: Path) -> None:
    """Make the folders.  Each has a file without rows, so that a table can be read before a batch has a row for it."""
    for name, schema in (("violations", VIOLATIONS), ("verdicts", VERDICTS), ("measures", MEASURES)):
        folder = out / name / "batch=-1"
        if not folder.exists():
            _write(folder, schema.empty_table())


def _write(folder: Path, rows: pa.Table) -> None:
    """Write the only file of a folder, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / ".rows.parquet"
    pq.write_table(rows, beside)
    os.replace(beside, folder / "rows.parquet")


def remove_batches(out: Path, batch: int) -> None:
    """Remove what a killed batch wrote."""
    for name in ("violations", "verdicts", "measures"):
        shutil.rmtree(out / name / f"batch={batch}", ignore_errors=True)


def write_violations(session: "SparkSession", out: Path, batch: int, found: "DataFrame") -> list[dict[str, Any]]:
    """Write the violations that no earlier batch has found; returns them as counts by promise, group and history, each
    with its first ones.  `found` has names in place of keys."""
    from pyspark.sql import functions as F

    known = session.read.parquet(str(out / "violations")).selectExpr(f"xxhash64({_SAME}) as same")
    same = found.selectExpr("*", f"xxhash64({_SAME}) as same")
    one = same.selectExpr("*", "row_number() over (partition by same order by detail) as number").where("number = 1")
    new = one.join(known, "same", "left_anti")
    folder = out / "violations" / f"batch={batch}"
    new.select(VIOLATIONS.names).coalesce(1).write.mode("overwrite").parquet(str(folder))
    rows = session.read.parquet(str(folder))
    if not rows.limit(1).count():
        shutil.rmtree(folder)
        return []
    first = F.slice(F.sort_array(F.collect_list(F.struct(*VIOLATION_COLUMNS))), 1, 5).alias("first")
    sums = rows.groupBy("promise", "group", "history").agg(F.count("promise").alias("broken"), first)
    return [row.asDict(recursive=True) for row in sums.collect()]


def write_verdicts(out: Path, progress: Progress) -> None:
    """Write the verdicts so far, and remove those of earlier batches."""
    _write(out / "verdicts" / f"batch={progress.batch}", verdicts(progress))
    for folder in (out / "verdicts").iterdir():
        if folder.name not in (f"batch={progress.batch}", "batch=-1"):
            shutil.rmtree(folder)


def verdicts(progress: Progress) -> pa.Table:
    """One row for each promise, group and history: held, broken or not judged yet; or left to the audit."""
    standings: dict[tuple[str, str], list[Standing]] = {}
    for one in progress.standings:
        standings.setdefault((one.promise, one.group), []).append(one)
    rows = []
    for rule in RULES:
        for group, profiles in sorted(progress.services.items()):
            if not any(rule.services <= set(services) for services in profiles.values()):
                continue
            if rule.promise not in JUDGED:
                rows.append(_verdict(Standing(rule.promise, group, None), LEFT, LEFT))
                continue
            for one in standings.get((rule.promise, group), [Standing(rule.promise, group, None)]):
                rows.append(_verdict(one, _word(one), _reason(one, progress)))
    return pa.Table.from_pylist(rows, VERDICTS)


def _word(one: Standing) -> str:
    return "broken" if one.broken else "held" if one.judged else "not judged"


def _reason(one: Standing, progress: Progress) -> str:
    """Which facts were skipped, and which were not judged yet."""
    parts = [f"{number} skipped: {why}" for why, number in sorted(one.skipped.items())]
    if one.promise in WHEN_A_VIEW_CLOSES and one.group in progress.left_open:
        views = progress.left_open[one.group].views
        parts.append("1 view is open and not judged" if views == 1 else f"{views} views are open and not judged")
    return "; ".join(parts) or ("" if one.judged else "no occasion")


def _verdict(one: Standing, word: str, reason: str) -> dict[str, Any]:
    named = {"promise": one.promise, "group": one.group, "history": one.history, "verdict": word, "reason": reason}
    return named | {"judged": one.judged, "skipped": sum(one.skipped.values()), "broken": one.broken}


def write_measures(out: Path, batch: int, table: Table, runs: Sequence[str], events: Sequence[str]) -> None:
    """Write what the new records add to each minute of each member.  A minute may have rows in several batches: add
    them up."""
    names = {row["life"]: (row["group"], row["address"]) for row in table.manifest().to_pylist()}
    sums: dict[tuple[int, int], dict[str, int]] = {}
    for file in runs:
        _add_up(sums, read_rows(file, RUNS))
    for file in events:
        views = read_rows(file, EVENTS)
        views = views.filter(pc.equal(views["kind"], "view"))
        for life, minute, number in _by_minute(views, [([], "count_all")]):
            _at(sums, life, minute)["views"] += number
    rows = [
        dict(zip(("group", "member"), names[life], strict=True)) | {"minute": minute * _MINUTE_US} | one
        for (life, minute), one in sorted(sums.items())
    ]
    if rows:
        _write(out / "measures" / f"batch={batch}", pa.Table.from_pylist(rows, MEASURES))


def _add_up(sums: dict[tuple[int, int], dict[str, int]], rows: pa.Table) -> None:
    delivered = rows.filter(pc.equal(rows["kind"], DELIVER))
    wanted = [("count", "sum"), ("bytes", "sum"), ([], "count_all")]
    for life, minute, *numbers in _by_minute(delivered, wanted):
        for name, number in zip(("delivered", "delivered_bytes", "delivered_runs"), numbers, strict=True):
            _at(sums, life, minute)[name] += number or 0
    for life, minute, number in _by_minute(rows.filter(pc.equal(rows["kind"], SEND)), [("count", "sum")]):
        _at(sums, life, minute)["sent"] += number or 0


def _by_minute(rows: pa.Table, wanted: Iterable[Any]) -> Iterable[tuple[int, ...]]:
    minute = pc.divide(rows["time_us"], pa.scalar(_MINUTE_US, _LONG))
    found = rows.append_column("minute", minute).group_by(["life", "minute"], use_threads=False).aggregate(list(wanted))
    return zip(*(column.to_pylist() for column in found.columns), strict=True)


def _at(sums: dict[tuple[int, int], dict[str, int]], life: int, minute: int) -> dict[str, int]:
    return sums.setdefault((life, minute), dict.fromkeys(MEASURES.names[3:], 0))


def add_violations(progress: Progress, found: Iterable[Mapping[str, Any]]) -> None:
    """Count new violations."""
    for one in found:
        progress.standing(one["promise"], one["group"], one["history"]).broken += one["broken"]
