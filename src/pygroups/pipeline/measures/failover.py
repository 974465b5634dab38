"""The gap at a failover: how long nothing was delivered at each survivor of a fault."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pygroups.pipeline.measures.kinds import DELIVERED, LIFE, address, is_one_of
from pygroups.pipeline.measures.timeline import mark_records

RESOLUTION_US = 5_000
AFTER_US = 10_000_000
BEFORE_US = 250_000


def failover_gaps(records: DataFrame) -> DataFrame:
    """Per `fault` mark and member that it does not name: the longest time between two deliveries around the mark.

    Looked at is every gap that ends after the mark, begins at most 10 s after it and before the next mark. A mark may
    be written a moment after what it tells of, so a gap that ended up to a quarter of a second before it counts too.
    `gap_us` is by the member's monotonic clock; gaps under 5 ms are not looked for. A group that is idle has long gaps
    without any fault.
    """
    faults = mark_records(records.where("kind = 'fault'")).where(~F.array_contains("named", address()))
    mark = F.struct("mark_us", "reason", "named", F.col("mono_us").alias("at_us"))
    both = _delivery_gaps(records).unionByName(
        faults.select(*LIFE, "mono_us", mark.alias("mark")), allowMissingColumns=True
    )
    return (
        both.withColumn("earlier", _nearest_mark(descending=False))
        .withColumn("later", _nearest_mark(descending=True))
        .where("from_us is not null")
        .withColumn("candidate", F.explode(_marks_of_gap()))
        .where("candidate is not null")
        .groupBy(*LIFE, F.col("candidate.mark_us"), F.col("candidate.reason"), F.col("candidate.named"))
        .agg(F.max(F.col("mono_us") - F.col("from_us")).alias("gap_us"))
    )


def _delivery_gaps(records: DataFrame) -> DataFrame:
    """Pauses between deliveries: from `from_us` to `mono_us`. Deliveries are put into stretches first, so few are left.

    What lies within a stretch is shorter than the stretch; what spans two is measured exactly.
    """
    stretch = F.floor(F.col("mono_us") / RESOLUTION_US)
    in_order = Window.partitionBy(*LIFE).orderBy("stretch")
    return (
        records.where(is_one_of(DELIVERED))
        .groupBy(*LIFE, stretch.alias("stretch"))
        .agg(F.min("mono_us").alias("mono_us"), F.max("mono_us").alias("last_us"))
        .withColumn("from_us", F.lag("last_us").over(in_order))
        .where("from_us is not null")
        .drop("stretch", "last_us")
    )


def _nearest_mark(*, descending: bool) -> Column:
    """The last mark before a row, or, in descending order, the first after it; an unbounded following frame would
    look at every later row for each row."""
    order = F.desc("mono_us") if descending else F.asc("mono_us")
    return F.last("mark", ignorenulls=True).over(Window.partitionBy(*LIFE).orderBy(order))


def _marks_of_gap() -> Column:
    earlier = F.when(F.col("from_us") <= F.col("earlier.at_us") + AFTER_US, F.col("earlier"))
    later = F.when(F.col("mono_us") >= F.col("later.at_us") - BEFORE_US, F.col("later"))
    return F.array(earlier, later)
