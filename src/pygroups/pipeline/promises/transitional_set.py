"""transitional-set: each names as coming with it exactly those that came from the same view; a joiner comes alone."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import VIRTUAL_SYNCHRONY, Rule, findings, view_name, words
from pygroups.pipeline.old_tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one view at one member. Names that did not install the view are not judged."""
    views = tables.views.withColumn("before", F.coalesce("previous", "life"))
    installed = views.groupBy("view").agg(F.collect_set("address").alias("installed"))
    together = views.groupBy("view", "before").agg(F.array_sort(F.collect_set("address")).alias("together"))
    rows = views.join(installed, "view").join(together, ["view", "before"])
    named = F.array_sort(F.array_intersect("transitional", "installed"))
    return findings(
        rows.withColumn("named", F.coalesce(named, F.array().cast("array<string>"))),
        judged=1,
        broken=F.col("named") != F.col("together"),
        view=view_name(),
        member=F.col("address"),
        detail=words("names ", _list("named"), " as coming with it; from the same view came ", _list("together")),
    )


def _list(name: str) -> Column:
    return F.concat_ws(", ", name)


RULE = Rule("transitional-set", VIRTUAL_SYNCHRONY, "views", "no view was installed", judge)
