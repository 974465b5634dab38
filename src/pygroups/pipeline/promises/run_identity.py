"""run-identity: a run has one count, size and checksum everywhere, in every resend and at every member."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import ALL, Rule, findings, sender_name, words
from pygroups.pipeline.old_tables import Tables
from pygroups.pipeline.runs import one_body


def judge(tables: Tables) -> DataFrame:
    """A fact is one message as one member sent or delivered it."""
    runs = tables.runs
    total = runs.groupBy("group", "history").agg(F.sum("said").alias("said"))
    lives = tables.journals.select("life", "address")
    low = lives.select(F.col("life").alias("low_life"), F.col("address").alias("low"))
    high = lives.select(F.col("life").alias("high_life"), F.col("address").alias("high"))
    odd = (
        runs.where(~one_body()).join(F.broadcast(low), "low_life", "left").join(F.broadcast(high), "high_life", "left")
    )
    broken = findings(
        odd,
        broken=F.lit(True),
        member=F.col("low"),
        other=F.col("high"),
        origin=sender_name(),
        first=F.col("first"),
        detail=words("one run with two contents: ", _between("count"), _between("bytes"), _between("checksum")),
    )
    return findings(total, judged=F.col("said")).unionAll(broken)


def _between(name: str) -> Column:
    low, high = F.col(f"low_{name}"), F.col(f"high_{name}")
    return F.when(low != high, words(f"{name} ", low, " and ", high, "; ")).otherwise("")


RULE = Rule("run-identity", ALL, "messages", "nothing was sent or delivered", judge)
