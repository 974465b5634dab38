"""Up to which number a member has heard of each sender: delivered, announced as a gap, or held by a state it was given.

A row says so at one place in the member's journal; what holds there is the greatest number up to it.
"""

from pyspark.sql import DataFrame

from pygroups.pipeline.keys import life_sql
from pygroups.pipeline.tables import Tables


def heard(tables: Tables) -> DataFrame:
    """Rows with group, life, sender (keys), index (in the journal of `life`), last (a number), late.

    What was delivered in one view is one row, with the index of its first delivery; `late` is true behind the end of
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
