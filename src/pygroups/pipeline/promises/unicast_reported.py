"""unicast-reported: every unicast sent is delivered or reported to its sender."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import ALL, Count, PromiseRule, findings
from pygroups.pipeline.keys import life_sql
from pygroups.pipeline.tables import Tables

_LOST = "fate is null and whole and not open"


def sent(tables: Tables) -> DataFrame:
    """Unicast runs of senders that reached quiet or stopped. `fate` is null if no journal has it;
    `whole` and
    `open` are null where the receiver's journal is missing."""
    done = tables.lives.where("quiet_end is not null or stop_index is not null").selectExpr(
        "life", "coalesce(quiet_end, `end`) as until"
    )
    sends = tables.unicasts.where("kind = 2").select(
        "group", "profile", "history", "life", "index", "peer", "first", "count"
    )
    came = tables.unicasts.where("kind = 3 and life = peer").selectExpr("sender as life", "peer", "first")
    told = tables.events.where("kind = 'undelivered'").selectExpr("life", f"{life_sql('peer')} as peer", "first")
    fates = tables.gathered(came.unionAll(told)).distinct().withColumn("fate", F.lit(True))
    receivers = tables.lives.select(F.col("life").alias("peer"), "whole", "open")
    rows = tables.gathered(sends.join(done, "life").where("index < until")).join(
        fates, ["life", "peer", "first"], "left"
    )
    return rows.join(receivers, "peer", "left")


def exact(tables: Tables) -> DataFrame:
    """A fact is one unicast message whose sender reached quiet or stopped. The check needs the receiver's journal."""
    return findings(
        sent(tables).where(_LOST),
        "neither delivered by {other} nor reported to its sender",
        member="life",
        other="peer",
        origin="life",
        first="first",
    )


RULE = PromiseRule(
    "unicast-reported",
    ALL,
    "unicasts",
    "no sender of a unicast stopped or reached quiet",
    counts=(
        Count(
            sent,
            judged="if(fate is not null or whole and not open, count, 0)",
            skipped={
                "the journal of the receiver is missing": "if(fate is null and whole is null, count, 0)",
                "the journal of the receiver ends early": "if(fate is null and not whole, count, 0)",
                "the journal of the receiver is open": "if(fate is null and whole and open, count, 0)",
            },
            suspect=_LOST,
        ),
    ),
    exact=exact,
    needs=frozenset({"unicast_send"}),
)
