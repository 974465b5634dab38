"""The messages that a member sent, compared with its deliveries of these messages."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.lives import LISTED

if TYPE_CHECKING:
    from pygroups.pipeline.tables import Tables

_MORE_SENT: Final = [
    f"sum(if(kind = 0, {name}, -{name})) <> max(listed_{name})" for name in ("runs", "low_sum", "high_sum")
]


def own_messages(tables: "Tables") -> DataFrame:
    """One row per incarnation: group, profile, history, `settles` (whether the incarnation reaches quiet), `stops`
    (whether its journal has a stop).

    `sent` and `heard` are the greatest own numbers that the member sent, and delivered, before the end of quiet;
    `unlike` is true if the runs that the member sent are not exactly those that it delivered and those that its
    journal lists as undelivered.
    """
    listed = tables.lives.select("life", *LISTED)
    own = tables.streams.where("kind <= 1 and sender = life").join(listed, "life", "left")
    sums = {
        "history": "max(history)",
        "sent": "max(if(kind = 0 and not late, last, null))",
        "heard": "coalesce(max(if(kind = 1 and not late, last, null)), 0L)",
        "unlike": f"bit_xor(bits) <> max(listed_bits) or {' or '.join(_MORE_SENT)}",
    }
    by_life = own.groupBy("group", "profile", "life", "settles", "stops")
    return by_life.agg(*(F.expr(text).alias(name) for name, text in sums.items()))


def own_gaps(tables: "Tables") -> DataFrame:
    """Gaps over a member's own messages that were announced to that member."""
    return tables.events.where("kind = 'gap' and sender = life")
