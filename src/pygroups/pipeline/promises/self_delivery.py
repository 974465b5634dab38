"""self-delivery: a sender that reaches quiet has delivered each own message, or, after a merge, heard a gap over it."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import VIRTUAL_SYNCHRONY, Rule, findings, view_name, words
from pygroups.pipeline.old_tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one message at its sender. Gaps over own numbers are for merged views only."""
    quiet = tables.journals.where("quiet_end is not null").select("life", "quiet_end")
    heard = _own_numbers(tables).join(F.broadcast(quiet), "life").where("index < quiet_end")
    heard = heard.groupBy("life").agg(F.max("last").alias("heard"))
    sent = tables.messages.join(F.broadcast(quiet), "life").where("index < quiet_end")
    sent = sent.groupBy("group", "history", "life", "address").agg(
        F.sum("count").alias("messages"), F.max(F.col("first") + F.col("count") - 1).alias("sent")
    )
    undelivered = findings(
        sent.join(heard, "life", "left").withColumn("heard", F.coalesce("heard", F.lit(0))),
        judged=F.col("messages"),
        broken=F.col("heard") < F.col("sent"),
        member=F.col("address"),
        origin=F.col("address"),
        first=F.col("heard") + 1,
        detail=words("sent up to message ", F.col("sent"), ", heard of own messages up to ", F.col("heard")),
    )
    return undelivered.unionAll(_gaps_out_of_place(tables))


def _own_numbers(tables: Tables) -> DataFrame:
    last = (F.col("first") + F.col("count") - 1).alias("last")
    gaps = tables.events.where("kind = 'gap' and sender = life").select("life", "index", last)
    return tables.deliveries.where("sender = life").select("life", "index", last).unionAll(gaps)


def _gaps_out_of_place(tables: Tables) -> DataFrame:
    merged = tables.views.where("subgroups is not null and size(subgroups) > 0").select("life", "view")
    gaps = tables.events.where("kind = 'gap' and sender = life")
    return findings(
        gaps.join(F.broadcast(merged), ["life", "view"], "left_anti"),
        broken=F.lit(True),
        view=view_name(),
        member=F.col("address"),
        origin=F.col("address"),
        first=F.col("first"),
        detail=words("heard a gap over its own messages in a view that is no merge"),
    )


RULE = Rule("self-delivery", VIRTUAL_SYNCHRONY, "messages", "no sender reached quiet", judge)
