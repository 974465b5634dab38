"""Delivery latency: from the record in which the origin sent a run to the record in which a member delivered it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.measures.kinds import DELIVERED, SENT, is_one_of, stretch
from pygroups.pipeline.measures.percentiles import rounded, weighted_percentile

RUN = ("group", "origin", "origin_incarnation", "first", "receiver")
MINUTE_US = 60_000_000


def latencies(records: DataFrame) -> DataFrame:
    """One row per run and member that delivered it: `messages`, `time_us` of the delivery, `latency_us`.

    On one host the monotonic clock is used, which neither jumps nor differs between processes (`one_clock` is true);
    between hosts the wall clocks are all there is, and their difference is part of the number, which may be negative.
    """
    delivered = records.where(is_one_of(DELIVERED)).select(
        *RUN[:-1],
        _receiver(),
        "member",
        "incarnation",
        "host",
        "time_us",
        "mono_us",
        F.col("count").cast("long").alias("messages"),
    )
    one_clock = F.col("host") == F.col("sent.host")
    by_mono = F.col("mono_us") - F.col("sent.mono_us")
    by_wall = F.col("time_us") - F.col("sent.time_us")
    return delivered.join(_first_send_of_each_run(records), list(RUN)).select(
        *RUN,
        "member",
        "incarnation",
        "host",
        F.col("sent.host").alias("origin_host"),
        "time_us",
        "messages",
        one_clock.alias("one_clock"),
        F.when(one_clock, by_mono).otherwise(by_wall).alias("latency_us"),
    )


def _first_send_of_each_run(records: DataFrame) -> DataFrame:
    """A run is sent once; a journal that says otherwise breaks a promise, but must not count its messages twice."""
    moment = F.struct("time_us", "mono_us", "host")
    return records.where(is_one_of(SENT)).groupBy(*RUN[:-1], _receiver()).agg(F.min(moment).alias("sent"))


def _receiver() -> Column:
    """A message to one member and one to all may carry the same number; empty for those to all."""
    return F.coalesce("peer", F.lit("")).alias("receiver")


def latency_counts(latency_rows: DataFrame, bucket_us: int | Column = MINUTE_US) -> DataFrame:
    """How many messages took how long, per group, sender, member and stretch of `bucket_us`: what percentiles need.

    `latency_us` is rounded to three significant digits, so the table stays small whatever the number of messages;
    `bucket` is the first microsecond of its stretch.
    """
    keys = ("group", F.col("origin").alias("sender"), "member", stretch(bucket_us))
    return latency_rows.groupBy(*keys, rounded(F.col("latency_us")).alias("latency_us")).agg(
        F.sum("messages").alias("messages")
    )


def latency_percentiles(counts: DataFrame, *by: tuple[str, ...]) -> DataFrame:
    """`messages`, `p50_us`, `p90_us`, `p99_us` and `max_us` of `latency_counts`, per each of these sets of keys.

    The rows of all sets are in one table; a key that is not of a row's set is null.
    """
    value, weight = F.col("latency_us"), F.col("messages")
    keys = dict.fromkeys(key for one in by for key in one)
    return counts.groupingSets(by, *keys).agg(
        F.sum(weight).alias("messages"),
        weighted_percentile(value, 0.5, weight).alias("p50_us"),
        weighted_percentile(value, 0.9, weight).alias("p90_us"),
        weighted_percentile(value, 0.99, weight).alias("p99_us"),
        F.max(value).alias("max_us"),
    )


def delivery_latency(records: DataFrame) -> DataFrame:
    """The table kept of an audit: percentiles per group, sender and minute (`bucket`), weighted by messages."""
    return latency_percentiles(latency_counts(latencies(records)), ("group", "sender", "bucket"))


def clock_difference(latency_rows: DataFrame) -> DataFrame:
    """Per group and pair of hosts, how far the second wall clock is ahead of the first, and the shortest way between.

    The fastest message each way is taken to have been under way equally long, so `ahead_us` is half the difference of
    the two; it is off by at most half of `round_trip_us`. A pair that only sent one way cannot be judged and is absent.
    """
    fastest = (
        latency_rows.where("not one_clock")
        .groupBy("group", "origin_host", "host")
        .agg(F.min("latency_us").alias("fastest_us"))
    )
    there = fastest.where("origin_host < host").alias("there")
    back = fastest.alias("back")
    same_pair = (
        (F.col("there.group") == F.col("back.group"))
        & (F.col("there.origin_host") == F.col("back.host"))
        & (F.col("there.host") == F.col("back.origin_host"))
    )
    difference = F.col("there.fastest_us") - F.col("back.fastest_us")
    return there.join(back, same_pair).select(
        F.col("there.group").alias("group"),
        F.col("there.origin_host").alias("host"),
        F.col("there.host").alias("other_host"),
        (difference / 2).alias("ahead_us"),
        (F.col("there.fastest_us") + F.col("back.fastest_us")).alias("round_trip_us"),
    )
