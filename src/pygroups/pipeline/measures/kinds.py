"""The rows that the measures read, as Spark SQL: multicasts and unicasts are counted alike."""

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


def amounts(history: History, **by: Column) -> DataFrame:
    """Per incarnation (its key) and the columns `by`: runs, messages and bytes, sent and delivered: `sent_runs` and so
    on.

    Sends and deliveries of an incarnation are added up apart and joined afterwards, so Spark reads each row once.
    """
    rows = history.runs.where(f"{SENT} or {DELIVERED}").groupBy(
        "life", *(key.alias(name) for name, key in by.items()), F.expr(SENT).alias("sent")
    )
    sums = {"runs": "count(*)", "messages": "sum(count)", "bytes": "sum(bytes)"}
    one_way = rows.agg(*(F.expr(text).alias(what) for what, text in sums.items()))
    both = [
        F.expr(f"sum(if({condition}, {what}, 0L))").alias(f"{way}_{what}")
        for way, condition in (("sent", "sent"), ("delivered", "not sent"))
        for what in sums
    ]
    return one_way.groupBy("life", *by).agg(*both)


def stretch(bucket_us: int | Column) -> Column:
    """The first microsecond of the stretch of `bucket_us` that contains the wall-clock time of a record."""
    length = F.lit(bucket_us) if isinstance(bucket_us, int) else bucket_us
    return F.col("time_us") - F.pmod("time_us", length)


def by_member(frame: DataFrame, history: History, *columns: str) -> DataFrame:
    """Rows with the key `life`, joined with the names of the member that wrote them: group, member, incarnation.

    The result also has the `columns` of `writers`.
    """
    return frame.drop("group").join(history.writers.select("life", *LIFE, *columns), "life")
