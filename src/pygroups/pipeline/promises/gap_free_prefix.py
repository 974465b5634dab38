"""gap-free-prefix: nobody lacks what another delivered before a message that both delivered in a view."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import ORDERED, Rule, findings, sender_name, view_name, words
from pygroups.pipeline.old_tables import Tables
from pygroups.pipeline.order import compared


def judge(tables: Tables) -> DataFrame:
    """A fact is one message at one member, compared by blocks."""
    placed = F.col("block").isNotNull()
    blocks = findings(
        tables.blocks.where(~placed | (F.col("members") > 1)),
        judged=F.when(placed, F.col("messages")),
        skipped=F.when(~placed, F.col("messages")),
        reason="delivered without a place in the order of its view",
    )
    if "blocks" not in tables.suspicious:
        return blocks
    lacking = findings(
        compared(tables),
        broken=F.expr("theirs is null and position < known"),
        view=view_name(),
        member=F.col("other"),
        other=F.col("address"),
        origin=sender_name(),
        first=F.col("first"),
        position=F.col("position"),
        detail=words("not delivered, though ", F.col("address"), " delivered it before a message that both delivered"),
    )
    return blocks.unionAll(lacking)


RULE = Rule("gap-free-prefix", ORDERED, "messages", "no two members delivered anything in one view", judge)
