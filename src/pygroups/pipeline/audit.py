"""The audit: journals in, a verdict per promise out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pygroups.journal.reader import find_segments
from pygroups.journal.schema import COLUMNS, VIOLATION_COLUMNS
from pygroups.pipeline import tables as silver
from pygroups.pipeline.findings import Rule, collapsed
from pygroups.pipeline.journals import journals_of
from pygroups.pipeline.linked import linked_of
from pygroups.pipeline.order import blocks_of
from pygroups.pipeline.promises import RULES, unjudged
from pygroups.pipeline.runs import irregular_of, one_body, runs_of
from pygroups.pipeline.session import SMALL_BYTES, is_local, make_session
from pygroups.pipeline.source import GroupsDataSource, joined_paths
from pygroups.pipeline.store import Store
from pygroups.pipeline.tables import Tables
from pygroups.pipeline.verdict import AuditResult, Quarantined
from pygroups.pipeline.verdicts import verdicts_of

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
    """Judge every promise over the journals in `paths` (folders of journals, of groups, or of lives).

    `master` or `remote` choose the Spark cluster, default `local[*]`. Bronze, silver and gold tables are written as
    Parquet to `out`, without it to a temporary folder that ends with the process. `progress` is told each step.
    Raises NotAJournal for a path without journals, NoSpark if Spark or Java is missing.
    """
    names = [str(Path(path).resolve()) for path in paths]
    segments = find_segments(names)
    progress("starting Spark")
    small = sum(segment.size for segment in segments) <= SMALL_BYTES
    session = make_session(master=master, remote=remote, small=small)
    store = Store(session, out, in_memory=remote is not None or not is_local(master))
    progress(f"reading {len(segments)} files")
    bronze = ingest(session, names, store)
    progress("preparing the tables")
    tables = prepare(bronze, store)
    progress(f"judging {len(RULES)} promises")
    profiles, kinds = seen_in(bronze)
    gold = store.keep("gold/findings", judge(tables, with_occasion(profiles, kinds, RULES)))
    records = bronze.where("damage is null").select(*COLUMNS)
    quarantined = bronze.where("damage is not null")
    if out is not None:
        store.keep("gold/violations", gold.where("detail is not null").select(*VIOLATION_COLUMNS))
    verdicts = verdicts_of(gold, tables.journals, RULES)
    return AuditResult(
        groups=sorted({verdict.group for verdict in verdicts}),
        verdicts=verdicts,
        files=len(segments),
        rows=records.count(),
        quarantined=[
            Quarantined(row["file"], row["offset"], row["damage"])
            for row in quarantined.orderBy("file", "offset").limit(QUARANTINE_SHOWN).collect()
        ],
        records=records,
        session=session,
        unjudged=unjudged(profiles),
    )


def ingest(session: SparkSession, paths: Sequence[str], store: Store) -> DataFrame:
    """Bronze: every record, and every damaged place as a row with `damage`, read once from the journals."""
    session.dataSource.register(GroupsDataSource)
    reader = session.read.format("pygroups").option("table", "ingest").option("path", joined_paths(paths))
    return store.keep("bronze", reader.load().withColumn("day", F.to_date(F.timestamp_micros("time_us"))))


def prepare(bronze: DataFrame, store: Store) -> Tables:
    """Silver: the tables that the rules read, each computed once."""
    records = bronze.where("damage is null").drop("file", "offset", "damage", "day")
    journals = store.keep("silver/journals", journals_of(records, bronze.where("damage is not null")))
    trusted = silver.trusted(records, journals)
    early = store.keep_all(
        {
            "silver/views": lambda: silver.views_of(trusted),
            "silver/messages": lambda: silver.messages_of(trusted),
            "silver/connections": lambda: silver.connections_of(trusted),
            "silver/events": lambda: silver.events_of(trusted),
        }
    )
    views, messages, connections, events = early.values()
    deliveries = store.keep("silver/deliveries", silver.deliveries_of(trusted, views))
    late = store.keep_all(
        {
            "silver/runs": lambda: runs_of(messages, deliveries, connections, views),
            "silver/irregular": lambda: irregular_of(deliveries, events, views),
            "silver/blocks": lambda: blocks_of(deliveries),
            "silver/linked": lambda: linked_of(views),
        }
    )
    runs, irregular, blocks, linked = late.values()
    tables = Tables(journals, views, messages, deliveries, connections, events, runs, irregular, blocks, linked)
    return replace(tables, suspicious=suspicious_in(tables))


def suspicious_in(tables: Tables) -> frozenset[str]:
    """Where a rule has to look closely. A few flags come to the driver, so that a clean history gets a short plan."""
    flags: list[tuple[DataFrame, dict[str, Column]]] = [
        (tables.blocks, {"blocks": F.col("differs"), "places": F.col("block").isNull()}),
        (tables.irregular, {"irregular": F.lit(True)}),
        (tables.events, {"gaps": F.col("kind") == "gap"}),
        (tables.runs, {"views": F.expr("low_view <> high_view"), "bodies": F.expr("sends = 0") | ~one_body()}),
    ]
    rows = [
        frame.agg(F.array(*(F.when(F.max(flag), name) for name, flag in named.items())).alias("names"))
        for frame, named in flags
    ]
    found = reduce(DataFrame.unionAll, rows).collect()
    return frozenset(name for row in found for name in row["names"] if name is not None)


def seen_in(bronze: DataFrame) -> tuple[set[str], set[str]]:
    """The profiles of these journals, and the kinds of record that occur in them."""
    seen = bronze.where("damage is null").select("profile", "kind").distinct().collect()
    return {row["profile"] for row in seen}, {row["kind"] for row in seen}


def with_occasion(profiles: set[str], kinds: set[str], rules: Sequence[Rule]) -> list[Rule]:
    """The rules that one of these profiles promises, and that one of these kinds of record gives an occasion."""
    return [rule for rule in rules if rule.profiles & profiles and (not rule.needs or rule.needs & kinds)]


def judge(tables: Tables, rules: Sequence[Rule]) -> DataFrame:
    """Gold: the findings of all rules, with the promise they are about; rows without a witness are added up."""
    answers = [
        rule.judge(tables.of_profiles(rule.profiles)).withColumn("promise", F.lit(rule.promise)) for rule in rules
    ]
    return collapsed(reduce(DataFrame.unionAll, answers))
