"""view-agreement: a view has the same ordered list of members wherever it is installed."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, Count, Rule, findings, words
from pygroups.pipeline.tables import Tables


def exact(tables: Tables) -> DataFrame:
    """A fact is one view at one member. A view with two lists is told once, with a member for each."""
    lists = tables.views.where("low_list <> high_list").withColumn("list", F.concat_ws(", ", "members"))
    views = lists.groupBy("group", "history", "view").agg(
        F.min("list").alias("low"),
        F.max("list").alias("high"),
        F.min_by("life", "list").alias("member"),
        F.max_by("life", "list").alias("other"),
    )
    return findings(
        views,
        words("two lists under one id: ", F.col("low"), " and ", F.col("high")),
        view="view",
        member="member",
        other="other",
    )


RULE = Rule(
    "view-agreement",
    GROUPS,
    "views",
    "no view was installed",
    counts=(Count("views", judged="1", suspect="low_list <> high_list"),),
    exact=exact,
    columns={
        "views": {
            "low_list": "min(xxhash64(members)) over (partition by view)",
            "high_list": "max(xxhash64(members)) over (partition by view)",
        }
    },
)
