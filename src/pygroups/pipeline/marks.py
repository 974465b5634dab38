"""The numbers up to which a member has heard each sender: delivered, announced as a gap, or held by a given state.

A row has one number at one place in the member's journal. The greatest number up to a place holds there.
"""

from pyspark.sql import DataFrame

from pygroups.pipeline.keys import life_sql
from pygroups.pipeline.tables import Tables


def heard(tables: Tables) -> DataFrame:
    """Rows with group, life, sender (keys), index (in the journal of `life`), last (a number), late.

    All deliveries in one view are one row, with the index of the first delivery; `late` is true behind the end of
    quiet.
    """
    delivered = tables.streams.where("kind = 1").selectExpr(
        "`group`", "life", "sender", "begin as index", "last", "late"
    )
    late = "coalesce(index >= quiet_end, false) as late"
    gaps = tables.events.where("kind = 'gap'").selectExpr(
        "`group`", "life", "sender", "index", "first + count - 1 as last", late
    )
    given = tables.views.where("digest is not null").selectExpr(
        "`group`", "life", "index", late, "explode(digest) as (origin, last)"
    )
    held = given.selectExpr("`group`", "life", f"{life_sql('origin')} as sender", "index", "last", "late")
    return tables.gathered(delivered.unionByName(gaps).unionByName(held))
