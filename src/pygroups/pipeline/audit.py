"""The audit reads journals, or a table of journals, and gives a verdict for each promise.

The journals become a table first (`ingest`), in this process while Spark's JVM starts. Then the tables that rules share
are prepared, and the rules are judged over them. On a cluster all machines read and write the folder of these tables.
"""

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from pygroups.journal.reader import NotAJournal, find_segments
from pygroups.pipeline.findings import PromiseRule
from pygroups.pipeline.ingest import IngestResult, Table, ingest
from pygroups.pipeline.ingest.layout import is_table
from pygroups.pipeline.ingest.table import journals_only
from pygroups.pipeline.prepare import prepare
from pygroups.pipeline.promises import RULES, unjudged
from pygroups.pipeline.recorded import damage_told, facts_of, opened
from pygroups.pipeline.remote import history_there
from pygroups.pipeline.session import SMALL_BYTES, NoSpark, describe, is_local, make_session, set_up
from pygroups.pipeline.store import Store
from pygroups.pipeline.tables import Recorded, Tables
from pygroups.pipeline.timings import Timings
from pygroups.pipeline.verdict import AuditResult, Hole, Quarantined, Verdict, Work
from pygroups.pipeline.verdicts import count, find, none_found, verdicts_of, witnesses

QUARANTINE_SHOWN: Final = 1000
Progress = Callable[[str], None]


def audit(
    paths: Iterable[str | Path],
    *,
    master: str | None = None,
    remote: str | None = None,
    out: Path | None = None,
    progress: Progress = lambda step: None,
) -> AuditResult:
    """Judge every promise over the journals in `paths` (folders of journals, of groups, or of incarnations), or over a
    table.

    `master` chooses the Spark cluster, default `local[*]`, and `remote` a server of Spark Connect.  `out` keeps the
    table of the history and the tables derived from it (`silver`, `gold`) as Parquet; without `out` they go to a
    temporary folder that ends with the process.  A table that is in the folder already grows by the new records, and
    the audit judges the whole table.  A cluster needs `out`, a folder that all its machines mount at the same place;
    the same holds for a table that is audited.
    With `remote` the machines of the server read and write all paths, and this process none.
    `progress` is called with the name of each step.

    Raises NotAJournal for paths without a journal or without any record, NotATable for a table of another format or one
    that is damaged, NamesCollide for two names under one key, NoSpark if Spark or Java is missing or `out` for a
    cluster, OSError for a file that cannot be read or written.
    """
    if out is None and not (remote is None and is_local(master)):
        raise NoSpark(
            f"Spark on {remote or master} needs --out DIR: a folder for the tables, which all its machines mount"
        )
    timings = Timings(progress)
    kept = _temporary() if out is None else out.resolve() if remote is None else out
    with timings("starting Spark and reading the journals"):
        if remote is None:
            session, table, small, done = _opened([Path(path).absolute() for path in paths], master, kept)
        else:
            session = make_session(remote=remote)
            facts, done = history_there(session, [str(path) for path in paths], str(kept))
            small = sum(facts.manifest["bytes"].to_pylist()) <= SMALL_BYTES
            set_up(session, small=small)
    with timings("opening the table"):
        if remote is None:
            facts = facts_of(table)
        recorded = opened(session, facts, small=small, room=kept / "silver/merged" if remote is None else None)
    store = Store(session, kept, lasting=out is not None, small=small)
    with damage_told(facts):
        return _judged(session, recorded, facts.manifest, store, timings, done)


def _judged(
    session: SparkSession, recorded: Recorded, manifest: pa.Table, store: Store, timings: Timings, done: IngestResult
) -> AuditResult:
    if not any(manifest["rows"].to_pylist()) and manifest["damage"].null_count == manifest.num_rows:
        raise NotAJournal("the journals have no record yet, so nothing can be judged: run the audit again later")
    rules = with_occasion(recorded, RULES)
    describe(session, "pygroups audit: preparing the tables")
    with timings("preparing the tables"):
        tables = prepare(recorded, rules, store)
    describe(session, f"pygroups audit: judging {len(rules)} promises")
    with timings(f"judging {len(rules)} promises"):
        verdicts = judge(tables, rules, recorded, store)
    files, rows = len(_segments(manifest)), sum(manifest["rows"].to_pylist())
    return AuditResult(
        groups=sorted({verdict.group for verdict in verdicts}),
        verdicts=verdicts,
        files=files,
        rows=rows,
        quarantined=_damaged(manifest),
        session=session,
        unjudged=unjudged(recorded.stacks.values()),
        holes=_holes(manifest),
        left_out=done.left_out,
        history=recorded.history,
        work=Work(files, sum(manifest["bytes"].to_pylist()), rows, done.skipped, timings.done),
    )


