"""unicast-once: a unicast message is delivered at most once."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import ALL, Count, PromiseRule, findings, words
from pygroups.pipeline.tables import Tables


def delivered(tables: Tables) -> DataFrame:
    """One row per run delivered at a member: how many times, and how many messages that makes."""
    came = tables.unicasts.where("kind = 3").groupBy("group", "profile", "history", "life", "sender", "first")
    return came.agg(F.count("first").alias("times"), F.sum("count").alias("messages"))


def exact(tables: Tables) -> DataFrame:
    """A fact is one unicast message delivered."""
    return findings(
        delivered(tables).where("times > 1"),
        words("delivered ", F.col("times"), " times"),
        member="life",
        origin="sender",
        first="first",
    )


RULE = PromiseRule(
    "unicast-once",
    ALL,
    "unicasts",
    "no unicast was delivered",
    counts=(Count(delivered, judged="messages", suspect="times > 1"),),
    exact=exact,
    needs=frozenset({"unicast_deliver"}),
)
