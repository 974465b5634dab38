"""`pygroups ingest`: writes journals into a table of Parquet files; each call appends the new records."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from pygroups.cli.audit import Cluster
from pygroups.cli.extras import check_arrow, check_spark
from pygroups.cli.progress import say
from pygroups.cli.refusals import one_line, warn_of, warn_of_damage
from pygroups.core.errors import UsageError

if TYPE_CHECKING:
    from pygroups.pipeline.ingest import IngestResult

SHOWN: Final = 5
"""Damaged places that the text output shows; the table has all of them."""


def ingest(
    *journals: Path,
    out: Path | None = None,
    jobs: int | None = None,
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
    remote
        A server of Spark Connect that reads the journals and writes the table, for instance sc://host:15002. All
        folders are folders of its machines, which need pygroups in the same version.
    as_json
        Print one JSON object on standard output.
    """
    table = _checked(journals, out, jobs)
    Cluster(remote=remote).check(*journals, table)
    check_arrow() if remote is None else check_spark(what="ingest with --remote")
    from pygroups.journal.reader import NotAJournal
    from pygroups.pipeline.ingest import NotATable, NotTheSame
    from pygroups.pipeline.ingest import ingest as append
    from pygroups.pipeline.session import NoSpark

    try:
        if remote is None:
            result = append(journals, table, jobs=jobs, progress=_tell)
        else:
            result = _ingested_there(journals, table, jobs, remote)
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
    print(json.dumps(as_object(result)) if as_json else in_words(result, table))
    return 0


def _ingested_there(journals: tuple[Path, ...], table: Path, jobs: int | None, remote: str) -> IngestResult:
    from pygroups.pipeline.remote import ingested_there
    from pygroups.pipeline.session import make_session

    session = make_session(remote=remote)
    try:
        return ingested_there(session, [str(path) for path in journals], str(table), jobs)
    finally:
        session.stop()


def _checked(journals: tuple[Path, ...], out: Path | None, jobs: int | None) -> Path:
    if not journals:
        raise UsageError("give the folder of the journals, for instance: pygroups ingest journal/ --out table/")
    if out is None:
        raise UsageError("give the folder of the table, for instance: pygroups ingest journal/ --out table/")
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs} must be 1 or more")
    return out


def _tell(done: int, of: int) -> None:
    say(f"{_size(done)} of {_size(of)} read")


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def as_object(result: IngestResult) -> dict[str, Any]:
    """The object that `--json` prints."""
    return asdict(result)


def in_words(result: IngestResult, table: Path) -> str:
    """The summary of an ingest, on one line."""
    parts = [_count(result.files, "file"), _size(result.bytes), _count(result.rows, "record")]
    if result.skipped:
        parts.append(f"{_count(result.skipped, 'range')} known already")
    if result.damaged:
        parts.append(_count(len(result.damaged), "damaged place"))
    what = f"added to {table}" if result.commit else f"nothing new for {table}"
    return one_line(f"{what}: {', '.join(parts)}, {result.seconds:.1f} s ({result.cpu_seconds:.1f} s of processors)")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
