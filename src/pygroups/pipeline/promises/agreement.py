"""agreement: in the last common view, all that reach quiet delivered the same set."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import VIRTUAL_SYNCHRONY, Rule
from pygroups.pipeline.old_tables import Tables
from pygroups.pipeline.sets import same_sets


def judge(tables: Tables) -> DataFrame:
    """A fact is one message at one member that reached quiet in its view together with another."""
    quiet = tables.journals.where("quiet_view is not null").select(
        "life", F.col("quiet_view").alias("view"), "quiet_end"
    )
    settled = tables.views.join(F.broadcast(quiet), ["life", "view"])
    cohorts = settled.withColumns({"next": F.lit(0).cast("bigint"), "until": F.col("quiet_end")})
    return same_sets(cohorts, tables.deliveries)


RULE = Rule(
    "agreement",
    VIRTUAL_SYNCHRONY,
    "messages",
    "nothing was delivered in a view in which two members reached quiet",
    judge,
)
