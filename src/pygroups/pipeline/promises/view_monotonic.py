"""view-monotonic: the ids of the views that a member installs rise."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, Count, Rule, findings, words
from pygroups.pipeline.tables import Tables

# Ids compare as (number, creator's name, creator's incarnation).
_ID = "struct(view_number, split(view_creator, '@', 2)[0], split(view_creator, '@', 2)[1])"
_FALLS = f"{_ID} <= id_before"


def exact(tables: Tables) -> DataFrame:
    """A fact is one view at one member."""
    before = F.expr("concat(id_before.col1, ':', id_before.col2, '@', id_before.col3)")
    return findings(
        tables.views.where(_FALLS),
        words("installed it after view ", before, ", which is not below it"),
        view="view",
        member="life",
    )


RULE = Rule(
    "view-monotonic",
    GROUPS,
    "views",
    "no view was installed",
    counts=(Count("views", judged="1", suspect=_FALLS),),
    exact=exact,
    columns={"views": {"id_before": f"lag({_ID}) over (partition by life order by index)"}},
)
