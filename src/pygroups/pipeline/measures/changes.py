"""The time of a view change: from the record in which a member was bound to the view that it then installed."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.history import History
from pygroups.pipeline.measures.kinds import LIFE, by_member

VIEW = ("group", "view_number", "view_creator")
_VIEWS_BEFORE = (
    "count_if(kind = 'view') over (partition by life order by index rows between unbounded preceding and 1 preceding)"
)


def view_changes(history: History) -> DataFrame:
    """One row per view and member that installed it: `flush_us` from its first `collect` since its last view.

    `agree_us` is the part up to its last `accepted`; both are null for a member that was not bound, such as a joiner.
    `attempts` counts the ballots that bound it; `came_by_merge` is true if a merge record was among them.
    """
    return by_member(_installed(history), history).select(*LIFE, *_CHANGE)


_CHANGE = (
    *("view_number", "view_creator", "members", "installed_us", "bound_us", "attempts", "came_by_merge"),
    *("flush_us", "agree_us"),
)


def _installed(history: History) -> DataFrame:
    steps = history.events.where("kind in ('view', 'flush', 'merge')").selectExpr(
        *("group", "life", "kind", "time_us", "mono_us", "members", "view_number", "view_creator"),
        "if(kind <> 'view', stage, null) as stage",
        "struct(ballot_number, ballot_leader) as ballot",
        f"coalesce({_VIEWS_BEFORE}, 0) as views_before",
    )
    found = steps.groupBy("group", "life", "views_before").agg(
        *(F.expr(f"max(if(kind = 'view', {name}, null))").alias(name) for name in ("view_number", "view_creator")),
        F.expr("max(if(kind = 'view', members, null))").alias("members"),
        F.expr("max(if(kind = 'view', time_us, null))").alias("installed_us"),
        F.expr("max(if(kind = 'view', mono_us, null))").alias("installed_mono_us"),
        F.expr("min(if(stage = 'collect', time_us, null))").alias("bound_us"),
        F.expr("min(if(stage = 'collect', mono_us, null))").alias("bound_mono_us"),
        F.expr("max(if(stage = 'accepted', mono_us, null))").alias("accepted_mono_us"),
        F.expr("size(collect_set(if(stage = 'collect', ballot, null)))").alias("attempts"),
        F.expr("max(kind = 'merge')").alias("came_by_merge"),
    )
    spans = ("installed_mono_us - bound_mono_us as flush_us", "accepted_mono_us - bound_mono_us as agree_us")
    return found.where("view_number is not null").selectExpr("group", "life", *_CHANGE[:-2], *spans)


def view_changes_of_group(history: History) -> DataFrame:
    """The view changes per view: the number of installing members, the median and longest `flush_us`, start and end.

    `from_us` is when the first member was bound (or installed it, when none was), `to_us` when the last installed it.
    """
    return (
        _installed(history)
        .groupBy(*VIEW)
        .agg(
            F.first("members").alias("members"),
            F.count("*").alias("installed_by"),
            F.min(F.coalesce("bound_us", "installed_us")).alias("from_us"),
            F.max("installed_us").alias("to_us"),
            F.percentile("flush_us", F.lit(0.5)).alias("flush_p50_us"),
            F.max("flush_us").alias("flush_max_us"),
            F.max("attempts").alias("attempts"),
            F.max("came_by_merge").alias("came_by_merge"),
        )
    )
