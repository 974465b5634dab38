"""view-monotonic: the ids of the views that a member installs rise."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, Count, PromiseRule, findings, words
from pygroups.pipeline.keys import VIEW_ID
from pygroups.pipeline.tables import Tables

_FALLS = f"{VIEW_ID} <= id_before"


def exact(tables: Tables) -> DataFrame:
    """A fact is one view at one member."""
    before = F.expr("concat(id_before.number, ':', id_before.name, '@', id_before.life)")
    return findings(
        tables.views.where(_FALLS),
        words("installed after view ", before, ", whose id is not lower"),
        view="view",
        member="life",
    )


RULE = PromiseRule(
    "view-monotonic",
    GROUPS,
    "views",
    "no view was installed",
    counts=(Count("views", judged="1", suspect=_FALLS),),
    exact=exact,
    columns={"views": {"id_before": f"lag({VIEW_ID}) over (partition by life order by index)"}},
)
