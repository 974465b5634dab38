"""Run sizes: how many messages and bytes travelled as one."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.measures.kinds import SENT, is_one_of
from pygroups.pipeline.measures.percentiles import rounded


def run_sizes(records: DataFrame) -> DataFrame:
    """Per group and sender: `runs`, `messages`, `bytes`, and per run the median and largest of messages and bytes."""
    return (
        records.where(is_one_of(SENT))
        .groupBy("group", F.col("origin").alias("sender"))
        .agg(
            F.count("*").alias("runs"),
            F.sum(F.col("count").cast("long")).alias("messages"),
            F.sum("bytes").alias("bytes"),
            F.percentile(rounded(F.col("count").cast("long")), F.lit(0.5)).alias("messages_per_run_p50"),
            F.max("count").alias("messages_per_run_max"),
            F.percentile(rounded(F.col("bytes")), F.lit(0.5)).alias("bytes_per_run_p50"),
            F.max("bytes").alias("bytes_per_run_max"),
        )
    )


def run_size_classes(records: DataFrame) -> DataFrame:
    """Per group, how many runs had 1 message, 2 to 3, 4 to 7 and so on: `at_least` is the lower end of the class."""
    exponent = F.floor(F.log2(F.greatest(F.col("count"), F.lit(1)).cast("double")) + 1e-9)
    return (
        records.where(is_one_of(SENT))
        .groupBy("group", F.pow(F.lit(2.0), exponent).cast("long").alias("at_least"))
        .agg(F.count("*").alias("runs"), F.sum(F.col("count").cast("long")).alias("messages"))
    )
