"""One row per life: how far its journal can be trusted, and when the life reached quiet.

A journal with a hole or a damaged place counts as ended before it: `end` is the first index that is not trusted, and
`whole` is false. A life reaches quiet with its `quiet` mark; in a history without marks with a `leave` after a `stats`
record whose gauges are all 0. What counts as delivered by then is what stands in view `quiet_view` below index
`quiet_end`: below the mark, or, without marks, all that was delivered until the end.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pygroups.journal.schema import MARKS
from pygroups.pipeline.keys import address, life_key, view_key

_LIFE = ("group", "member", "incarnation")


def journals_of(records: DataFrame, damaged: DataFrame) -> DataFrame:
    """Journals from the bronze records and the quarantined places.

    Columns: group, profile, host, address, life, end, whole, marked, quiet_index, quiet_view, quiet_end, leave_index,
    stop_index, stop_reason, first_view, last_view, lost_messages, lost_views, lost_unicasts (counts behind `end`).
    """
    seen = records.groupBy(*_LIFE).agg(
        F.min("profile").alias("profile"),
        F.min("host").alias("host"),
        F.count("index").alias("rows"),
        F.max("index").alias("top"),
        F.sum("index").alias("total"),
    )
    places = damaged.groupBy(*_LIFE).agg(F.count(F.lit(1)).alias("places"))
    ends = seen.join(_ends(records, seen), [*_LIFE], "left").join(F.broadcast(places), [*_LIFE], "left")
    known = ends.select(
        *_LIFE,
        "profile",
        "host",
        F.coalesce("hole", F.col("top") + 1).alias("end"),
        (F.col("hole").isNull() & F.col("places").isNull()).alias("whole"),
    )
    lost = _lost(records, known.where(~F.col("whole")))
    story = _story(records.join(F.broadcast(known.select(*_LIFE, "end")), [*_LIFE]).where("index < end"))
    rows = known.join(story, [*_LIFE], "left").join(lost, [*_LIFE], "left")
    return _quiet(rows.select("*", address().alias("address"), life_key().alias("life")))


def _is_complete() -> Column:
    """Index 0 to `top`, each once: told from count, maximum and sum, without looking at a single index again."""
    return (F.col("rows") == F.col("top") + 1) & (F.col("total") == F.expr("top * (top + 1) div 2"))


def _ends(records: DataFrame, seen: DataFrame) -> DataFrame:
    """For journals with a hole or an index twice: the first index that cannot be trusted."""
    suspects = seen.where(~_is_complete()).select(*_LIFE)
    numbered = records.join(F.broadcast(suspects), [*_LIFE], "left_semi").select(
        *_LIFE, "index", (F.row_number().over(Window.partitionBy(*_LIFE).orderBy("index")) - 1).alias("expected")
    )
    wrong = numbered.where("index <> expected")
    return wrong.groupBy(*_LIFE).agg(F.min(F.least("index", F.col("expected").cast("bigint"))).alias("hole"))


def _lost(records: DataFrame, broken: DataFrame) -> DataFrame:
    """What stands in damaged journals behind their end: facts that nobody will judge."""
    behind = records.join(F.broadcast(broken.select(*_LIFE, "end")), [*_LIFE]).where("index >= end")
    return behind.groupBy(*_LIFE).agg(
        F.sum(F.expr("if(kind = 'deliver', count, 0)")).alias("lost_messages"),
        F.sum(F.expr("if(kind = 'view', 1, 0)")).alias("lost_views"),
        F.sum(F.expr("if(kind in ('unicast_send', 'unicast_deliver'), count, 0)")).alias("lost_unicasts"),
    )


def _story(records: DataFrame) -> DataFrame:
    """What a life went through, as far as its journal is trusted."""
    kinds = records.where(F.col("kind").isin("view", "leave", "stop", "stats", *MARKS)).select(
        *_LIFE, "index", "kind", "reason", view_key().alias("view"), "gauges", "view_number"
    )
    at_zero = F.expr("kind = 'stats' and not exists(map_values(gauges), gauge -> gauge <> 0)")
    before = Window.partitionBy(*_LIFE).orderBy("index").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    steps = kinds.withColumn("settled", F.last(F.when(F.col("kind") == "stats", at_zero), True).over(before))
    mark = F.col("kind") == "quiet"
    leave = F.col("kind") == "leave"
    return steps.groupBy(*_LIFE).agg(
        F.max(F.col("kind").isin(*MARKS)).alias("has_marks"),
        F.max(F.when(mark, F.col("index"))).alias("mark_index"),
        F.max_by("view", F.when(mark, F.col("index"))).alias("mark_view"),
        F.min(F.when(leave, F.col("index"))).alias("leave_index"),
        F.min(F.when(leave & F.col("settled"), F.col("index"))).alias("settled_leave"),
        F.max(F.when(F.col("kind") == "stop", F.col("index"))).alias("stop_index"),
        F.max_by("reason", F.when(F.col("kind") == "stop", F.col("index"))).alias("stop_reason"),
        F.min(F.when(F.col("kind") == "view", F.col("index"))).alias("first_view"),
        F.max_by("view", F.when(F.col("kind") == "view", F.col("index"))).alias("last_view"),
    )


def _quiet(rows: DataFrame) -> DataFrame:
    marked = F.max("has_marks").over(Window.partitionBy("group"))
    by_mark = F.coalesce("marked", F.lit(False))
    settled = F.col("settled_leave").isNotNull()
    return rows.withColumn("marked", marked).select(
        *("group", "profile", "host", "address", "life", "end", "whole"),
        by_mark.alias("marked"),
        F.when(by_mark, F.col("mark_index")).otherwise(F.col("settled_leave")).alias("quiet_index"),
        F.when(by_mark, F.col("mark_view")).when(settled, F.col("last_view")).alias("quiet_view"),
        F.when(by_mark, F.col("mark_index")).when(settled, F.col("end")).alias("quiet_end"),
        *("leave_index", "stop_index", "stop_reason", "first_view", "last_view"),
        *(F.coalesce(name, F.lit(0)).alias(name) for name in ("lost_messages", "lost_views", "lost_unicasts")),
    )
