"""unicast-fifo: a connection delivers a prefix of what was sent on it, in order, to one receiver; connections rise."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import ALL, Rule, findings, sender_name, words
from pygroups.pipeline.old_tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one unicast message delivered. Beyond what a journal that ends early shows, it cannot be judged."""
    sent = Window.partitionBy("life", "connection").orderBy("index")
    sends = tables.connections.where("kind = 'unicast_send'").select(
        F.col("life").alias("sender"),
        "connection",
        F.row_number().over(sent).alias("place"),
        F.col("first").alias("sent_first"),
        F.first("receiver").over(sent).alias("only_receiver"),
    )
    got = Window.partitionBy("life", "sender", "connection").orderBy("index")
    met = Window.partitionBy("life", "sender").orderBy("index")
    delivered = tables.connections.where("kind = 'unicast_deliver'").withColumns(
        {"place": F.row_number().over(got), "connection_before": F.lag("connection").over(met)}
    )
    origins = tables.journals.select(F.col("life").alias("sender"), "whole")
    rows = delivered.join(sends, ["sender", "connection", "place"], "left").join(F.broadcast(origins), "sender", "left")
    unknown = F.col("sent_first").isNull() & ~F.coalesce("whole", F.lit(False))
    wrong = _wrong()
    return findings(
        rows,
        judged=F.when(unknown & wrong.isNull(), 0).otherwise(F.col("count")),
        skipped=F.when(unknown & wrong.isNull(), F.col("count")),
        reason=F.when(F.col("whole").isNull(), "the journal of the origin is missing").otherwise(
            "the journal of the origin ends early"
        ),
        broken=wrong.isNotNull(),
        member=F.col("address"),
        origin=sender_name(),
        first=F.col("first"),
        detail=wrong,
    )


def _wrong() -> Column:
    """What is wrong with a delivery, in words; null if nothing is known to be."""
    other = (F.col("life") != F.col("receiver")) | (F.col("life") != F.col("only_receiver"))
    return (
        F.when(other, words("connection ", F.col("connection"), " has another receiver"))
        .when(
            F.col("connection") < F.col("connection_before"),
            words("came on connection ", F.col("connection"), " after ", F.col("connection_before")),
        )
        .when(
            F.col("sent_first") != F.col("first"),
            words("came where message ", F.col("sent_first"), " was next on the connection"),
        )
        .when(
            F.col("sent_first").isNull() & F.coalesce("whole", F.lit(False)),
            words("more messages came than were sent on connection ", F.col("connection")),
        )
    )


RULE = Rule("unicast-fifo", ALL, "unicasts", "no unicast was delivered", judge, frozenset({"unicast_deliver"}))
