"""integrity: what is delivered was sent by its origin, with the same body."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import ALL, Rule, findings, sender_name, words
from pygroups.pipeline.tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one message at one member. Without the origin's journal, or behind its end, it cannot be judged."""
    origins = tables.journals.select(F.col("life").alias("sender"), "whole", F.col("address").alias("written_by"))
    runs = tables.runs.where("deliveries > 0").join(F.broadcast(origins), "sender", "left")
    unsent = F.col("sends") == 0
    unknown = unsent & ~F.coalesce("whole", F.lit(False))
    other_body = F.expr("low_count <> high_count or low_bytes <> high_bytes or low_checksum <> high_checksum")
    reason = F.when(F.col("whole").isNull(), "the journal of the origin is missing")
    lives = tables.journals.select(F.col("life").alias("high_life"), F.col("address").alias("deliverer"))
    return findings(
        runs.join(F.broadcast(lives), "high_life", "left"),
        judged=F.when(unknown, 0).otherwise(F.col("delivered")),
        skipped=F.when(unknown, F.col("delivered")),
        reason=reason.otherwise("the journal of the origin ends early"),
        broken=~unknown & (unsent | other_body),
        member=F.col("deliverer"),
        origin=sender_name(),
        first=F.col("first"),
        detail=F.when(unsent, words("delivered, but ", sender_name(), " never sent it")).otherwise(
            words("delivered with another body than ", sender_name(), " sent")
        ),
    )


RULE = Rule("integrity", ALL, "messages", "nothing was delivered", judge)
