"""Appends the new records of journals to a table of histories.

A commit exists when its manifest file exists.  The manifest is renamed into place last.  The next ingest removes the
files that a killed ingest left behind.
"""

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pygroups.journal.reader import LeftOut, Segment, find_journals
from pygroups.pipeline.ingest.commits import cleaned, locked, next_commit, unfinished, write_whole
from pygroups.pipeline.ingest.known import CARRIED, known_to
from pygroups.pipeline.ingest.layout import AUDITED, FORMAT, MANIFEST, TABLE_FILE, is_table
from pygroups.pipeline.ingest.plan import LifeParts, Plan, plan
from pygroups.pipeline.ingest.table import NotATable, write_rows
from pygroups.pipeline.ingest.work import IngestedRows, work_on
from pygroups.pipeline.verdict import Quarantined

SMALL_BYTES: Final = 64 << 20
"""Up to this number of new bytes is read in this process, because a pool would take longer to start."""
_BATCH_BYTES: Final = 32 << 20
_BATCHES_A_JOB: Final = 4


@dataclass
class IngestResult:
    """The result of one call. `commit` is None if nothing was new.

    `files` counts the segments in the paths, `bytes` and `rows` count the additions, and `skipped` counts the byte
    ranges that the table had already. `damaged` has the places in the added ranges that could not be read, `left_out`
    the files and folders in the paths that stand where journals stand, and are none.
    `cpu_seconds` adds up this process and its workers.
    """

    commit: str | None = None
    files: int = 0
    bytes: int = 0
    rows: int = 0
    skipped: int = 0
    damaged: list[Quarantined] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def ingest(
    paths: Iterable[str | Path],
    out: Path,
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> IngestResult:
    """Append the records of the journals in `paths` to the table `out`, which is made if it is missing.

    Only bytes that the table does not have are read. `jobs` is the number of processes (default: the cores); a small
    ingest needs none besides this one. `progress` is called with the bytes done and with the total.

    Raises NotAJournal for a path without journals, NotATable if `out` cannot be a table or another ingest writes to it,
    NotTheSame for a journal that differs from its records in the table, OSError for a file that cannot be read or
    written. After an error nothing is added.
    """
    segments, left_out = find_journals(paths)
    result = ingest_segments(segments, out, jobs=jobs, progress=progress)
    result.left_out = left_out
    return result


def ingest_segments(
    segments: Iterable[Segment],
    out: Path,
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> IngestResult:
    """The same for known segments, of which the first `size` bytes count.  Raises NotATable, NotTheSame, OSError."""
    began, used = time.perf_counter(), time.process_time()
    with locked(_prepared(out)):
        table = cleaned(out)
        what = plan(segments, known_to(table))
        result = IngestResult(files=what.files, skipped=what.skipped)
        commit = next_commit(table)
        done = _work(out, commit, what, jobs, progress)
        _commit(out, commit, done, result)
    result.seconds = time.perf_counter() - began
    children = sum(one.cpu_seconds for one in done) if len(done) > 1 else 0.0
    result.cpu_seconds = time.process_time() - used + children
    return result


def _prepared(out: Path) -> Path:
    """The folder `out` as a table, made if it is missing or holds only the files of an audit of another table."""
    if not is_table(out):
        ours = {unfinished(out / TABLE_FILE), *(out / name for name in AUDITED)}
        if out.exists() and (not out.is_dir() or set(out.iterdir()) - ours):
            raise NotATable(f"{out} is neither empty nor a table of journals: give --out a table or a new folder")
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / TABLE_FILE, lambda path: path.write_text(json.dumps({"format": FORMAT}), encoding="utf-8"))
    for folder in ("manifest", "carried"):
        (out / folder).mkdir(exist_ok=True)
    return out


def _work(
    out: Path, commit: str, what: Plan, jobs: int | None, progress: Callable[[int, int], None]
) -> list[IngestedRows]:
    """Carry out the plan, in this process or in a pool."""
    of = sum(life.size for life in what.lives)
    jobs = jobs or os.cpu_count() or 1
    if of <= SMALL_BYTES or jobs == 1:
        return [work_on(out, commit, 0, what.lives, lambda done: progress(done, of))] if what.lives else []
    batches = _batches(what.lives, max(_BATCH_BYTES, of // (jobs * _BATCHES_A_JOB)))
    found, ready = [], 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(batches)), mp_context=context) as pool:
        running = {pool.submit(work_on, out, commit, at, batch): batch for at, batch in enumerate(batches)}
        for future in as_completed(running):
            found.append(future.result())
            ready += sum(life.size for life in running[future])
            progress(ready, of)
    return found


def _batches(lives: Sequence[LifeParts], size: int) -> list[list[LifeParts]]:
    """The incarnations in their order, in lists of at least `size` bytes; the last list may be smaller."""
    batches: list[list[LifeParts]] = []
    held = size
    for life in lives:
        if held >= size:
            batches.append([])
            held = 0
        batches[-1].append(life)
        held += life.size
    return batches


def _commit(out: Path, commit: str, done: Sequence[IngestedRows], result: IngestResult) -> None:
    """Commit the work: write the carried state first, and the manifest last."""
    manifest = [row for one in done for row in one.manifest]
    carried = [row for one in done for row in one.carried]
    if not carried:
        return
    for row in manifest:
        result.bytes += row["bytes"]
        result.rows += row["rows"]
        if row.get("damage") is not None:
            result.damaged.append(Quarantined(row["file"], row["damage_offset"], row["damage"]))
    result.damaged.sort(key=lambda place: (place.file, place.offset))
    result.commit = commit
    write_rows(_rows(carried, CARRIED), out / "carried" / f"{commit}-0.parquet")
    manifest.sort(key=lambda row: (row["group"], row["address"], row["segment"], row["begin"]))
    whole = _rows(manifest, MANIFEST)
    write_whole(out / "manifest" / f"{commit}.parquet", lambda path: write_rows(whole, path))


def _rows(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(rows, schema)
