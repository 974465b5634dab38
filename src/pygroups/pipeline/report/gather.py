"""From an audit to what the report shows: every table is aggregated and cut to a bounded size in Spark, then collected.

This is the only place of the report that runs Spark jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any, Final, TypeVar

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pygroups.pipeline.measures.blocked import blocked_time
from pygroups.pipeline.measures.changes import view_changes, view_changes_of_group
from pygroups.pipeline.measures.failover import failover_gaps
from pygroups.pipeline.measures.latency import clock_difference, latencies, latency_counts, latency_percentiles
from pygroups.pipeline.measures.losses import drops, retransmissions
from pygroups.pipeline.measures.runs import run_size_classes, run_sizes
from pygroups.pipeline.measures.throughput import throughput
from pygroups.pipeline.measures.timeline import lives, marks, overview, view_spans
from pygroups.pipeline.report.findings import (
    BlockedTime,
    ClockDifference,
    Drop,
    FailoverGap,
    Findings,
    GroupFindings,
    Latency,
    Life,
    Mark,
    Overview,
    Retransmission,
    RunSizes,
    SizeClass,
    Traffic,
    ViewChange,
    ViewSpan,
)
from pygroups.pipeline.report.surroundings import diagrams
from pygroups.pipeline.verdict import AuditResult

GROUPS_SHOWN: Final = 8
NAMES_SHOWN: Final = 24
LIVES_SHOWN: Final = 100
VIEWS_SHOWN: Final = 2_000
MARKS_SHOWN: Final = 40
CHANGES_SHOWN: Final = 100
GAPS_SHOWN: Final = 200
REASONS_SHOWN: Final = 100
STRETCHES: Final = 240
SHORTEST_STRETCH_US: Final = 10_000
JOBS_AT_ONCE: Final = 4
OCCASIONS: Final = {
    "gaps": ("fault",),
    "marks": ("fault", "heal", "quiet"),
    "blocked": ("block",),
    "drops": ("drop", "refuse"),
    "retransmissions": ("retransmit_request", "retransmit"),
}
T = TypeVar("T")
Wanted = tuple[DataFrame, type[Any]]
ByGroup = dict[str, list[Any]]


def findings_of(audit: AuditResult) -> Findings:
    """Everything the report shows; the measures of at most 8 groups, those with the most messages."""
    life_rows = lives(audit.records).cache()
    totals = collect(overview(life_rows).orderBy(F.desc("messages_sent"), "group"), Overview)
    groups = _groups(audit.records, life_rows, totals[:GROUPS_SHOWN])
    life_rows.unpersist()
    return Findings(
        summary=audit.summary(),
        verdicts=audit.verdicts,
        groups=groups,
        totals=totals,
        files=audit.files,
        rows=audit.rows,
        quarantined=audit.quarantined,
        diagrams=diagrams(audit.records, audit.verdicts),
        unjudged=audit.unjudged,
    )


def collect(frame: DataFrame, kind: type[T]) -> list[T]:
    """The rows of a small table as values of `kind`, whose fields are columns."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return [kind(**row.asDict()) for row in frame.select(*names).collect()]


def _collect_by_group(frame: DataFrame, kind: type[T]) -> dict[str, list[T]]:
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    found: dict[str, list[T]] = {}
    for row in frame.select(F.col("group").alias("of_group"), *names).collect():
        found.setdefault(row["of_group"], []).append(kind(**{name: row[name] for name in names}))
    return found


def stretch_us(start_us: int, end_us: int) -> int:
    """The length of a stretch of time, round to a reader, so that at most `STRETCHES` fill the whole."""
    least = max(SHORTEST_STRETCH_US, (end_us - start_us) / (STRETCHES - 1))
    power = 1
    while power * 10 <= least:
        power *= 10
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


def _groups(all_records: DataFrame, all_lives: DataFrame, totals: Sequence[Overview]) -> list[GroupFindings]:
    """All groups at once: the number of jobs does not depend on the number of groups."""
    if not totals:
        return []
    records, life_rows = (
        frame.where(F.col("group").isin(*(total.group for total in totals))) for frame in (all_records, all_lives)
    )
    shown = _lives_shown(life_rows)
    buckets_us = {total.group: stretch_us(total.start_us, total.end_us) for total in totals}
    bucket_us = F.create_map(*(F.lit(one) for pair in buckets_us.items() for one in pair))[F.col("group")]
    wanted = {
        **_changes(records, life_rows, _is_shown(shown)),
        **_latency(records, bucket_us),
        **_traffic(records, bucket_us, _is_shown(shown)),
        **_losses(records, life_rows),
    }
    needed = {name: table for name, table in wanted.items() if _has_occasion(name, totals)}
    found = _collected(needed)
    return [_group(total, buckets_us[total.group], shown.get(total.group, []), found) for total in totals]


def _has_occasion(name: str, totals: Sequence[Overview]) -> bool:
    """Whether there is any record that a table is made of; an empty table costs as much as a full one."""
    if name == "clocks":
        return any(total.hosts > 1 for total in totals)
    kinds = OCCASIONS.get(name)
    return kinds is None or any(kind in total.kinds for kind in kinds for total in totals)


def _collected(wanted: Mapping[str, Wanted]) -> dict[str, ByGroup]:
    """The rows of every table; a few jobs at once, as each is small and mostly waits for its planning."""
    with ThreadPoolExecutor(JOBS_AT_ONCE) as pool:
        return dict(zip(wanted, pool.map(lambda pair: _collect_by_group(*pair), wanted.values()), strict=True))


