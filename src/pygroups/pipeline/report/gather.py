"""From an audit to what the report shows: every table is aggregated and cut to a bounded size in Spark, then collected.

This is the only place of the report that runs Spark jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final, TypeVar

from pyspark.sql import DataFrame
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
    LatencyPoint,
    Life,
    Mark,
    Overview,
    Retransmission,
    RunSizes,
    SenderLatency,
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
T = TypeVar("T")


def gather(audit: AuditResult) -> Findings:
    """Everything the report shows; the measures of at most 8 groups, those with the most messages."""
    life_rows = lives(audit.records).cache()
    totals = collect(overview(life_rows).orderBy(F.desc("messages_sent"), "group"), Overview)
    groups = [_group(audit.records, life_rows, total) for total in totals[:GROUPS_SHOWN]]
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
    )


def collect(frame: DataFrame, kind: type[T]) -> list[T]:
    """The rows of a small table as values of `kind`, whose fields are columns."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return [kind(**row.asDict()) for row in frame.select(*names).collect()]


def stretch_us(start_us: int, end_us: int) -> int:
    """The length of a stretch of time, round to a reader, so that at most `STRETCHES` fill the whole."""
    least = max(SHORTEST_STRETCH_US, (end_us - start_us) / (STRETCHES - 1))
    power = 1
    while power * 10 <= least:
        power *= 10
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


def _group(all_records: DataFrame, life_rows: DataFrame, total: Overview) -> GroupFindings:
    records = all_records.where(F.col("group") == total.group)
    troubled_first = F.when(F.col("ending") == "cut off", 0).otherwise(1)
    own_lives = life_rows.where(F.col("group") == total.group)
    shown = _of_few_names(collect(own_lives.orderBy(troubled_first, "from_us").limit(LIVES_SHOWN), Life))
    names = list({life.member: None for life in shown})
    bucket_us = stretch_us(total.start_us, total.end_us)
    return GroupFindings(
        overview=total,
        bucket_us=bucket_us,
        lives=shown,
        left_out={"lives": total.lives - len(shown)},
        **_changes(records, names),
        **_latency(records, bucket_us),
        **_traffic(records, names, bucket_us),
        **_losses(records),
    )


def _of_few_names(found: Sequence[Life]) -> list[Life]:
    names = list({life.member: None for life in found})[:NAMES_SHOWN]
    return sorted((life for life in found if life.member in names), key=lambda life: (life.from_us, life.member))


def _changes(records: DataFrame, names: Sequence[str]) -> dict[str, Any]:
    spans = view_spans(records.where(F.col("member").isin(*names)))
    changes = view_changes_of_group(view_changes(records))
    gaps = failover_gaps(records)
    return {
        "views": collect(spans.orderBy("from_us").limit(VIEWS_SHOWN), ViewSpan),
        "marks": collect(marks(records).orderBy("mark_us", "kind").limit(MARKS_SHOWN), Mark),
        "changes": collect(changes.orderBy("to_us").limit(CHANGES_SHOWN), ViewChange),
        "gaps": collect(gaps.orderBy("mark_us", F.desc("gap_us")).limit(GAPS_SHOWN), FailoverGap),
        "blocked": collect(blocked_time(records).orderBy(F.desc("blocked_us")).limit(REASONS_SHOWN), BlockedTime),
    }


def _latency(records: DataFrame, bucket_us: int) -> dict[str, Any]:
    rows = latencies(records)
    counts = latency_counts(rows, bucket_us).cache()
    by_sender = latency_percentiles(counts, "sender").orderBy(F.desc("messages"))
    everything = latency_percentiles(counts).withColumn("bucket", F.lit(0)).where("messages is not null")
    findings = {
        "latency": collect(latency_percentiles(counts, "bucket").orderBy("bucket"), LatencyPoint),
        "latency_of_all": next(iter(collect(everything, LatencyPoint)), None),
        "senders": collect(by_sender.limit(NAMES_SHOWN), SenderLatency),
        "clocks": collect(clock_difference(rows).limit(REASONS_SHOWN), ClockDifference),
    }
    counts.unpersist()
    return findings


def _traffic(records: DataFrame, names: Sequence[str], bucket_us: int) -> dict[str, Any]:
    amounts = ("delivered_messages", "delivered_bytes", "sent_messages", "sent_bytes")
    series = throughput(records, bucket_us)
    sums = [F.sum(name).alias(name) for name in amounts]
    of_all = series.groupBy("bucket").agg(*sums).withColumn("member", F.lit(""))
    of_names = series.where(F.col("member").isin(*names)).groupBy("member", "bucket").agg(*sums)
    sizes = run_sizes(records).orderBy(F.desc("messages")).limit(NAMES_SHOWN)
    return {
        "sent": collect(of_all.orderBy("bucket"), Traffic),
        "traffic": collect(of_names.orderBy("member", "bucket"), Traffic),
        "run_sizes": collect(sizes, RunSizes),
        "size_classes": collect(run_size_classes(records).orderBy("at_least"), SizeClass),
    }


def _losses(records: DataFrame) -> dict[str, Any]:
    repeated = retransmissions(records).where("requests > 0 or repeats > 0")
    return {
        "drops": collect(drops(records).orderBy(F.desc("times"), "member").limit(REASONS_SHOWN), Drop),
        "retransmissions": collect(repeated.orderBy(F.desc("repeats")).limit(REASONS_SHOWN), Retransmission),
    }
