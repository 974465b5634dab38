"""view-monotonic: the ids of the views that a member installs rise."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, Rule, findings, view_name, words
from pygroups.pipeline.tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one view at one member; ids compare as (number, creator's name, creator's incarnation)."""
    member = Window.partitionBy("life").orderBy("index")
    views = tables.views.withColumn("id", _id()).withColumns(
        {"id_before": F.lag("id").over(member), "name_before": F.lag(view_name()).over(member)}
    )
    return findings(
        views,
        judged=1,
        broken=F.col("id") <= F.col("id_before"),
        view=view_name(),
        member=F.col("address"),
        detail=words("installed it after view ", F.col("name_before"), ", which is not below it"),
    )


def _id() -> Column:
    parts = F.split("view_creator", "@", 2)
    return F.struct(F.col("view_number"), parts[0], parts[1])


RULE = Rule("view-monotonic", GROUPS, "views", "no view was installed", judge)
