"""same-view-delivery: members that go together from one view to the next deliver a message in the same view.

In `uniform` all who deliver it do, the dead and the isolated included.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import (
    UNIFORM,
    VIRTUAL_SYNCHRONY,
    Rule,
    facts,
    findings,
    sender_name,
    view_name,
    words,
)
from pygroups.pipeline.old_tables import Tables
from pygroups.pipeline.sets import transitions


def judge(tables: Tables) -> DataFrame:
    """A fact is one message at one member. Only runs delivered in more than one view are looked at closely."""
    if "views" not in tables.suspicious:
        return facts(tables.deliveries)
    several = tables.runs.where("low_view <> high_view").select("sender", "first").distinct()
    rows = tables.deliveries.join(F.broadcast(several), ["sender", "first"], "left_semi")
    here = rows.select(
        *("group", "history", "profile", "run", "life", "address", "view", "view_number", "view_creator", "position"),
        *("origin", "origin_incarnation", "first"),
    )
    there = rows.select(
        "run",
        F.col("life").alias("other_life"),
        F.col("address").alias("other"),
        F.col("view").alias("other_view"),
        view_name().alias("other_view_name"),
    )
    pairs = here.join(there, "run").where("view <> other_view and life <> other_life")
    ways = transitions(tables.views).select("life", "view", "next")
    mine = ways.select("life", "view", F.col("next").alias("my_next"))
    theirs = ways.select(F.col("life").alias("other_life"), "view", F.col("next").alias("their_next"))
    met = pairs.join(F.broadcast(mine), ["life", "view"], "left")
    met = met.join(F.broadcast(theirs), ["other_life", "view"], "left")
    anybody = F.col("profile").isin(*sorted(UNIFORM)) & (F.col("address") < F.col("other"))
    found = findings(
        met,
        broken=anybody | (F.col("my_next") == F.col("their_next")),
        view=view_name(),
        member=F.col("address"),
        other=F.col("other"),
        origin=sender_name(),
        first=F.col("first"),
        position=F.col("position"),
        detail=words(F.col("other"), " delivered it in view ", F.col("other_view_name")),
    )
    return facts(tables.deliveries).unionAll(found)


RULE = Rule("same-view-delivery", VIRTUAL_SYNCHRONY, "messages", "nothing was delivered", judge)
