"""Run sizes: how many messages and bytes each run contained."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.history import History
from pygroups.pipeline.measures.kinds import SENT, by_member
from pygroups.pipeline.measures.percentiles import rounded

_OF_RUNS: Final = {"runs": "count(*)", "messages": "sum(count)", "bytes": "sum(bytes)"}


def run_sizes(history: History) -> DataFrame:
    """Per group and sender: `runs`, `messages`, `bytes`, and per run the median and largest of messages and bytes."""
    size = (rounded("count").alias("messages_per_run"), rounded("bytes").alias("bytes_per_run"))
    alike = (
        history.runs.where(SENT)
        .groupBy("life", *size)
        .agg(
            *(F.expr(text).alias(name) for name, text in _OF_RUNS.items()),
            F.max("count").alias("messages_per_run_max"),
            F.max("bytes").alias("bytes_per_run_max"),
        )
    )
    return (
        by_member(alike, history)
        .groupBy("group", F.col("member").alias("sender"))
        .agg(
            *(F.sum(name).alias(name) for name in _OF_RUNS),
            F.percentile("messages_per_run", F.lit(0.5), F.col("runs")).alias("messages_per_run_p50"),
            F.max("messages_per_run_max").alias("messages_per_run_max"),
            F.percentile("bytes_per_run", F.lit(0.5), F.col("runs")).alias("bytes_per_run_p50"),
            F.max("bytes_per_run_max").alias("bytes_per_run_max"),
        )
    )


def run_size_classes(history: History) -> DataFrame:
    """Per group, how many runs had 1 message, 2 to 3, 4 to 7 and so on: `at_least` is the lower end of the class."""
    at_least = F.expr("shiftleft(1L, length(bin(greatest(count, 1))) - 1)").alias("at_least")
    return (
        history.runs.where(SENT)
        .groupBy("group", at_least)
        .agg(*(F.expr(_OF_RUNS[name]).alias(name) for name in ("runs", "messages")))
    )
