"""The times in which members were blocked: their applications had to wait with new messages."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.history import History
from pygroups.pipeline.measures.kinds import LIFE, by_member

_NEXT = "lead({0}) over (partition by life order by index) as next_{0}"


def blocked_spans(history: History) -> DataFrame:
    """One row per `block` record: `from_us`, `to_us` (wall clock), `blocked_us` (monotonic), and whether it `ended`.

    A span ends at the next `unblock`, `block` or `stop`, or, when none follows, at the life's last record.
    """
    steps = history.events.where("kind in ('block', 'unblock', 'stop')").selectExpr(
        *("life", "kind", "reason", "time_us", "mono_us"), _NEXT.format("time_us"), _NEXT.format("mono_us")
    )
    return by_member(steps.where("kind = 'block'"), history, "to_us", "to_mono_us").selectExpr(
        *LIFE,
        "reason",
        "time_us as from_us",
        "coalesce(next_time_us, to_us) as to_us",
        "coalesce(next_mono_us, to_mono_us) - mono_us as blocked_us",
        "next_time_us is not null as ended",
    )


def blocked_time(history: History) -> DataFrame:
    """Per group and member: `times` blocked, `blocked_us` in all and `longest_us`."""
    return (
        blocked_spans(history)
        .groupBy("group", "member")
        .agg(
            F.count("*").alias("times"),
            F.sum("blocked_us").alias("blocked_us"),
            F.max("blocked_us").alias("longest_us"),
        )
    )
