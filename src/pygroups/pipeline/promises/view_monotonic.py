"""view-monotonic: the ids of the views that a member installs rise, and each view names the one before it."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, Count, PromiseRule, findings, words
from pygroups.pipeline.keys import VIEW_ID
from pygroups.pipeline.tables import Tables

_FALLS = f"{VIEW_ID} <= id_before"
_UNLIKE = "not (previous <=> came_from)"
_BEFORE = "concat(id_before.number, ':', id_before.name, '@', id_before.life)"


def exact(tables: Tables) -> DataFrame:
    """A fact is one view at one member."""
    falls = findings(
        tables.views.where(_FALLS),
        words("installed after view ", F.expr(_BEFORE), ", whose id is not lower"),
        view="view",
        member="life",
    )
    named = "if(previous is null, 'no view', 'view {also}')"
    came = f"if(came_from is null, 'no view', concat('view ', {_BEFORE}))"
    unlike = findings(
        tables.views.where(_UNLIKE),
        words("names ", F.expr(named), " as the view before it, and the journal has ", F.expr(came), " before it"),
        view="view",
        member="life",
        also="previous",
    )
    return falls.unionAll(unlike)


RULE = PromiseRule(
    "view-monotonic",
    GROUPS,
    "views",
    "no view was installed",
    counts=(Count("views", judged="1", suspect=f"{_FALLS} or {_UNLIKE}"),),
    exact=exact,
    columns={
        "views": {
            "id_before": f"lag({VIEW_ID}) over (partition by life order by index)",
            "came_from": "lag(view) over (partition by life order by index)",
        }
    },
)
