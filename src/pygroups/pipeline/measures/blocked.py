"""The times in which members were blocked: they delivered nothing, and new messages of their programs waited."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.history import History
from pygroups.pipeline.measures.kinds import LIFE, by_member

VIEW_CHANGE: Final = "view change"

# A process that joins is bound by attempts at its first view and delivers nothing before that view anyway.
_BEGINS: Final = "kind = 'block' or kind in ('flush', 'merge') and stage = 'collect' and view is not null"
_ENDS: Final = "kind in ('view', 'unblock', 'stop')"
_ENDS_BEFORE: Final = (
    f"count_if({_ENDS}) over (partition by life order by index rows between unbounded preceding and 1 preceding)"
)


def blocked_spans(history: History) -> DataFrame:
    """One row per blocked time: `from_us`, `to_us` (wall clock), `blocked_us` (monotonic), `ended` and `reason`.

    A blocked time begins with the first `collect` or `block` record after a view. A blocked time ends at the next
    `view`, `unblock` or `stop` record, or, when none follows, at the last record of the member. The reason is that of
    its first `block` record, or else `view change`.
    """
    steps = history.events.where(f"{_BEGINS} or {_ENDS}").selectExpr(
        *("life", "kind", "reason", "index", "time_us", "mono_us", f"{_ENDS} as ends"),
        f"coalesce({_ENDS_BEFORE}, 0) as ends_before",
    )
    spans = steps.groupBy("life", "ends_before").agg(
        *(F.expr(f"min(if(ends, null, {name})) as from_{name}") for name in ("time_us", "mono_us")),
        *(F.expr(f"max(if(ends, {name}, null)) as end_{name}") for name in ("time_us", "mono_us")),
        F.expr("min_by(reason, index) filter (where kind = 'block')").alias("reason"),
    )
    return by_member(spans.where("from_time_us is not null"), history, "to_us", "to_mono_us").selectExpr(
        *LIFE,
        f"coalesce(reason, '{VIEW_CHANGE}') as reason",
        "from_time_us as from_us",
        "coalesce(end_time_us, to_us) as to_us",
        "coalesce(end_mono_us, to_mono_us) - from_mono_us as blocked_us",
        "end_time_us is not null as ended",
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
