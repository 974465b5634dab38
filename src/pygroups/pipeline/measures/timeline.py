"""Who lived when, in which views, and what was done to the group meanwhile: the rows of a timeline."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pygroups.pipeline.measures.kinds import DELIVERED, LIFE, SENT, address, amount, how_many

MARKS = ("fault", "heal", "quiet")
MARK_APART_US = 1_000_000
ENDS_A_LIFE = "(?i)kill|crash"


def lives(records: DataFrame) -> DataFrame:
    """One row per life of a member: when it was heard of, what it did, and how it ended.

    `ending` is `stopped` (it wrote why, in `stop_reason`), `cut off` (its journal ends without a last word, and a mark
    says that it was killed or crashed, its name came back, or a last view of the group that is younger than its last
    record is without it) or `open` (it may still be running).
    `life` counts the lives of one name from 1.
    """
    kind = F.col("kind")
    heard = records.groupBy(*LIFE).agg(
        F.first("profile", ignorenulls=True).alias("profile"),
        F.first("host", ignorenulls=True).alias("host"),
        F.min("time_us").alias("from_us"),
        F.max("time_us").alias("to_us"),
        F.max("mono_us").alias("to_mono_us"),
        F.collect_set("kind").alias("kinds"),
        amount(SENT, "count").alias("messages_sent"),
        amount(DELIVERED, "count").alias("messages_delivered"),
        amount(SENT, "bytes").alias("bytes_sent"),
        how_many(("view",)).alias("views"),
        F.max(kind == "quiet").alias("reached_quiet"),
        F.max(kind == "stop").alias("stopped"),
        F.max(F.when(kind == "stop", F.coalesce("reason", F.lit("no reason given")))).alias("stop_reason"),
    )
    return _with_ending(heard, records)


def _with_ending(heard: DataFrame, records: DataFrame) -> DataFrame:
    of_name = Window.partitionBy("group", "member").orderBy("from_us", "incarnation")
    named = (
        records.where((F.col("kind") == "fault") & F.col("reason").rlike(ENDS_A_LIFE))
        .select("group", F.explode("members").alias("address"))
        .distinct()
        .withColumn("named", F.lit(True))
    )
    last_view = (
        records.where("kind = 'view'")
        .groupBy("group")
        .agg(F.max_by("members", "time_us").alias("last_members"), F.max("time_us").alias("last_view_us"))
    )
    left_behind = (F.col("to_us") < F.col("last_view_us")) & ~F.array_contains("last_members", F.col("address"))
    gone = F.coalesce(F.col("named"), F.lit(False)) | F.col("came_back") | F.coalesce(left_behind, F.lit(False))
    ending = F.when(F.col("stopped"), "stopped").when(gone, "cut off").otherwise("open")
    return (
        heard.withColumn("address", address())
        .withColumn("life", F.row_number().over(of_name))
        .withColumn("came_back", F.lead("incarnation").over(of_name).isNotNull())
        .join(named, ["group", "address"], "left")
        .join(F.broadcast(last_view), ["group"], "left")
        .withColumn("ending", ending)
        .drop("named", "last_members", "last_view_us", "stopped", "came_back")
    )


def overview(life_rows: DataFrame) -> DataFrame:
    """One row per group, of `lives`: how many took part, what went through, from when to when, and in which `kinds` of
    records it is told."""
    return life_rows.groupBy("group").agg(
        F.count_distinct("member").alias("names"),
        F.count("*").alias("lives"),
        F.count_if(F.col("ending") == "cut off").alias("crashes"),
        F.count_if(F.col("life") > 1).alias("returns"),
        F.sum("messages_sent").alias("messages_sent"),
        F.sum("messages_delivered").alias("messages_delivered"),
        F.sum("bytes_sent").alias("bytes_sent"),
        F.array_sort(F.collect_set("profile")).alias("profiles"),
        F.array_sort(F.array_distinct(F.flatten(F.collect_list("kinds")))).alias("kinds"),
        F.count_distinct("host").alias("hosts"),
        F.min("from_us").alias("start_us"),
        F.max("to_us").alias("end_us"),
    )


def view_spans(records: DataFrame, life_rows: DataFrame) -> DataFrame:
    """One row per view that a member installed: from its `view` record to its next one, or to its last record.

    `life_rows` are the `lives` of the records.
    """
    by_index = Window.partitionBy(*LIFE).orderBy("index")
    ends = life_rows.select(*LIFE, F.col("to_us").alias("life_to_us"))
    return (
        records.where("kind = 'view'")
        .withColumn("next_us", F.lead("time_us").over(by_index))
        .join(ends, list(LIFE))
        .select(
            *LIFE,
            address().alias("address"),
            "view_number",
            "view_creator",
            "members",
            "primary",
            (F.size(F.coalesce("subgroups", F.array())) > 0).alias("merged"),
            F.col("time_us").alias("from_us"),
            F.coalesce("next_us", "life_to_us").alias("to_us"),
        )
    )


def mark_records(records: DataFrame) -> DataFrame:
    """Every `fault`, `heal` and `quiet` record; `mark_us` is when the first member wrote that mark.

    A mark goes into the journal of each member that runs. Records of one kind, reason and `named` members that follow
    each other within a second are one mark.
    """
    marks = records.where(F.col("kind").isin(*MARKS)).select(
        *LIFE,
        "kind",
        F.coalesce("reason", F.lit("")).alias("reason"),
        F.coalesce(F.array_sort("members"), F.array().cast("array<string>")).alias("named"),
        "time_us",
        "mono_us",
    )
    same = Window.partitionBy("group", "kind", "reason", "named").orderBy("time_us")
    begins = F.coalesce(F.col("time_us") - F.lag("time_us").over(same) > MARK_APART_US, F.lit(True))
    return (
        marks.withColumn("begins_us", F.when(begins, F.col("time_us")))
        .withColumn("mark_us", F.last("begins_us", ignorenulls=True).over(same))
        .drop("begins_us")
    )


def marks(records: DataFrame) -> DataFrame:
    """One row per mark: `group`, `mark_us`, `kind`, `reason`, `named` members, and how many members wrote it."""
    return (
        mark_records(records)
        .groupBy("group", "mark_us", "kind", "reason", "named")
        .agg(F.count_distinct("member", "incarnation").alias("written_by"))
    )
