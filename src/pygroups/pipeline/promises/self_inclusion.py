"""self-inclusion: a member is in every view it installs."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, Count, PromiseRule, findings, names_in, words
from pygroups.pipeline.tables import Tables

_ABSENT = "not coalesce(array_contains(members, address), false)"


def exact(tables: Tables) -> DataFrame:
    """A fact is one view at one member."""
    return findings(
        tables.views.where(_ABSENT),
        words("installed a view without itself: ", F.expr(names_in("members"))),
        view="view",
        member="life",
    )


RULE = PromiseRule(
    "self-inclusion",
    GROUPS,
    "views",
    "no view was installed",
    counts=(Count("views", judged="1", suspect=_ABSENT),),
    exact=exact,
)
