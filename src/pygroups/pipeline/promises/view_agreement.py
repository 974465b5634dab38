"""view-agreement: a view has the same ordered list of members wherever it is installed."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, Rule, findings, view_name, words
from pygroups.pipeline.tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one view at one member."""
    lists = tables.views.withColumn("list", F.concat_ws(", ", "members"))
    views = lists.groupBy("group", "history", "view", "view_number", "view_creator").agg(
        F.count(F.lit(1)).alias("installed"),
        F.min("list").alias("low"),
        F.max("list").alias("high"),
        F.min_by("address", "list").alias("member"),
        F.max_by("address", "list").alias("other"),
    )
    return findings(
        views,
        judged=F.col("installed"),
        broken=F.col("low") != F.col("high"),
        view=view_name(),
        member=F.col("member"),
        other=F.col("other"),
        detail=words("two lists under one id: ", F.col("low"), " and ", F.col("high")),
    )


RULE = Rule("view-agreement", GROUPS, "views", "no view was installed", judge)
