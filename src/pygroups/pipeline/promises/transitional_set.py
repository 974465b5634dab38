"""transitional-set: each names as coming with it exactly those that came from the same view; a joiner comes alone."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import VIRTUAL_SYNCHRONY, Count, Rule, findings, words
from pygroups.pipeline.tables import Tables

# Names that did not install the view are not judged.
_NAMED = "coalesce(array_sort(array_intersect(transitional, installed)), array())"
_WRONG = f"{_NAMED} <> together"


def exact(tables: Tables) -> DataFrame:
    """A fact is one view at one member."""
    named = F.expr(f"concat_ws(', ', {_NAMED})")
    return findings(
        tables.views.where(_WRONG),
        words("names ", named, " as coming with it; from the same view came ", F.concat_ws(", ", "together")),
        view="view",
        member="life",
    )


RULE = Rule(
    "transitional-set",
    VIRTUAL_SYNCHRONY,
    "views",
    "no view was installed",
    counts=(Count("views", judged="1", suspect=_WRONG),),
    exact=exact,
    columns={
        "views": {
            "installed": "collect_set(address) over (partition by view)",
            "together": "array_sort(collect_set(address) over (partition by view, coalesce(previous, life)))",
        }
    },
)
