"""buffers-drain: after quiet, no window, table or queue holds anything."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import VIRTUAL_SYNCHRONY, Rule, findings, words
from pygroups.pipeline.tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one `stats` record after quiet; a member that wrote none after its mark is skipped."""
    quiet = tables.journals.where("quiet_index is not null").select(
        "group", F.lit(None).cast("string").alias("history"), "life", "address", "quiet_index", "marked"
    )
    told = tables.events.where("kind = 'stats'").select("life", "index", "gauges", "history")
    after = told.join(F.broadcast(quiet.drop("history")), "life").where("index > quiet_index")
    full = F.expr("filter(map_entries(gauges), gauge -> gauge.value <> 0)")
    named = F.expr("array_join(transform(full, gauge -> concat(gauge.key, ' ', gauge.value)), ', ')")
    held = findings(
        after.withColumn("full", full),
        judged=1,
        broken=F.size("full") > 0,
        member=F.col("address"),
        detail=words("still holds after quiet: ", named),
    )
    silent = quiet.where("marked").join(after.select("life").distinct(), "life", "left_anti")
    return held.unionAll(findings(silent, skipped=1, reason="a member wrote no stats after its quiet mark"))


RULE = Rule(
    "buffers-drain", VIRTUAL_SYNCHRONY, "views", "no member told its gauges after quiet", judge, frozenset({"stats"})
)
