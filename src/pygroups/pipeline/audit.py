"""The audit: journals in, a verdict per promise out."""

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from pygroups.journal.reader import find_segments
from pygroups.pipeline.findings import Rule
from pygroups.pipeline.ingest import IngestResult, Table, ingest
from pygroups.pipeline.ingest.layout import is_table
from pygroups.pipeline.promises import RULES, unjudged
from pygroups.pipeline.recorded import open_table
from pygroups.pipeline.session import SMALL_BYTES, is_local, make_session
from pygroups.pipeline.steps import Steps
from pygroups.pipeline.store import Store
from pygroups.pipeline.tables import Recorded, Tables, prepare
from pygroups.pipeline.verdict import AuditResult, Quarantined, Verdict, Work
from pygroups.pipeline.verdicts import count, find, verdicts_of, witnesses

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
    """Judge every promise over the journals in `paths` (folders of journals, of groups, or of lives), or over a table.

    `master` or `remote` choose the Spark cluster, default `local[*]`. The table of the history, and what is made of it,
    are written as Parquet to `out`, without it to a temporary folder that ends with the process. `progress` is told
    each step. Raises NotAJournal for a path without journals, NoSpark if Spark or Java is missing, NotATable and
    NamesCollide.
    """
    steps = Steps(progress)
    session, table, done = _opened([Path(path) for path in paths], master, out, steps)
    with steps("preparing the tables"):
        small = _small(done.bytes if done else 0) and is_local(master)
        recorded = open_table(session, table, small=small)
        store = Store(session, out, in_memory=not is_local(master), small=small)
        rules = with_occasion(recorded, RULES)
        tables = prepare(recorded, rules, store)
    with steps(f"judging {len(rules)} promises"):
        verdicts = judge(tables, rules, recorded, store, out=out)
    manifest = table.manifest()
    files, rows = len(set(manifest["file"].to_pylist())), sum(manifest["rows"].to_pylist())
    return AuditResult(
        groups=sorted({verdict.group for verdict in verdicts}),
        verdicts=verdicts,
        files=files,
        rows=rows,
        quarantined=_damaged(table),
        history=recorded.history,
        session=session,
        unjudged=unjudged(recorded.profiles),
        work=Work(files, sum(manifest["bytes"].to_pylist()), rows, done.skipped if done else 0, steps.done),
    )


def _small(size: int) -> bool:
    return size <= SMALL_BYTES


def _opened(
    paths: Sequence[Path], master: str | None, out: Path | None, steps: Steps
) -> tuple[SparkSession, Table, IngestResult | None]:
    """Spark, started while this process decodes the journals, and the table of the history."""
    if len(paths) == 1 and is_table(paths[0]):
        with steps("starting Spark"):
            return make_session(master=master, small=True), Table(paths[0]), None
    size = sum(segment.size for segment in find_segments(paths))
    folder = out if out is not None else _temporary()
    with ThreadPoolExecutor(1) as pool, steps("starting Spark and reading the journals"):
        starting = pool.submit(make_session, master=master, small=_small(size))
        done = ingest(paths, folder, jobs=1 if _small(size) else None)
        return starting.result(), Table(folder), done


def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="pygroups-audit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def with_occasion(recorded: Recorded, rules: Sequence[Rule]) -> list[Rule]:
    """The rules that a profile in the history promises, and that a kind of record in it gives an occasion."""
    return [
        rule for rule in rules if rule.profiles & recorded.profiles and (not rule.needs or rule.needs & recorded.kinds)
    ]


def judge(
    tables: Tables, rules: Sequence[Rule], recorded: Recorded, store: Store, *, out: Path | None
) -> list[Verdict]:
    """Count, look closely where something is suspect, and give the verdicts."""
    counted = count(tables, rules)
    violations = find(tables, rules, counted.suspects(), recorded.history.names)
    if violations is not None:
        violations = store.keep("gold/violations", violations)
        witnesses(counted, violations)
    return verdicts_of(counted, RULES, recorded.histories)


def _damaged(table: Table) -> list[Quarantined]:
    rows = table.manifest().select(["file", "damage_offset", "damage"]).to_pylist()
    places = [
        Quarantined(row["file"], row["damage_offset"], row["damage"]) for row in rows if row["damage"] is not None
    ]
    return sorted(places, key=lambda place: (place.file, place.offset))[:QUARANTINE_SHOWN]
