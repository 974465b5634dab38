"""How long a change of view took: from the record in which a member was bound to the view that it then installed."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pygroups.pipeline.measures.kinds import LIFE

VIEW = ("group", "view_number", "view_creator")


def view_changes(records: DataFrame) -> DataFrame:
    """One row per view and member that installed it: `flush_us` from its first `collect` since its last view.

    `agree_us` is the part up to its last `accepted`; both are null for a member that was not bound, such as a joiner.
    `attempts` counts the ballots that bound it; `came_by_merge` says that a merge record was among them.
    """
    own = Window.partitionBy(*LIFE).orderBy("index").rowsBetween(Window.unboundedPreceding, -1)
    is_view = F.col("kind") == "view"
    views_before = F.coalesce(F.sum(F.when(is_view, 1).otherwise(0)).over(own), F.lit(0))
    return (
        records.where("kind in ('view', 'flush', 'merge')")
        .withColumn("views_before", views_before)
        .groupBy(*LIFE, "views_before")
        .agg(
            *(F.max(F.when(is_view, F.col(name))).alias(name) for name in ("view_number", "view_creator")),
            F.max(F.when(is_view, F.col("members"))).alias("members"),
            F.max(F.when(is_view, F.col("time_us"))).alias("installed_us"),
            F.max(F.when(is_view, F.col("mono_us"))).alias("installed_mono_us"),
            F.min(_at_stage("collect", "time_us")).alias("bound_us"),
            F.min(_at_stage("collect", "mono_us")).alias("bound_mono_us"),
            F.max(_at_stage("accepted", "mono_us")).alias("accepted_mono_us"),
            F.count_distinct(_at_stage("collect", "ballot_number"), _at_stage("collect", "ballot_leader")).alias(
                "attempts"
            ),
            F.max(F.col("kind") == "merge").alias("came_by_merge"),
        )
        .where("view_number is not null")
        .withColumn("flush_us", F.col("installed_mono_us") - F.col("bound_mono_us"))
        .withColumn("agree_us", F.col("accepted_mono_us") - F.col("bound_mono_us"))
        .drop("views_before", "installed_mono_us", "bound_mono_us", "accepted_mono_us")
    )


def _at_stage(stage: str, column: str) -> Column:
    return F.when(F.col("kind").isin("flush", "merge") & (F.col("stage") == stage), F.col(column))


def view_changes_of_group(changes: DataFrame) -> DataFrame:
    """The same per view: how many installed it, the median and longest `flush_us`, and from when to when it took.

    `from_us` is when the first member was bound (or installed it, when none was), `to_us` when the last installed it.
    """
    return changes.groupBy(*VIEW).agg(
        F.first("members").alias("members"),
        F.count("*").alias("installed_by"),
        F.min(F.coalesce("bound_us", "installed_us")).alias("from_us"),
        F.max("installed_us").alias("to_us"),
        F.percentile("flush_us", F.lit(0.5)).alias("flush_p50_us"),
        F.max("flush_us").alias("flush_max_us"),
        F.max("attempts").alias("attempts"),
        F.max("came_by_merge").alias("came_by_merge"),
    )
