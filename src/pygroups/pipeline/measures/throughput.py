"""Throughput: how much a group sent and each of its members delivered, over time."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.measures.kinds import DELIVERED, LIFE, SENT, amount, how_many, is_one_of, stretch

SECOND_US = 1_000_000


def throughput(records: DataFrame, bucket_us: int | Column = SECOND_US) -> DataFrame:
    """Per group, member, life and stretch of `bucket_us`: `runs`, `messages`, `bytes`, sent and delivered.

    `bucket` is the first microsecond of its stretch, by the wall clock. Stretches without traffic have no row.
    """
    return (
        records.where(is_one_of((*SENT, *DELIVERED)))
        .groupBy(*LIFE, stretch(bucket_us))
        .agg(
            *_amounts(SENT, "sent"),
            *_amounts(DELIVERED, "delivered"),
        )
    )


def _amounts(kinds: tuple[str, ...], name: str) -> tuple[Column, ...]:
    return (
        how_many(kinds).alias(f"{name}_runs"),
        amount(kinds, "count").alias(f"{name}_messages"),
        amount(kinds, "bytes").alias(f"{name}_bytes"),
    )


def throughput_of_group(per_member: DataFrame) -> DataFrame:
    """The same per group: what all members sent and delivered, and the number of lives that had traffic."""
    amounts = [
        F.sum(name).alias(name) for name in per_member.columns if name.endswith(("_runs", "_messages", "_bytes"))
    ]
    return per_member.groupBy("group", "bucket").agg(*amounts, F.count("*").alias("members"))
