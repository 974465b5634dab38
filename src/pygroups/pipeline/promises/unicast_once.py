"""unicast-once: a unicast message is delivered at most once."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import ALL, Rule, findings, words
from pygroups.pipeline.old_tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one unicast message delivered."""
    delivered = tables.connections.where("kind = 'unicast_deliver'")
    times = delivered.groupBy("group", "history", "address", "sender", "origin", "origin_incarnation", "first").agg(
        F.count(F.lit(1)).alias("times"), F.sum("count").alias("messages")
    )
    return findings(
        times,
        judged=F.col("messages"),
        broken=F.col("times") > 1,
        member=F.col("address"),
        origin=F.concat("origin", F.lit("@"), "origin_incarnation"),
        first=F.col("first"),
        detail=words("delivered ", F.col("times"), " times"),
    )


RULE = Rule("unicast-once", ALL, "unicasts", "no unicast was delivered", judge, frozenset({"unicast_deliver"}))
