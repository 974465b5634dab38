"""unicast-reported: every unicast sent is delivered or reported to its sender."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import ALL, Rule, findings, words
from pygroups.pipeline.old_tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one unicast message whose sender reached quiet or stopped; it needs the receiver's journal."""
    done = tables.journals.where("quiet_end is not null or stop_index is not null").select(
        "life", F.coalesce("quiet_end", "end").alias("until")
    )
    sent = tables.connections.where("kind = 'unicast_send'").join(F.broadcast(done), "life").where("index < until")
    came = tables.connections.where("kind = 'unicast_deliver' and life = receiver").select(
        "sender", "receiver", "first"
    )
    told = tables.events.where("kind = 'undelivered'").select("life", "peer", "first").distinct()
    receivers = tables.journals.select(F.col("life").alias("receiver"), "whole")
    open_ones = sent.join(came.distinct(), ["sender", "receiver", "first"], "left_anti")
    open_ones = open_ones.join(told, ["life", "peer", "first"], "left_anti")
    open_ones = open_ones.join(F.broadcast(receivers), "receiver", "left")
    known = F.coalesce("whole", F.lit(False))
    total = sent.groupBy("group", "history").agg(F.sum("count").alias("messages"))
    lost = findings(
        open_ones,
        judged=F.when(~known, -F.col("count")),  # counted among all sent, and not judged after all
        skipped=F.when(~known, F.col("count")),
        reason=F.when(F.col("whole").isNull(), "the journal of the receiver is missing").otherwise(
            "the journal of the receiver ends early"
        ),
        broken=known,
        member=F.col("address"),
        other=F.col("peer"),
        origin=F.col("address"),
        first=F.col("first"),
        detail=words("neither delivered by ", F.col("peer"), " nor reported to its sender"),
    )
    return findings(total, judged=F.col("messages")).unionAll(lost)


RULE = Rule(
    "unicast-reported",
    ALL,
    "unicasts",
    "no unicast was sent by one that stopped or reached quiet",
    judge,
    frozenset({"unicast_send"}),
)
