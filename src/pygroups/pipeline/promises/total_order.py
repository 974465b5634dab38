"""total-order: no two messages are in opposite order at two members of a view.

Orders are compared by positions.  A position is therefore compared with the order of the journal's own records.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import OF_ORDER, ORDERED, Count, PromiseRule, findings, words
from pygroups.pipeline.order import compared
from pygroups.pipeline.tables import Tables


def exact(tables: Tables) -> DataFrame:
    """A fact is one message at one member, compared by blocks.  A member that has delivered more than others breaks
    nothing."""
    crossed = findings(
        tables.once("silver/order", compared).where("what = 'crossed'"),
        words("{other} delivered it at position ", F.col("theirs"), ", before messages that precede it here"),
        **OF_ORDER,
    )
    unplaced = findings(
        tables.deliveries.where("view is not null and position is null"),
        "delivered without a place in the order of its view",
        view="view",
        member="life",
        origin="sender",
        first="first",
    )
    return crossed.unionAll(unplaced).unionAll(_misplaced(tables))


def _misplaced(tables: Tables) -> DataFrame:
    """The deliveries from which on a position is not the number of messages before it: the first one of each shift."""
    suspect = tables.blocks.where("misplaced > 0").select("life", "view").distinct()
    shift = "position - counted"
    rows = tables.deliveries.join(suspect, ["life", "view"]).selectExpr(
        *("`group`", "history", "life", "view", "sender", "first", "position", "counted", f"{shift} as shift"),
        f"lag({shift}) over (partition by life, view order by index) as shift_before",
    )
    return findings(
        rows.where("shift <> 0 and not (shift <=> shift_before)"),
        words("recorded with this position, and the journal has ", F.col("counted"), " messages of its view before it"),
        view="view",
        member="life",
        origin="sender",
        first="first",
        position="position",
    )


RULE = PromiseRule(
    "total-order",
    ORDERED,
    "messages",
    "no two members delivered anything in one view",
    counts=(
        Count("blocks", judged="if(members > 1 or block is null, messages, 0)", suspect="differs or block is null"),
        Count("blocks", suspect="misplaced > 0"),
    ),
    exact=exact,
    columns={"blocks": {"misplaced": "count_if(position <> counted)"}},
)
