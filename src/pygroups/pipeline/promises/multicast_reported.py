"""multicast-reported: what a leaving sender had accepted and not delivered is listed to it."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import VIRTUAL_SYNCHRONY, Rule, findings, view_name, words
from pygroups.pipeline.old_tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one message of a sender whose journal has a `stop`."""
    stopped = tables.journals.where("stop_index is not null").select("life")
    sent = tables.messages.join(F.broadcast(stopped), "life", "left_semi")
    told = tables.deliveries.where("sender = life").select("life", "first")
    listed = tables.events.where("kind = 'undelivered' and peer is null").select("life", "first")
    total = sent.groupBy("group", "history").agg(F.sum("count").alias("messages"))
    untold = sent.join(told.unionAll(listed).distinct(), ["life", "first"], "left_anti")
    gaps = tables.events.where("kind = 'gap' and sender = life").select(
        "life", F.col("first").alias("low"), (F.col("first") + F.col("count")).alias("high")
    )
    inside = (untold["life"] == gaps["life"]) & (untold["first"] >= gaps["low"]) & (untold["first"] < gaps["high"])
    lost = untold.join(F.broadcast(gaps), inside, "left_anti")
    return findings(total, judged=F.col("messages")).unionAll(
        findings(
            lost,
            broken=F.lit(True),
            view=view_name(),
            member=F.col("address"),
            origin=F.col("address"),
            first=F.col("first"),
            detail=words("accepted, not delivered here, and not listed when the sender stopped"),
        )
    )


RULE = Rule("multicast-reported", VIRTUAL_SYNCHRONY, "messages", "no sender left", judge, frozenset({"stop"}))
