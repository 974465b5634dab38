"""self-inclusion: a member is in every view it installs."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, Rule, findings, view_name, words
from pygroups.pipeline.tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one view at one member."""
    return findings(
        tables.views,
        judged=1,
        broken=~F.coalesce(F.array_contains("members", F.col("address")), F.lit(False)),
        view=view_name(),
        member=F.col("address"),
        detail=words("installed a view of ", F.concat_ws(", ", "members"), " without itself"),
    )


RULE = Rule("self-inclusion", GROUPS, "views", "no view was installed", judge)
