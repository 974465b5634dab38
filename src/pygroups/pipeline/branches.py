"""Members of `uniform` that began another history: a majority was lost for good, and an operator vouched for it.

Such a member delivers, at the end of its old view, what it holds there.  The members that are lost may have gone on
without it, so the old history is not judged by these deliveries.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from pygroups.pipeline.tables import Tables

NEXT_HISTORY: Final = {"next_history": "lead(history) over (partition by life order by index)"}
"""The column that a rule adds to `views` for the texts below."""
FOLLOWS: Final = "coalesce(next is not null and next_history <=> history, false)"
"""SQL text: whether the member went on from this view to another one of the same history."""
BRANCHES: Final = "coalesce(next is not null and not (next_history <=> history), false)"
"""SQL text: whether the member began another history with its next view."""


def in_its_history(tables: "Tables", rows: DataFrame) -> DataFrame:
    """The rows (with `life` and `view`) but for those of members in a view from which they began another history."""
    branches = tables.views.where(BRANCHES).select("life", "view")
    return rows.join(branches, ["life", "view"], "left_anti")
