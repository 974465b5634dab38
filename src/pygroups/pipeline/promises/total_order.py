"""total-order: no two messages are in opposite order at two members of a view."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import ORDERED, Rule, findings, sender_name, view_name, words
from pygroups.pipeline.old_tables import Tables
from pygroups.pipeline.order import compared, unplaced


def judge(tables: Tables) -> DataFrame:
    """A fact is one message at one member, compared by blocks; a member may be ahead of others, not across them."""
    blocks = findings(tables.blocks.where("members > 1 and block is not null"), judged=F.col("messages"))
    if "places" in tables.suspicious:
        blocks = blocks.unionAll(_without_place(tables))
    if "blocks" not in tables.suspicious:
        return blocks
    pairs = compared(tables).where(F.col("address") < F.col("other"))
    crossed = findings(
        pairs,
        broken=F.col("theirs") < F.col("passed"),
        view=view_name(),
        member=F.col("address"),
        other=F.col("other"),
        origin=sender_name(),
        first=F.col("first"),
        position=F.col("position"),
        detail=words(
            F.col("other"), " delivered it at position ", F.col("theirs"), ", before what came before it here"
        ),
    )
    return blocks.unionAll(crossed)


def _without_place(tables: Tables) -> DataFrame:
    """Deliveries whose place in the order of their view is not told: nobody can compare them."""
    return findings(
        unplaced(tables.deliveries),
        judged=F.col("count"),
        broken=F.lit(True),
        view=view_name(),
        member=F.col("address"),
        origin=sender_name(),
        first=F.col("first"),
        detail=words("delivered without a place in the order of its view"),
    )


RULE = Rule("total-order", ORDERED, "messages", "no two members delivered anything in one view", judge)
