"""gap-free-prefix: if two members delivered a message in a view, both delivered all messages before it."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import OF_ORDER, ORDERED, Count, PromiseRule, findings
from pygroups.pipeline.order import compared
from pygroups.pipeline.tables import Tables


def exact(tables: Tables) -> DataFrame:
    """A fact is one message at one member, compared by blocks. Where most members lack
    a message, the finding names the member that has it."""
    lacking = "not delivered, though {other} delivered it before a message that both delivered"
    extra = "delivered before a message that both delivered, though {other} did not deliver it in this view"
    return findings(
        tables.once("silver/order", compared).where("what <> 'crossed'"),
        F.when(F.col("what") == "lacking", lacking).otherwise(extra),
        **OF_ORDER,
    )


RULE = PromiseRule(
    "gap-free-prefix",
    ORDERED,
    "messages",
    "no two members delivered anything in one view",
    counts=(
        Count(
            "blocks",
            judged="if(members > 1 and block is not null, messages, 0)",
            skipped={"delivered without a place in the order of its view": "if(block is null, messages, 0)"},
            suspect="differs",
        ),
    ),
    exact=exact,
)
