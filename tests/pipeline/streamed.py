"""Streams journals in tests, and reads the tables of a stream in a form that does not depend on its batches."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from pygroups.pipeline.schemas import RANGES
from pygroups.pipeline.source_request import request_of
from pygroups.pipeline.source_stream import JournalsStream
from pygroups.pipeline.stream.judging import JUDGED
from pygroups.pipeline.stream.query import Stream, Told
from pygroups.pipeline.verdict import AuditResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITNESS = ("promise", "group", "view", "member", "other", "origin", "first", "position", "detail")


class Streaming:
    """Plays Spark's part: it asks the source for offsets, and calls each batch under its number."""

    def __init__(self, spark: SparkSession, journal: Path, out: Path, **options: str) -> None:
        self.spark, self.out, self.told = spark, out, list[Told]()
        self.source = JournalsStream(request_of({"path": str(journal), "table": "ranges", **options}), RANGES)
        self.offsets = [self.source.initialOffset()]
        self.stream = self._opened()

    def _opened(self) -> Stream:
        stream = Stream(self.spark, self.out, self.out / "checkpoint", self.told.append, small=True)
        stream.claim()
        return stream

    def restarted(self) -> None:
        """A new process takes the stream over."""
        self.stream.close()
        self.stream = self._opened()

    def go_on(self) -> None:
        """One batch with all that is new, if anything is."""
        limit = self.source.getDefaultReadLimit()
        offset = json.loads(json.dumps(self.source.latestOffset(self.offsets[-1], limit)))
        if offset != self.offsets[-1]:
            self.offsets.append(offset)
            self.repeat()

    def repeat(self) -> None:
        """The last batch, as Spark begins it after a kill."""
        shares = self.source.partitions(*self.offsets[-2:])
        rows = [row for share in shares for part in self.source.read(share) for row in part.to_pylist()]
        ranges = self.spark.createDataFrame(rows, RANGES)
        self.stream.batch(ranges, len(self.offsets) - 2)


def stream_once(spark: SparkSession, journal: Path, out: Path) -> list[Told]:
    """Judge what is there; returns the batches."""
    streaming = Streaming(spark, journal, out)
    streaming.go_on()
    return streaming.told


def rows_of(out: Path, table: str) -> list[dict[str, Any]]:
    return [row for file in sorted((out / table).glob("*/*.parquet")) for row in pq.read_table(file).to_pylist()]


def witnesses(out: Path) -> Counter[tuple[Any, ...]]:
    """The violations, each with the number of its rows."""
    return Counter(tuple(row[name] for name in WITNESS) for row in rows_of(out, "violations"))


def witnesses_of(result: AuditResult) -> Counter[tuple[Any, ...]]:
    """The violations of an audit, of the promises that a stream judges."""
    found = (one for verdict in result.verdicts if verdict.promise in JUDGED for one in verdict.violations)
    return Counter(tuple(getattr(one, name) for name in WITNESS) for one in found)


def counts(out: Path) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The verdicts: the word and the numbers by promise, group and history."""
    return {
        (row["promise"], row["group"], row["history"]): (row["verdict"], row["judged"], row["skipped"], row["broken"])
        for row in rows_of(out, "verdicts")
    }


def counts_of(result: AuditResult) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return {
        (one.promise, one.group, one.history): (one.verdict, one.judged, one.skipped, one.broken)
        for one in result.verdicts
        if one.promise in JUDGED and not one.reason.endswith("does not make this promise")
    }


def minutes(out: Path) -> dict[tuple[Any, ...], Counter[str]]:
    """The measures, those of one minute added up."""
    found: dict[tuple[Any, ...], Counter[str]] = {}
    for row in rows_of(out, "measures"):
        sums = found.setdefault((row.pop("group"), row.pop("member"), row.pop("minute")), Counter())
        sums.update(row)
    return found


def linked(root: Path, groups: Iterable[Path]) -> Path:
    """A folder of journals that has these folders of groups."""
    root.mkdir()
    for group in groups:
        (root / group.name).symlink_to(group)
    return root