def _segments(manifest: pa.Table) -> set[tuple[int, int]]:
    """The segments with bytes in the table, as pairs of an incarnation's key and a number.  Two copies are one
    segment."""
    return set(zip(manifest["life"].to_pylist(), manifest["segment"].to_pylist(), strict=True))


def _opened(folders: Sequence[Path], master: str | None, kept: Path) -> tuple[SparkSession, Table, bool, IngestResult]:
    """Start Spark while this process decodes the journals.

    Returns Spark, the table, whether the table is small, and the result of the ingest, empty for a table."""
    if len(folders) == 1 and is_table(folders[0]):
        table = Table(folders[0])
        small = sum(table.manifest()["bytes"].to_pylist()) <= SMALL_BYTES
        return make_session(master=master, small=small), table, small, IngestResult()
    small = _size(journals_only(folders), kept) <= SMALL_BYTES
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(make_session, master=master, small=small)
        done = ingest(folders, kept, jobs=1 if small else None)
        session = starting.result()
    return session, Table(kept), small, done


def _size(journals: Sequence[str], kept: Path) -> int:
    """The number of bytes to judge: those of the journals, and the bytes of other journals in the table."""
    segments = {segment.path: segment.size for segment in find_segments(journals)}
    held = Table(kept).manifest().select(["file", "bytes"]).to_pylist() if is_table(kept) else []
    return sum([*segments.values(), *(row["bytes"] for row in held if row["file"] not in segments)])


def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="pygroups-audit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def with_occasion(recorded: Recorded, rules: Sequence[PromiseRule]) -> list[PromiseRule]:
    """The rules whose promise a profile of the history makes, and for which the history has a kind of record.

    A rule keeps those of its counts that have an occasion.
    """

    def occurs(needed: frozenset[str]) -> bool:
        return not needed or bool(needed & recorded.kinds)

    def is_made(rule: PromiseRule) -> bool:
        return any(rule.services <= services for services in recorded.stacks.values())

    promised = [rule for rule in rules if is_made(rule) and occurs(rule.needs)]
    return [replace(rule, counts=tuple(one for one in rule.counts if occurs(one.needs))) for rule in promised]


def judge(tables: Tables, rules: Sequence[PromiseRule], recorded: Recorded, store: Store) -> list[Verdict]:
    """Evaluate the counts, then the exact steps of the rules with a suspect row. Returns the verdicts."""
    counted = count(tables, rules)
    violations = find(tables, rules, counted.suspects(), recorded.history.names)
    if violations is not None:
        witnesses(counted, store.keep("gold/violations", violations))
    elif store.lasting:
        store.keep("gold/violations", none_found(recorded.history.names))
    return verdicts_of(counted, RULES, recorded.histories)


def _damaged(manifest: pa.Table) -> list[Quarantined]:
    rows = manifest.select(["file", "damage_offset", "damage"]).to_pylist()
    places = [
        Quarantined(row["file"], row["damage_offset"], row["damage"]) for row in rows if row["damage"] is not None
    ]
    return sorted(places, key=lambda place: (place.file, place.offset))[:QUARANTINE_SHOWN]


def _holes(manifest: pa.Table) -> list[Hole]:
    """The first hole of each journal, by file."""
    first: dict[int, Hole] = {}
    for row in manifest.select(["file", "group", "address", "life", "wrong_index"]).to_pylist():
        index = row["wrong_index"]
        if index is not None and (row["life"] not in first or index < first[row["life"]].index):
            first[row["life"]] = Hole(row["file"], row["group"], row["address"], index)
    return sorted(first.values(), key=lambda hole: hole.file)
