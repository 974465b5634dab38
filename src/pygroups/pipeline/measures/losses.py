"""What was lost on the way and what that cost: discards by reason, requests for missing runs, and repeats."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.measures.kinds import SENT, amount, how_many, is_one_of

ASKED = ("retransmit_request",)
REPEATED = ("retransmit",)


def drops(records: DataFrame) -> DataFrame:
    """Per group, member, kind and reason: how often something that came was dropped, or a newcomer refused."""
    return (
        records.where(is_one_of(("drop", "refuse")))
        .groupBy("group", "member", "kind", F.coalesce("reason", F.lit("no reason given")).alias("reason"))
        .agg(F.count("*").alias("times"))
    )


def retransmissions(records: DataFrame) -> DataFrame:
    """Per group and member: how often it asked for missing runs and for how many, and what it sent again for others.

    `repeated_share` is the repeated runs of a member over the runs that it sent first (null where it sent none).
    """
    missing = F.greatest(F.coalesce(F.col("high") - F.col("low"), F.lit(1)), F.lit(0))
    return (
        records.where(is_one_of((*ASKED, *REPEATED, *SENT)))
        .withColumn("missing", missing)
        .groupBy("group", "member")
        .agg(
            how_many(ASKED).alias("requests"),
            amount(ASKED, "missing").alias("runs_asked_for"),
            how_many(REPEATED).alias("repeats"),
            F.coalesce(amount(REPEATED, "bytes"), F.lit(0)).alias("repeated_bytes"),
            how_many(SENT).alias("runs_sent"),
        )
        .withColumn("repeated_share", F.when(F.col("runs_sent") > 0, F.col("repeats") / F.col("runs_sent")))
    )
