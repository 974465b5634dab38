"""stability-safety: what votes let be purged in a view was delivered by every member of it, the dead included."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.keys import life_key_of
from pygroups.pipeline.old_findings import VIRTUAL_SYNCHRONY, Rule, findings
from pygroups.pipeline.old_tables import Tables
from pygroups.pipeline.sets import same_sets


def judge(tables: Tables) -> DataFrame:
    """A fact is one stream of a view at one member; a member without a whole journal is skipped."""
    entries = tables.events.where("kind = 'purge' and view is not null").select(
        "group", "view", F.explode("digest").alias("stream", "below")
    )
    purged = entries.groupBy("view", life_key_of(F.col("stream")).alias("next")).agg(F.max("below").alias("below"))
    listed = tables.views.select(
        *("group", "history", "view", "view_number", "view_creator"), F.explode("members").alias("address")
    ).distinct()
    members = listed.withColumn("life", life_key_of(F.col("address"))).join(F.broadcast(purged), "view")
    lives = tables.journals.select("life", "whole")
    known = members.join(F.broadcast(lives), "life", "left").where("below > 0")
    unknown = known.where("whole is null or not whole")
    skipped = findings(
        unknown,
        skipped=1,
        reason=F.when(F.col("whole").isNull(), "the journal of a member is missing").otherwise(
            "the journal of a member ends early"
        ),
    )
    cohorts = known.where("whole").withColumn("until", F.lit(None).cast("bigint"))
    return skipped.unionAll(
        same_sets(
            cohorts,
            tables.deliveries,
            within=F.expr("stream = next and seq < below"),
            lacking="purged, but never delivered here in this view: ",
        )
    )


RULE = Rule(
    "stability-safety", VIRTUAL_SYNCHRONY, "messages", "nothing was purged by votes", judge, frozenset({"purge"})
)
