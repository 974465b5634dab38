"""The stream as a query of Structured Streaming: it reads the table `ranges`, and each batch is one call of `judge`.

Spark's checkpoint has the offsets, and `state` has what the rules need of earlier batches.  Spark repeats a batch that
was killed with the same ranges; a batch whose end is noted is not repeated.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pygroups.journal.reader import NotAJournal, Segment, find_segments
from pygroups.journal.schema import services_of_v1
from pygroups.pipeline.ingest import Table, ingest_segments
from pygroups.pipeline.ingest.known import known_to
from pygroups.pipeline.ingest.layout import RUNS
from pygroups.pipeline.ingest.table import read_rows
from pygroups.pipeline.store import Store
from pygroups.pipeline.stream import outputs
from pygroups.pipeline.stream.judging import Batch, Found, judge
from pygroups.pipeline.stream.known import Known, Unread, known_in
from pygroups.pipeline.stream.prune import delivered_in, kept_of, prune
from pygroups.pipeline.stream.state import NotThisStream, Progress, State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BATCH_BYTES: Final = 64 << 20
"""Most bytes of journals in one batch."""
EVERY: Final = "1 second"
"""A batch begins this long after the one before, or when that one ends."""
_COMMITS_MAX: Final = 32
"""More commits in the table are joined, so that a view that stays open for long has few files."""


@dataclass(frozen=True)
class Told:
    """One batch: the progress behind it, its new records, and its violations as `write_violations` returns them."""

    progress: Progress
    records: int
    violations: list[dict[str, Any]]


class Stream:
    """Judges the batches of one output folder."""

    def __init__(
        self, session: "SparkSession", out: Path, checkpoint: Path, tell: Callable[[Told], None], *, small: bool
    ) -> None:
        self.out = out
        self.checkpoint = checkpoint
        self.error: BaseException | None = None
        self._session = session
        self._state = State(out)
        self._tell = tell
        self._small = small
        self._read: dict[str, int] = {}  # by file, the bytes that were judged

    def start(self, journal: Path, *, once: bool) -> "StreamingQuery":
        """Begin the query, or go on after an end.  Raises NotAJournal without a journal."""
        find_segments([journal])
        ranges = self._session.readStream.format("pygroups").option("table", "ranges")
        ranges = ranges.option("maxBytesPerTrigger", BATCH_BYTES).option("failOnDataLoss", "false")
        query = ranges.load(str(journal)).writeStream.foreachBatch(self.batch)
        query = query.option("checkpointLocation", str(self.checkpoint)).queryName(f"pygroups stream {journal}")
        return (query.trigger(availableNow=True) if once else query.trigger(processingTime=EVERY)).start()

    def behind(self, journal: Path) -> int:
        """The bytes of the journals that no batch has judged yet."""
        try:
            return sum(max(0, one.size - self._read.get(one.path, 0)) for one in find_segments([journal]))
        except (OSError, NotAJournal):  # their members remove them just now
            return 0

    def claim(self) -> None:
        """Make the output folder, or compare it with the checkpoint.  Raises NotThisStream for another stream's."""
        progress = self._state.progress()
        known = _id_of(self.checkpoint)
        if progress.batch >= 0 and (known or "") != progress.checkpoint:
            raise NotThisStream(
                f"{self.out} has the tables of a stream whose checkpoint is not {self.checkpoint}: give --out and "
                "--checkpoint as they were, or new folders"
            )
        if progress.batch < 0 and known is not None and not self._state.folder.exists():
            raise NotThisStream(
                f"{self.checkpoint} belongs to a stream with another output: give --out as it was, or a new checkpoint"
            )
        self._state.lock()
        if progress.table:
            for state in known_to(Table(self._state.folder / progress.table)).values():
                self._read.update((one.file, one.end) for one in state.segments.values())
        outputs.prepare_tables(self.out)

    def is_interrupted(self) -> bool:
        """Whether an earlier query has begun a batch that Spark has not noted as ended."""
        begun, ended = (_numbers_in(self.checkpoint / name) for name in ("offsets", "commits"))
        return max(begun, default=-1) > max(ended, default=-1)

    def close(self) -> None:
        """Let another stream write to the output."""
        self._state.unlock()

    def batch(self, ranges: "DataFrame", number: int) -> None:
        """Judge the ranges of one batch, rows of the table `ranges`; Spark calls it.  An error stays in `error`."""
        try:
            self._judge(ranges, number)
        except BaseException as error:
            self.error = error
            raise

    def _judge(self, ranges: "DataFrame", number: int) -> None:
        progress = self._state.progress()
        if progress.batch >= number:
            return  # its end was noted, and Spark was killed before it noted the end too
        folder = self._state.begin(progress)
        outputs.remove_batches(self.out, number)
        segments = [_segment(row) for row in ranges.collect()]
        done = ingest_segments(segments, folder)
        table = Table(folder)
        progress.batch, progress.table, progress.checkpoint = number, folder.name, _id_of(self.checkpoint) or ""
        progress.records += done.rows
        progress.bytes += done.bytes
        told: list[dict[str, Any]] = []
        if done.commit is not None:
            progress.commit = done.commit
            told = self._new(table, done.commit, progress)
        outputs.write_verdicts(self.out, progress)
        self._state.end(progress)
        self._read.update((segment.path, segment.size) for segment in segments)
        self._tell(Told(progress, done.rows, told))

    def _new(self, table: Table, commit: str, progress: Progress) -> list[dict[str, Any]]:
        """Judge the records of a commit, and prune the table.  Returns the new violations."""
        known = known_in(table)
        new = [row for row in table.manifest().to_pylist() if row["commit"] == commit]
        closed = known.closed(Unread(table))
        before = set(progress.closed)
        runs, events = (_of(commit, files) for files in (table.runs_files, table.events_files))
        self._note(new, progress, known, runs)
        batch = Batch(
            table,
            runs,
            _begins(new),
            closed - before,
            closed | before,
            delivered_in(table.path),
            progress.marks,
        )
        found = judge(self._session, batch, self._store)
        told = self._written(found, progress)
        outputs.write_measures(self.out, progress.batch, table, runs, events)
        shutil.rmtree(self._state.scratch, ignore_errors=True)
        self._prune(table, known, closed | before, progress)
        return told

    def _store(self, name: str) -> Store:
        return Store(self._session, self._state.scratch / name, small=self._small)

    def _note(self, new: list[dict[str, Any]], progress: Progress, known: Known, runs: list[str]) -> None:
        """The time of the newest record, the services of new members, and the records that came too late."""
        for row in new:
            progress.newest_us = max(progress.newest_us, row["last_us"] or 0)
            if row["profile"] is not None:
                services = services_of_v1(row["profile"]) if row["services"] is None else row["services"]
                progress.services.setdefault(row["group"], {})[row["profile"]] = sorted(services)
        over = pa.array(sorted(set(progress.closed)), pa.int64())
        there = pa.array(sorted(known.views), pa.int64())
        for file in runs:
            views = read_rows(file, RUNS, columns=["view"])["view"].drop_null()
            late = pc.or_(pc.is_in(views, over), pc.invert(pc.is_in(views, there)))
            progress.late += pc.sum(late).as_py() or 0

    def _written(self, found: Found, progress: Progress) -> list[dict[str, Any]]:
        for (promise, group, history), tally in found.tallies.items():
            standing = progress.standing(promise, group, history)
            standing.judged += tally.judged
            for why, number in tally.skipped.items():
                standing.skipped[why] = standing.skipped.get(why, 0) + number
        if found.violations is None:
            return []
        told = outputs.write_violations(self._session, self.out, progress.batch, found.violations)
        outputs.add_violations(progress, told)
        return told

    def _prune(self, table: Table, known: Known, closed: set[int], progress: Progress) -> None:
        kept = kept_of(known, closed)
        progress.open_views = len(set(known.views) - closed)
        progress.left_open = known.left_open(closed)
        gone = set(known.views) - kept.views
        if gone - {view for key, index in kept.before for at, view in known.order[key] if at == index} or (
            len(table.commits) > _COMMITS_MAX
        ):
            folder = self._state.folder / f"table-{progress.batch + 1}"
            progress.commit = prune(table, known, kept, folder, progress.marks)
            progress.table = folder.name
        progress.closed = sorted(closed & set(known.views))


def _of(commit: str, files: list[str]) -> list[str]:
    return [file for file in files if Path(file).name.startswith(f"{commit}-")]


def _begins(new: list[dict[str, Any]]) -> dict[int, int]:
    """The first new index of each life."""
    found: dict[int, int] = {}
    for row in new:
        if row["first_index"] is not None:
            found[row["life"]] = min(found.get(row["life"], row["first_index"]), row["first_index"])
    return found


def _segment(row: Any) -> Segment:
    return Segment(
        row["file"], row["group"], row["member"], row["incarnation"], row["end"], row["following"], row["trouble"]
    )


def _numbers_in(folder: Path) -> list[int]:
    return [int(file.name) for file in folder.glob("*") if file.name.isdecimal()]


def _id_of(checkpoint: Path) -> str | None:
    """The id that Spark gave the stream."""
    try:
        told = json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return str(told.get("id"))