def _group(total: Overview, bucket_us: int, shown: Sequence[Life], found: Mapping[str, ByGroup]) -> GroupFindings:
    own = {name: by_group.get(total.group, []) for name, by_group in found.items()}
    latency: list[Latency] = own.pop("latencies")
    traffic: list[Traffic] = own.pop("traffics")
    return GroupFindings(
        overview=total,
        bucket_us=bucket_us,
        lives=shown,
        left_out={"lives": total.lives - len(shown)},
        latency=[one for one in latency if one.scope == "stretch"],
        senders=[one for one in latency if one.scope == "sender"][:NAMES_SHOWN],
        latency_of_all=next((one for one in latency if one.scope == "all"), None),
        sent=[one for one in traffic if one.member is None],
        traffic=[one for one in traffic if one.member is not None],
        **own,
    )


def _first(frame: DataFrame, keep: int, *order: str | Column) -> DataFrame:
    """The first `keep` rows of each group in this order, so ordered."""
    of_group = Window.partitionBy("group").orderBy(*order)
    return frame.withColumn("rank", F.row_number().over(of_group)).where(F.col("rank") <= keep).orderBy("group", "rank")


def _lives_shown(life_rows: DataFrame) -> dict[str, list[Life]]:
    """The lives of at most 24 names of a group, those with trouble before the others, in the order of time."""
    troubled_first = F.when(F.col("ending") == "cut off", 0).otherwise(1)
    found = _collect_by_group(_first(life_rows, LIVES_SHOWN, troubled_first, "from_us", "address"), Life)
    return {group: _of_few_names(group_lives) for group, group_lives in found.items()}


def _of_few_names(found: Sequence[Life]) -> list[Life]:
    names = list(dict.fromkeys(life.member for life in found))[:NAMES_SHOWN]
    return sorted((life for life in found if life.member in names), key=lambda life: (life.from_us, life.member))


def _is_shown(shown: Mapping[str, Sequence[Life]]) -> Column:
    keys = {f"{group}/{life.member}" for group, group_lives in shown.items() for life in group_lives}
    return F.concat_ws("/", "group", "member").isin(*sorted(keys))


def _changes(records: DataFrame, life_rows: DataFrame, is_shown: Column) -> dict[str, Wanted]:
    spans = view_spans(records.where(is_shown), life_rows)
    changes = view_changes_of_group(view_changes(records))
    gaps = failover_gaps(records)
    return {
        "views": (_first(spans, VIEWS_SHOWN, "from_us", "address"), ViewSpan),
        "marks": (_first(marks(records), MARKS_SHOWN, "mark_us", "kind", "reason"), Mark),
        "changes": (_first(changes, CHANGES_SHOWN, "to_us", "view_number", "view_creator"), ViewChange),
        "gaps": (_first(gaps, GAPS_SHOWN, "mark_us", F.desc("gap_us"), "member"), FailoverGap),
    }


def _latency(records: DataFrame, bucket_us: Column) -> dict[str, Wanted]:
    rows = latencies(records)
    sets = (("group", "bucket"), ("group", "sender"), ("group",))
    found = latency_percentiles(latency_counts(rows, bucket_us), *sets)
    scope = F.when(F.col("bucket").isNotNull(), "stretch").when(F.col("sender").isNotNull(), "sender").otherwise("all")
    in_scope = Window.partitionBy("group", "scope").orderBy(F.desc("messages"), "sender")
    few = (
        found.withColumn("scope", scope)
        .withColumn("rank", F.row_number().over(in_scope))
        .where(F.col("rank") <= STRETCHES)
        .orderBy("bucket", "rank")
        .fillna({"bucket": 0, "sender": ""})
    )
    return {
        "latencies": (few, Latency),
        "clocks": (_first(clock_difference(rows), REASONS_SHOWN, "host", "other_host"), ClockDifference),
    }


def _traffic(records: DataFrame, bucket_us: Column, is_shown: Column) -> dict[str, Wanted]:
    amounts = ("delivered_messages", "delivered_bytes", "sent_messages", "sent_bytes")
    sums = [F.sum(name).alias(name) for name in amounts]
    sets = (("group", "bucket", "member"), ("group", "bucket"))
    series = throughput(records, bucket_us).groupingSets(sets, "group", "bucket", "member").agg(*sums)
    shown = series.where(F.col("member").isNull() | is_shown)
    sizes = _first(run_sizes(records), NAMES_SHOWN, F.desc("messages"), "sender")
    return {
        "traffics": (shown.orderBy("member", "bucket"), Traffic),
        "run_sizes": (sizes, RunSizes),
        "size_classes": (run_size_classes(records).orderBy("at_least"), SizeClass),
    }


def _losses(records: DataFrame, life_rows: DataFrame) -> dict[str, Wanted]:
    repeated = retransmissions(records).where("requests > 0 or repeats > 0")
    blocked = blocked_time(records, life_rows)
    return {
        "drops": (_first(drops(records), REASONS_SHOWN, F.desc("times"), "member", "kind", "reason"), Drop),
        "retransmissions": (_first(repeated, REASONS_SHOWN, F.desc("repeats"), "member"), Retransmission),
        "blocked": (_first(blocked, REASONS_SHOWN, F.desc("blocked_us"), "member"), BlockedTime),
    }
