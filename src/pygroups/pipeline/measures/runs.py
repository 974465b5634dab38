"""Run sizes: how many messages and bytes travelled as one."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.history import History
from pygroups.pipeline.measures.kinds import SENT, by_member
from pygroups.pipeline.measures.percentiles import rounded


def run_sizes(history: History) -> DataFrame:
    """Per group and sender: `runs`, `messages`, `bytes`, and per run the median and largest of messages and bytes."""
    sends = by_member(history.runs.where(SENT).select("life", "count", "bytes"), history)
    return sends.groupBy("group", F.col("member").alias("sender")).agg(
        F.count("*").alias("runs"),
        F.sum("count").alias("messages"),
        F.sum("bytes").alias("bytes"),
        F.percentile(rounded("count"), F.lit(0.5)).alias("messages_per_run_p50"),
        F.max("count").alias("messages_per_run_max"),
        F.percentile(rounded("bytes"), F.lit(0.5)).alias("bytes_per_run_p50"),
        F.max("bytes").alias("bytes_per_run_max"),
    )


def run_size_classes(history: History) -> DataFrame:
    """Per group, how many runs had 1 message, 2 to 3, 4 to 7 and so on: `at_least` is the lower end of the class."""
    at_least = F.expr("shiftleft(1L, length(bin(greatest(count, 1))) - 1)").alias("at_least")
    return (
        history.runs.where(SENT)
        .groupBy("group", at_least)
        .agg(F.count("*").alias("runs"), F.sum("count").alias("messages"))
    )
