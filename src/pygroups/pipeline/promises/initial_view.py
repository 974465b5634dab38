"""initial-view: nobody sends or delivers a multicast before the first view."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import GROUPS, Rule, findings, sender_name, words
from pygroups.pipeline.old_tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one message that a member sent or delivered."""
    columns = ["group", "history", "life", "address", "index", "view", "origin", "origin_incarnation", "first", "count"]
    rows = tables.messages.select(columns).unionAll(tables.deliveries.select(columns))
    first_views = tables.journals.select("life", "first_view")
    early = F.col("view").isNull() | F.col("first_view").isNull() | (F.col("index") < F.col("first_view"))
    return findings(
        rows.join(F.broadcast(first_views), "life", "left"),
        judged=F.col("count"),
        broken=early,
        member=F.col("address"),
        origin=sender_name(),
        first=F.col("first"),
        detail=words("sent or delivered before the first view of ", F.col("address")),
    )


RULE = Rule("initial-view", GROUPS, "messages", "nothing was sent or delivered", judge)
