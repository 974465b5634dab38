"""no-duplication: a member delivers a message at most once; messages in its given state count as delivered."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, Count, PromiseRule, findings
from pygroups.pipeline.runs import given_marks
from pygroups.pipeline.tables import Tables

_STREAM: Final = ("life", "epoch", "sender")


def exact(tables: Tables) -> DataFrame:
    """A fact is one message at one member.

    Only a delivery that begins below the next number can be a repetition. The step sorts
    the deliveries from such a sender by number: overlaps are repetitions, the others came late (see `fifo`).
    """
    behind = tables.streams.where("kind = 1 and behind > 0").select("life", "sender").distinct()
    rows = tables.deliveries.join(behind, ["life", "sender"], "left_semi")
    epochs = tables.views.groupBy("life", "view").agg(F.min("epoch").alias("epoch"))
    placed = rows.join(epochs, ["life", "view"], "left").na.fill(0, ["epoch"])
    marked = placed.join(given_marks(tables.views), list(_STREAM), "left")
    before = (
        "over (partition by life, epoch, sender order by first, index rows between unbounded preceding and 1 preceding)"
    )
    seen = marked.selectExpr(
        *("group", "history", "life", "view", "sender", "first", "position", "mark"),
        f"max(first + count - 1) {before} as top",
    )
    again = F.when(F.expr("first <= mark"), "delivered again: the given state holds it")
    return findings(
        seen.where("first <= greatest(top, mark)"),
        again.otherwise("delivered a second time"),
        view="view",
        member="life",
        origin="sender",
        first="first",
        position="position",
    )


RULE = PromiseRule(
    "no-duplication",
    GROUPS,
    "messages",
    "nothing was delivered",
    counts=(Count("streams", judged="if(kind = 1, messages, 0)", suspect="kind = 1 and behind > 0"),),
    exact=exact,
    columns={"streams": {"behind": "count_if(first < expected)"}},  # deliveries that begin below the next number
)
