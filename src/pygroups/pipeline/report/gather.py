"""From an audit to the content of its report: Spark aggregates every table and cuts the table to a bounded size.  Then
this process collects the rows.

Two queries fetch everything but the diagrams, however many groups and tables there are: one has a row for each
incarnation, the other one for each line of a table that has any occasion.  A query costs more than the rows of most
histories.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import reduce
from typing import Any, Final, TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.history import History
from pygroups.pipeline.measures.blocked import blocked_time
from pygroups.pipeline.measures.changes import view_changes_of_group
from pygroups.pipeline.measures.failover import failover_gaps
from pygroups.pipeline.measures.latency import (
    clock_difference,
    latencies,
    latency_counts,
    latency_percentiles,
    with_senders,
)
from pygroups.pipeline.measures.losses import drops, retransmissions
from pygroups.pipeline.measures.runs import run_size_classes, run_sizes
from pygroups.pipeline.measures.throughput import traffic
from pygroups.pipeline.measures.timeline import lives, marks, view_spans
from pygroups.pipeline.report.findings import (
    BlockedTime,
    ClockDifference,
    Drop,
    FailoverGap,
    FaultMark,
    Findings,
    GroupFindings,
    Latency,
    Life,
    Overview,
    Retransmission,
    RunSizes,
    SizeClass,
    Traffic,
    ViewChangeTime,
    ViewSpan,
)
from pygroups.pipeline.report.nearby import diagrams
from pygroups.pipeline.report.overview import of_few_names, overviews
from pygroups.pipeline.verdict import AuditResult

GROUPS_SHOWN: Final = 8
NAMES_SHOWN: Final = 24
VIEWS_SHOWN: Final = 2_000
MARKS_SHOWN: Final = 40
CHANGES_SHOWN: Final = 100
GAPS_SHOWN: Final = 200
REASONS_SHOWN: Final = 100
STRETCHES: Final = 240
SHORTEST_STRETCH_US: Final = 10_000
OCCASIONS: Final = {
    "gaps": ("fault",),
    "marks": ("fault", "heal", "quiet"),
    "blocked": ("block", "flush", "merge"),
    "drops": ("drop", "refuse"),
    "retransmissions": ("retransmit_request", "retransmit"),
}
T = TypeVar("T")
Wanted = tuple[DataFrame, type[Any], int, str]
"""Rows, what becomes of each, how many of a group are shown, and which come first, in words of Spark SQL."""
ByGroup = dict[str, list[Any]]


def findings_of(audit: AuditResult) -> Findings:
    """Everything the report shows; the measures of at most 8 groups, those with the most messages."""
    life_rows = collect(lives(audit.history), Life)
    totals = overviews(life_rows)
    largest = totals[:GROUPS_SHOWN]
    history = audit.history if len(largest) == len(totals) else audit.history.of_groups([one.group for one in largest])
    shown = {total.group: of_few_names(life_rows[total.group], NAMES_SHOWN) for total in largest}
    return Findings(
        summary=audit.summary(),
        verdicts=audit.verdicts,
        groups=_groups(history, largest, shown),
        totals=totals,
        files=audit.files,
        rows=audit.rows,
        quarantined=audit.quarantined,
        holes=audit.holes,
        diagrams=diagrams(audit.history, audit.verdicts),
        unjudged=audit.unjudged,
        work=audit.work,
    )


def collect(frame: DataFrame, kind: type[T]) -> dict[str, list[T]]:
    """By group the rows of a small table as values of `kind`, whose fields are columns."""
    names = _fields_of(kind)
    found: dict[str, list[T]] = {}
    for row in frame.select(F.col("group").alias("of_group"), *names).collect():
        found.setdefault(row["of_group"], []).append(kind(**{name: row[name] for name in names}))
    return found


def _fields_of(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind)]


def stretch_us(start_us: int, end_us: int) -> int:
    """The length of a stretch of time, in microseconds: a round number for a reader, so long that at most `STRETCHES`
    stretches fill the whole time."""
    least = max(SHORTEST_STRETCH_US, (end_us - start_us) / (STRETCHES - 1))
    power = 1
    while power * 10 <= least:
        power *= 10
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


def _groups(history: History, totals: Sequence[Overview], shown: Mapping[str, Sequence[Life]]) -> list[GroupFindings]:
    """Gather all groups at once: the number of queries does not depend on the number of groups."""
    if not totals:
        return []
    buckets_us = {total.group: stretch_us(total.start_us, total.end_us) for total in totals}
    bucket_us = F.create_map(*(F.lit(one) for pair in buckets_us.items() for one in pair))[F.col("group")]
    several_hosts = any(total.hosts > 1 for total in totals)
    wanted = {
        **_changes(history, _is_shown(shown)),
        **_latency(history, bucket_us, several_hosts),
        **_traffic(history, bucket_us, _is_shown(shown)),
        **_losses(history),
    }
    found = _collected({name: table for name, table in wanted.items() if _has_occasion(name, totals)})
    return [_group(total, buckets_us[total.group], shown[total.group], found) for total in totals]


def _has_occasion(name: str, totals: Sequence[Overview]) -> bool:
    """Whether the history has a record that the table is made of.  An empty table costs as much as a full table."""
    kinds = OCCASIONS.get(name)
    return kinds is None or any(kind in total.kinds for kind in kinds for total in totals)


def _collected(wanted: Mapping[str, Wanted]) -> dict[str, ByGroup]:
    """The rows of every table by group, each table in its own order, all with one query."""
    rows = reduce(DataFrame.unionAll, (_told(name, *table) for name, table in wanted.items())).collect()
    found: dict[str, ByGroup] = {name: {} for name in wanted}
    for row in sorted(rows, key=lambda row: row["rank"]):
        value = wanted[row["what"]][1](**json.loads(row["told"]))
        found[row["what"]].setdefault(row["group"], []).append(value)
    return found


def _told(what: str, frame: DataFrame, kind: type[Any], keep: int, order: str) -> DataFrame:
    """The first `keep` rows of each group as text, so that tables with unlike columns fit into one."""
    rank = f"row_number() over (partition by group order by {order}) as rank"
    told = F.to_json(F.struct(*_fields_of(kind)), {"ignoreNullFields": "false"}).alias("told")
    return (
        frame.selectExpr("*", rank)
        .where(F.col("rank") <= keep)
        .select("group", "rank", F.lit(what).alias("what"), told)
    )


def _group(total: Overview, bucket_us: int, shown: Sequence[Life], found: Mapping[str, ByGroup]) -> GroupFindings:
    own = {name: by_group.get(total.group, []) for name, by_group in found.items()}
    latency: list[Latency] = own.pop("latencies")
    traffics: list[Traffic] = own.pop("traffics")
    return GroupFindings(
        overview=total,
        bucket_us=bucket_us,
        lives=shown,
        left_out={"lives": total.lives - len(shown)},
        latency=sorted((one for one in latency if one.scope == "stretch"), key=lambda one: one.bucket),
        senders=[one for one in latency if one.scope == "sender"],
        latency_of_all=next((one for one in latency if one.scope == "all"), None),
        sent=sum_of(traffics),
        traffic=[one for one in traffics if one.member is not None],
        **own,
    )


def sum_of(traffics: Sequence[Traffic]) -> list[Traffic]:
    """Deliveries and sends of all members together in each stretch, in the order of time."""
    found: dict[int, list[Traffic]] = {}
    for one in traffics:
        found.setdefault(one.bucket, []).append(one)
    return [
        Traffic(
            None,
            bucket,
            sum(one.delivered_messages for one in same),
            sum(one.delivered_bytes for one in same),
            sum(one.sent_messages for one in same),
            sum(one.sent_bytes for one in same),
        )
        for bucket, same in sorted(found.items())
    ]


def _is_shown(shown: Mapping[str, Sequence[Life]]) -> Column:
    keys = {f"{group}/{life.member}" for group, group_lives in shown.items() for life in group_lives}
    return F.concat_ws("/", "group", "member").isin(*sorted(keys))


def _changes(history: History, is_shown: Column) -> dict[str, Wanted]:
    return {
        "views": (view_spans(history).where(is_shown), ViewSpan, VIEWS_SHOWN, "from_us, address"),
        "marks": (marks(history), FaultMark, MARKS_SHOWN, "mark_us, kind, reason"),
        "changes": (view_changes_of_group(history), ViewChangeTime, CHANGES_SHOWN, "to_us, view_number, view_creator"),
        "gaps": (failover_gaps(history), FailoverGap, GAPS_SHOWN, "mark_us, gap_us desc, member"),
    }


def _latency(history: History, bucket_us: Column, several_hosts: bool) -> dict[str, Wanted]:
    rows = latencies(history, one_host=not several_hosts)
    counts = with_senders(latency_counts(rows, bucket_us), history)
    scope = "case when bucket is not null then 'stretch' when sender is not null then 'sender' else 'all' end as scope"
    found = latency_percentiles(counts, ("group", "bucket"), ("group", "sender"), ("group",)).selectExpr(
        "* except (bucket, sender)", "coalesce(bucket, 0) as bucket", "coalesce(sender, '') as sender", scope
    )
    order = "if(scope = 'sender', 1, 0), messages desc, sender"
    wanted: dict[str, Wanted] = {"latencies": (found, Latency, 1 + STRETCHES + NAMES_SHOWN, order)}
    if several_hosts:
        wanted["clocks"] = (clock_difference(rows, history), ClockDifference, REASONS_SHOWN, "host, other_host")
    return wanted


def _traffic(history: History, bucket_us: Column, is_shown: Column) -> dict[str, Wanted]:
    names = history.writers.select("group", "life", F.when(is_shown, F.col("member")).alias("member"))
    amounts = ("delivered_messages", "delivered_bytes", "sent_messages", "sent_bytes")
    series = (
        traffic(history, bucket_us)
        .join(names, "life")
        .groupBy("group", "bucket", "member")
        .agg(*(F.sum(name).alias(name) for name in amounts))
    )
    return {
        "traffics": (series, Traffic, STRETCHES * (NAMES_SHOWN + 1), "member, bucket"),
        "run_sizes": (run_sizes(history), RunSizes, NAMES_SHOWN, "messages desc, sender"),
        "size_classes": (run_size_classes(history), SizeClass, REASONS_SHOWN, "at_least"),
    }


def _losses(history: History) -> dict[str, Wanted]:
    return {
        "drops": (drops(history), Drop, REASONS_SHOWN, "times desc, member, kind, reason"),
        "retransmissions": (retransmissions(history), Retransmission, REASONS_SHOWN, "repeats desc, member"),
        "blocked": (blocked_time(history), BlockedTime, REASONS_SHOWN, "blocked_us desc, member"),
    }
