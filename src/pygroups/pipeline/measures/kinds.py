"""What the measures read, in words of Spark SQL: multicasts and unicasts are counted alike."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.history import History
from pygroups.pipeline.ingest.layout import DELIVER, SEND, UNICAST_DELIVER, UNICAST_SEND

LIFE: Final = ("group", "member", "incarnation")
SENT: Final = f"kind in ({SEND}, {UNICAST_SEND})"
DELIVERED: Final = f"kind in ({DELIVER}, {UNICAST_DELIVER})"
"""Conditions on rows of `runs`."""


def amounts(condition: str, name: str, columns: tuple[str, ...] = ("runs", "messages", "bytes")) -> list[Column]:
    """How many runs, messages and bytes the rows of `runs` that meet a condition have: `sent_runs` and so on."""
    what = {"runs": "1", "messages": "count", "bytes": "bytes"}
    return [F.expr(f"sum(if({condition}, cast({what[one]} as bigint), 0L))").alias(f"{name}_{one}") for one in columns]


def stretch(bucket_us: int | Column) -> Column:
    """The first microsecond of the stretch of `bucket_us` that a record's wall clock falls into."""
    length = F.lit(bucket_us) if isinstance(bucket_us, int) else bucket_us
    return (F.col("time_us") - F.pmod("time_us", length)).alias("bucket")


def writers(history: History) -> DataFrame:
    """One row per life that wrote a record: `life` is its key.

    Further columns: group, member, incarnation, address, profile, host, `from_us`, `to_us` and `to_mono_us` (the times
    of its first and last record) and `kinds` (those of its records, sorted).
    """
    return (
        history.manifest.where("rows > 0")
        .groupBy("life")
        .agg(
            *(F.first(name).alias(name) for name in (*LIFE, "address")),
            *(F.first(name, ignorenulls=True).alias(name) for name in ("profile", "host")),
            F.min("first_us").alias("from_us"),
            F.max("last_us").alias("to_us"),
            F.max("last_mono_us").alias("to_mono_us"),
            F.expr("array_sort(array_distinct(flatten(collect_list(kinds))))").alias("kinds"),
        )
    )


def by_member(frame: DataFrame, history: History, *columns: str) -> DataFrame:
    """Rows with the key `life`, joined with the names of the member that wrote them: group, member, incarnation.

    `columns` of `writers` are joined too.
    """
    return frame.drop("group").join(writers(history).select("life", *LIFE, *columns), "life")
