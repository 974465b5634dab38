"""The order of deliveries in a view, compared between all its members, the dead included.

One pass makes digests of blocks, which are compared at equal length: a block is cut wherever some member's deliveries
in the view end, so a crashed member's last block has a counterpart of the same length at every other. Only where
digests differ the deliveries themselves are compared, member by member.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import ORDERED

if TYPE_CHECKING:
    from pygroups.pipeline.old_tables import Tables

BLOCK: Final = 4096  # messages; a run belongs to the block of its first position
_DIGEST: Final = ("runs", "bits", "low_sum", "high_sum")


def blocks_of(deliveries: DataFrame) -> DataFrame:
    """One row per (view, block, slot): how many members have it, how many messages in all, whether they differ.

    `since` is the first position in it; `messages` counts messages at members. What was delivered without a position is
    in a block without a number.
    """
    ordered = deliveries.where(F.col("profile").isin(*sorted(ORDERED)) & F.col("view").isNotNull())
    cut = _cut(ordered, _ends(ordered))
    mine = cut.groupBy("group", "history", "view", "block", "slot", "life").agg(
        *digest_of(F.xxhash64("position", "run")), F.sum("count").alias("messages"), F.min("position").alias("since")
    )
    return mine.groupBy("group", "history", "view", "block", "slot").agg(
        F.count(F.lit(1)).alias("members"),
        F.sum("messages").alias("messages"),
        F.min("since").alias("since"),
        differs().alias("differs"),
    )


def digest_of(value: Column) -> list[Column]:
    """An order-free digest of many 64-bit values: count, xor, and the sums of two 31-bit halves.

    An xor alone cannot see a pair, a sum alone not what cancels out.
    """
    return [
        F.count(value).alias("runs"),
        F.bit_xor(value).alias("bits"),
        F.sum(value.bitwiseAND(0x7FFFFFFF)).alias("low_sum"),
        F.sum(F.shiftrightunsigned(value, 33)).alias("high_sum"),
    ]


def differs() -> Column:
    """Whether digests in a group are not all equal."""
    unequal = F.lit(False)
    for name in _DIGEST:
        unequal = unequal | (F.min(name) != F.max(name))
    return unequal


def _ends(ordered: DataFrame) -> DataFrame:
    """Per block that some member's deliveries end in: the positions of those ends."""
    last = ordered.groupBy("view", "life").agg(F.max(F.col("position") + F.col("count")).alias("stop"))
    inside = last.select("view", F.expr(f"stop div {BLOCK}").alias("block"), "stop")
    return inside.groupBy("view", "block").agg(F.array_sort(F.collect_set("stop")).alias("ends"))


def _cut(ordered: DataFrame, ends: DataFrame) -> DataFrame:
    placed = ordered.withColumn("block", F.expr(f"position div {BLOCK}"))
    slots = F.expr("if(ends is null, 0, size(filter(ends, stop -> stop <= position)))")
    return placed.join(F.broadcast(ends), ["view", "block"], "left").withColumn("slot", slots)


def unplaced(deliveries: DataFrame) -> DataFrame:
    """What was delivered in a view without a position, though the profile orders messages."""
    return deliveries.where(F.col("profile").isin(*sorted(ORDERED)) & F.expr("view is not null and position is null"))


def compared(tables: "Tables") -> DataFrame:
    """The exact step: every run from the first block that differs, at every member, against every other member.
    Left out is, in a view, who delivered anything there without a position.

    One row per (view, member, other, run that the member delivered), with `position` at the member and `theirs` at the
    other (null if the other has not delivered it in this view), `known` (the last position at the member of anything
    that both delivered) and `passed` (the greatest position at the other of anything the member delivered before).
    """
    suspects = tables.blocks.where("differs").groupBy("view").agg(F.min("since").alias("since"))
    rows = tables.deliveries.join(F.broadcast(suspects), "view").where("position >= since")
    if "places" in tables.suspicious:
        rows = rows.join(unplaced(tables.deliveries).select("view", "life").distinct(), ["view", "life"], "left_anti")
    rows = rows.groupBy("group", "history", "view", "life", "address", "run").agg(
        F.min("position").alias("position"),
        *(F.min(name).alias(name) for name in ("view_number", "view_creator", "origin", "origin_incarnation", "first")),
    )
    members = rows.select("view", F.col("life").alias("other_life"), F.col("address").alias("other")).distinct()
    theirs = rows.select("view", "run", F.col("life").alias("other_life"), F.col("position").alias("theirs"))
    pairs = rows.join(members, "view").where("life <> other_life")
    pairs = pairs.join(theirs, ["view", "run", "other_life"], "left")
    both = Window.partitionBy("view", "life", "other_life")
    before = both.orderBy("position").rowsBetween(Window.unboundedPreceding, -1)
    return pairs.withColumns(
        {
            "known": F.max(F.when(F.col("theirs").isNotNull(), F.col("position"))).over(both),
            "passed": F.max("theirs").over(before),
        }
    )
