"""How long members were blocked: told not to send, and to wait."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pygroups.pipeline.measures.kinds import LIFE


def blocked_spans(records: DataFrame, life_rows: DataFrame) -> DataFrame:
    """One row per `block` record: `from_us`, `to_us` (wall clock), `blocked_us` (monotonic), and whether it `ended`.

    A span ends at the next `unblock`, `block` or `stop`, or, when none follows, at the life's last record.
    `life_rows` are the `lives` of the records.
    """
    by_index = Window.partitionBy(*LIFE).orderBy("index")
    ends = life_rows.select(*LIFE, F.col("to_us").alias("end_us"), F.col("to_mono_us").alias("end_mono_us"))
    return (
        records.where("kind in ('block', 'unblock', 'stop')")
        .withColumn("next_us", F.lead("time_us").over(by_index))
        .withColumn("next_mono_us", F.lead("mono_us").over(by_index))
        .where("kind = 'block'")
        .join(ends, list(LIFE))
        .select(
            *LIFE,
            "reason",
            F.col("time_us").alias("from_us"),
            F.coalesce("next_us", "end_us").alias("to_us"),
            (F.coalesce("next_mono_us", "end_mono_us") - F.col("mono_us")).alias("blocked_us"),
            F.col("next_us").isNotNull().alias("ended"),
        )
    )


def blocked_time(records: DataFrame, life_rows: DataFrame) -> DataFrame:
    """Per group and member: `times` blocked, `blocked_us` in all and `longest_us`."""
    return (
        blocked_spans(records, life_rows)
        .groupBy("group", "member")
        .agg(
            F.count("*").alias("times"),
            F.sum("blocked_us").alias("blocked_us"),
            F.max("blocked_us").alias("longest_us"),
        )
    )
