"""no-duplication: a message is delivered at most once at a member, the state it was given included."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import GROUPS, Rule, facts, findings, sender_name, view_name, words
from pygroups.pipeline.old_tables import Tables
from pygroups.pipeline.runs import given_marks

_STREAM = ("life", "epoch", "sender")


def judge(tables: Tables) -> DataFrame:
    """A fact is one message at one member.

    Only a delivery that begins at or before what the member has of its sender can be a repetition; the streams with
    such a delivery are sorted by number, and overlaps are repetitions (others came late: that is `fifo`'s matter).
    """
    if "irregular" not in tables.suspicious:
        return facts(tables.deliveries)
    behind = tables.irregular.where("first < expected and not is_gap").select(*_STREAM).distinct()
    rows = tables.deliveries.join(F.broadcast(behind), list(_STREAM), "left_semi")
    marked = rows.join(F.broadcast(given_marks(tables.views)), list(_STREAM), "left")
    before = Window.partitionBy(*_STREAM).orderBy("first", "index").rowsBetween(Window.unboundedPreceding, -1)
    seen = marked.withColumn("top", F.max(F.col("first") + F.col("count") - 1).over(before))
    repeated = findings(
        seen,
        broken=F.col("first") <= F.greatest("top", "mark"),
        view=view_name(),
        member=F.col("address"),
        origin=sender_name(),
        first=F.col("first"),
        position=F.col("position"),
        detail=F.when(F.col("first") <= F.col("mark"), words("delivered again: the given state holds it")).otherwise(
            words("delivered a second time")
        ),
    )
    return facts(tables.deliveries).unionAll(repeated)


RULE = Rule("no-duplication", GROUPS, "messages", "nothing was delivered", judge)
