"""total-order: no two messages are in opposite order at two members of a view."""

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
    return crossed.unionAll(unplaced)


RULE = PromiseRule(
    "total-order",
    ORDERED,
    "messages",
    "no two members delivered anything in one view",
    counts=(
        Count("blocks", judged="if(members > 1 or block is null, messages, 0)", suspect="differs or block is null"),
    ),
    exact=exact,
)
