"""The messages that a member sent, compared with its deliveries of these messages."""

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pygroups.pipeline.tables import Tables


def own_messages(tables: "Tables") -> DataFrame:
    """One row per life: group, profile, history, `settles` (it reaches quiet), `stops` (its journal has a stop).

    `sent` and `heard` are the greatest own numbers that the member sent, and delivered, before the end of quiet;
    `unlike` is true if the member did not deliver exactly the runs that it sent.
    """
    own = tables.streams.where("kind <= 1 and sender = life").groupBy("group", "profile", "life", "settles", "stops")
    digests = "bit_xor(bits) <> 0 or sum(if(kind = 0, low_sum, -low_sum)) <> 0"
    sums = {
        "history": "max(history)",
        "sent": "max(if(kind = 0 and not late, last, null))",
        "heard": "coalesce(max(if(kind = 1 and not late, last, null)), 0L)",
        "unlike": f"{digests} or sum(if(kind = 0, runs, -runs)) <> 0",
    }
    return own.agg(*(F.expr(text).alias(name) for name, text in sums.items()))


def own_gaps(tables: "Tables") -> DataFrame:
    """Gaps over a member's own messages that were announced to that member."""
    return tables.events.where("kind = 'gap' and sender = life")
