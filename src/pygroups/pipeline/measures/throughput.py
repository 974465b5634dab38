"""Throughput: how much a group sent and each of its members delivered, over time."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.history import History
from pygroups.pipeline.measures.kinds import amounts, by_member, stretch

SECOND_US = 1_000_000


def traffic(history: History, bucket_us: int | Column = SECOND_US) -> DataFrame:
    """Per incarnation (its key) and stretch of `bucket_us`: `runs`, `messages`, `bytes`, sent and delivered.

    `bucket` is the first microsecond of its stretch, by the wall clock. Stretches without traffic have no row.
    """
    return amounts(history, bucket=stretch(bucket_us))


def throughput(history: History, bucket_us: int | Column = SECOND_US) -> DataFrame:
    """The traffic with group, member and incarnation in place of the key."""
    return by_member(traffic(history, bucket_us), history)


def throughput_of_group(per_member: DataFrame) -> DataFrame:
    """The traffic per group: the sends and deliveries of all members, and the number of incarnations that had
    traffic."""
    sums = [F.sum(name).alias(name) for name in per_member.columns if name.endswith(("_runs", "_messages", "_bytes"))]
    return per_member.groupBy("group", "bucket").agg(*sums, F.count("*").alias("members"))
