"""`pygroups ingest`: writes journals into a table of Parquet files; each call appends the new records."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from pygroups.cli.audit import Cluster
from pygroups.cli.extras import check_arrow, check_spark
from pygroups.cli.progress import say
from pygroups.cli.refusals import one_line, warn_of, warn_of_damage
from pygroups.core.errors import UsageError

if TYPE_CHECKING:
    from pygroups.pipeline.ingest import Compacted, IngestResult

    Done = tuple[IngestResult, Compacted | None]

SHOWN: Final = 5
"""Damaged places that the text output shows; the table has all of them."""


def ingest(
    *journals: Path,
    out: Path | None = None,
    jobs: int | None = None,
    compact: Annotated[bool, Parameter(negative=())] = False,
    remote: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Append the records of journals to a table of Parquet files, for `pygroups audit`, Spark, or any Parquet reader.

    Parameters
    ----------
    journals
        Folders of journals, the folder of a group, or the folder of one member.
    out
        The table: a folder, made if it is missing.
    jobs
        The number of processes that read. By default one for each core. A small ingest needs one process.
    compact
        Merge the files of the table, after the ingest if journals are given: many small ones become one for each group
        and day. No row changes. Do this while no audit reads the table.
    remote
        A server of Spark Connect that reads the journals and writes the table, for instance sc://host:15002. All
        folders are folders of its machines, which need pygroups in the same version.
    as_json
        Print one JSON object on standard output.
    """
    table = _checked(journals, out, jobs, compact=compact)
    Cluster(remote=remote).check(*journals, table)
    check_arrow() if remote is None else check_spark(what="ingest with --remote")
    from pygroups.journal.reader import NotAJournal
    from pygroups.pipeline.ingest import NotATable, NotTheSame
    from pygroups.pipeline.session import NoSpark

    try:
        work = _work_here if remote is None else partial(_work_there, remote)
        result, merged = work(journals, table, jobs, compact=compact)
    except (NotAJournal, NotATable, NotTheSame, NoSpark) as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(
            f"the ingest cannot read or write {error.filename or table}: {error.strerror or error}"
        ) from error
    finally:
        say("")
    warn_of([(one.path, one.reason) for one in result.left_out], SHOWN, "files and folders that are no journals")
    warn_of_damage(result.damaged, SHOWN)
    words = [*([in_words(result, table)] if journals else []), *_merged_in_words(merged, table)]
    print(json.dumps(as_object(result, merged)) if as_json else "\n".join(words))
    return 0


def _work_here(journals: tuple[Path, ...], table: Path, jobs: int | None, *, compact: bool) -> Done:
    from pygroups.pipeline.ingest import IngestResult, ingest
    from pygroups.pipeline.ingest import compact as merge

    result = ingest(journals, table, jobs=jobs, progress=_tell) if journals else IngestResult()
    return result, merge(table, progress=_tell_files) if compact else None


def _work_there(remote: str, journals: tuple[Path, ...], table: Path, jobs: int | None, *, compact: bool) -> Done:
    from pygroups.pipeline.ingest import IngestResult
    from pygroups.pipeline.remote import compacted_there, ingested_there
    from pygroups.pipeline.session import make_session

    session = make_session(remote=remote)
    try:
        names = [str(path) for path in journals]
        result = ingested_there(session, names, str(table), jobs) if journals else IngestResult()
        return result, compacted_there(session, str(table)) if compact else None
    finally:
        session.stop()


def _checked(journals: tuple[Path, ...], out: Path | None, jobs: int | None, *, compact: bool) -> Path:
    if not journals and not compact:
        raise UsageError("give the folder of the journals, for instance: pygroups ingest journal/ --out table/")
    if out is None:
        raise UsageError("give the folder of the table, for instance: pygroups ingest journal/ --out table/")
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs} must be 1 or more")
    return out


def _tell(done: int, of: int) -> None:
    say(f"{_size(done)} of {_size(of)} read")


def _tell_files(done: int, of: int) -> None:
    say(f"{done:,} of {of:,} files merged")


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def as_object(result: IngestResult, merged: Compacted | None = None) -> dict[str, Any]:
    """The object that `--json` prints."""
    return asdict(result) | ({} if merged is None else {"compacted": asdict(merged)})


def in_words(result: IngestResult, table: Path) -> str:
    """The summary of an ingest, on one line."""
    parts = [_count(result.files, "file"), _size(result.bytes), _count(result.rows, "record")]
    if result.skipped:
        parts.append(f"{_count(result.skipped, 'range')} known already")
    if result.damaged:
        parts.append(_count(len(result.damaged), "damaged place"))
    what = f"added to {table}" if result.commit else f"nothing new for {table}"
    return one_line(f"{what}: {', '.join(parts)}, {result.seconds:.1f} s ({result.cpu_seconds:.1f} s of processors)")


def _merged_in_words(merged: Compacted | None, table: Path) -> list[str]:
    if merged is None:
        return []
    before, after = _count(merged.files_before, "file"), f"{merged.files_after:,}"
    if merged.files_after == merged.files_before:
        return [one_line(f"nothing to compact in {table}: {before}")]
    return [one_line(f"compacted {table}: {before} before, {after} after, {merged.seconds:.1f} s")]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
