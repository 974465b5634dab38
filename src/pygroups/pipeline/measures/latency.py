"""Delivery latency: from the record in which the origin sent a run to the record in which a member delivered it."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.history import History
from pygroups.pipeline.measures.kinds import DELIVERED, SENT, stretch
from pygroups.pipeline.measures.percentiles import rounded, weighted_percentiles

MINUTE_US: Final = 60_000_000
TO_ALL: Final = 0  # in place of the key of a unicast's receiver
_RUN: Final = "xxhash64(sender, first, peer) as run"
"""A run, among all that were sent: a message to one member and one to all may carry the same number."""


def latencies(history: History, *, one_host: bool = False) -> DataFrame:
    """One row per run and member that delivered it: `messages`, `time_us` of the delivery, `latency_us`.

    `sender` and `life` (of the member that delivered) are keys of incarnations; `receiver` is the key of a unicast's
    only receiver, and 0 for a multicast.  On one host the monotonic clock is used, which neither jumps nor differs
    between processes (`one_clock` is true).  Between hosts only wall clocks can be compared; their difference is part
    of the latency, which may be negative.  With `one_host` all incarnations are on one host, and no clock is looked up.
    """
    delivered = history.runs.where(DELIVERED).selectExpr(
        *("group", "sender", "first", f"coalesce(peer, {TO_ALL}L) as receiver", "life", "time_us", "mono_us"),
        *("cast(count as bigint) as messages", _RUN),
    )
    sent = history.runs.where(SENT).selectExpr(_RUN, "time_us", "mono_us").groupBy("run")
    # A run is sent once; a journal with another record breaks a promise, but must not count its messages twice.
    if one_host:
        joined = delivered.join(sent.agg(_least("mono_us", "sent_us")), "run")
        clock, latency_us = "true", "mono_us - sent_us"
    else:
        hosts = history.writers.select("life", "host")
        joined = delivered.join(sent.agg(F.expr("min(struct(time_us, mono_us))").alias("sent")), "run")
        joined = joined.join(hosts, "life").join(hosts.toDF("sender", "origin_host"), "sender")
        clock = "host <=> origin_host"
        latency_us = f"if({clock}, mono_us - sent.mono_us, time_us - sent.time_us)"
    rows = ("group", "sender", "first", "receiver", "life", "time_us", "messages")
    return joined.selectExpr(*rows, f"{clock} as one_clock", f"{latency_us} as latency_us")


def latency_counts(latency_rows: DataFrame, bucket_us: int | Column = MINUTE_US) -> DataFrame:
    """The number of messages per latency, group, sender and stretch of `bucket_us`, for percentiles.

    `latency_us` is rounded to three significant digits, so the table stays small with any number of messages;
    `sender` is a key; `bucket` is the first microsecond of its stretch.
    """
    keys = ("group", "sender", stretch(bucket_us).alias("bucket"), rounded("latency_us").alias("latency_us"))
    return latency_rows.groupBy(*keys).agg(F.sum("messages").alias("messages"))


def latency_percentiles(counts: DataFrame, *by: tuple[str, ...]) -> DataFrame:
    """`messages`, `p50_us`, `p90_us`, `p99_us` and `max_us` of `latency_counts`, per each of these sets of keys.

    The rows of all sets are in one table; a key that is not of a row's set is null.
    """
    keys = dict.fromkeys(key for one in by for key in one)
    sets = counts.groupBy(*keys) if len(by) == 1 else counts.groupingSets(by, *keys)
    found = sets.agg(
        F.sum("messages").alias("messages"),
        weighted_percentiles("latency_us", (0.5, 0.9, 0.99), "messages").alias("found"),
        F.max("latency_us").alias("max_us"),
    )
    columns = ("found[0] as p50_us", "found[1] as p90_us", "found[2] as p99_us", "max_us")
    return found.selectExpr(*keys, "messages", *columns)


def with_senders(counts: DataFrame, history: History) -> DataFrame:
    """`latency_counts` with the sender's name in place of its key: the incarnations of one name count together."""
    names = history.writers.selectExpr("life as sender", "member")
    return counts.join(names, "sender").selectExpr("group", "member as sender", "bucket", "latency_us", "messages")


def delivery_latency(history: History) -> DataFrame:
    """The table kept of an audit: percentiles per group, sender and minute (`bucket`), weighted by messages."""
    counts = with_senders(latency_counts(latencies(history)), history)
    return latency_percentiles(counts, ("group", "sender", "bucket"))


def clock_difference(latency_rows: DataFrame, history: History) -> DataFrame:
    """Per group and pair of hosts, how far the second wall clock is ahead of the first, and the shortest way between.

    The fastest messages of both directions are assumed to take equally long, so `ahead_us` is half of the difference of
    their latencies.  The error of `ahead_us` is at most half of `round_trip_us`.  A pair with messages in one direction
    only cannot be judged and is absent.
    """
    between_lives = latency_rows.where("not one_clock").groupBy("group", "sender", "life").agg(_least("latency_us"))
    hosts = history.writers.select("life", "host")
    ways = between_lives.join(hosts, "life").join(hosts.toDF("sender", "origin_host"), "sender")
    pairs = ways.selectExpr(
        "group",
        "least(host, origin_host) as host",
        "greatest(host, origin_host) as other_host",
        "if(origin_host < host, latency_us, null) as there_us",
        "if(origin_host < host, null, latency_us) as back_us",
    )
    fastest = pairs.groupBy("group", "host", "other_host").agg(_least("there_us"), _least("back_us"))
    return fastest.where("there_us is not null and back_us is not null").selectExpr(
        *("group", "host", "other_host"),
        "(there_us - back_us) / 2 as ahead_us",
        "there_us + back_us as round_trip_us",
    )


def _least(column: str, name: str | None = None) -> Column:
    return F.min(column).alias(name or column)
