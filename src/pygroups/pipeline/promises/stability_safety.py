"""stability-safety: every member of the view, also a crashed one, delivered the purged messages."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.block_scan import DIGEST, merged
from pygroups.pipeline.findings import VIRTUAL_SYNCHRONY, Count, PromiseRule
from pygroups.pipeline.keys import life_key_of
from pygroups.pipeline.sets import COHORT, EXTRA, told, uneven, unlike
from pygroups.pipeline.tables import Tables


def cohorts(tables: Tables) -> DataFrame:
    """One row per stream with purged runs, and one per member of its view that cannot be judged."""
    return (
        _members(tables)
        .groupBy(*COHORT, "profile")
        .agg(
            F.expr("count_if(complete)").alias("members"),
            F.expr("sum(if(complete, messages, 0L))").alias("messages"),
            F.expr("min(if(complete, digest, null)) <> max(if(complete, digest, null))").alias("differs"),
            F.expr("count_if(whole is null)").alias("missing"),
            F.expr("count_if(not whole)").alias("partial"),
            F.expr("count_if(whole and not complete)").alias("going_on"),
        )
    )


def _members(tables: Tables) -> DataFrame:
    """One row per stream and member of a view, with the digest of its deliveries among the purged messages.

    `complete`: its journal is whole and has all of the view; an open journal has it if the member has left the view.
    """
    listed = tables.views.selectExpr("group", "history", "profile", "view", "members").dropDuplicates(
        ["view", "members"]
    )
    named = listed.select("group", "history", "profile", "view", F.posexplode("members").alias("rank", "address"))
    lives = named.select("group", "history", "profile", "view", "rank", life_key_of(F.col("address")).alias("life"))
    members = lives.groupBy("group", "history", "profile", "view", "life").agg(F.min("rank").alias("rank"))
    delivered = tables.streams.where("below is not null").withColumnRenamed("stream", "next")
    purged = delivered.groupBy("view", "next").agg(F.max("below").alias("below"))
    sums = merged("stable_") | {"messages": "sum(stable_messages)"}
    had = delivered.groupBy("view", "life", "next").agg(*(F.expr(text).alias(name) for name, text in sums.items()))
    known = tables.gathered(members.join(purged, "view")).join(had, ["view", "life", "next"], "left")
    known = known.join(tables.lives.select("life", "whole", "open"), "life", "left")
    left = tables.views.where("next is not null").selectExpr("life", "view", "true as left").distinct()
    known = known.join(left, ["life", "view"], "left")
    digest = ", ".join(f"coalesce(stable_{name}, 0L)" for name in DIGEST)
    return known.selectExpr(
        *("group", "history", "profile", "'purged' as purpose", "view", "next", "life", "whole"),
        "coalesce(whole and (not open or left), false) as complete",
        "cast(rank as bigint) as rank",
        "below as until",
        f"xxhash64({digest}) as digest",
        "coalesce(messages, 0L) as messages",
    )


def _unlike(tables: Tables) -> DataFrame:
    return unlike(_members(tables).where("complete"))


def exact(tables: Tables) -> DataFrame:
    """A fact is one stream of a view at one member; a member without a whole journal is skipped."""
    streams = tables.streams.where("below is not null").withColumnRenamed("stream", "next")
    parts = streams.groupBy("view", "life", "next", "sender").agg(
        *(F.expr(text).alias(f"early_{name}") for name, text in zip(DIGEST, merged("stable_").values(), strict=True))
    )
    parts = parts.selectExpr("*", *(f"early_{name} as {name}" for name in DIGEST))
    purged = tables.deliveries.withColumnRenamed("stream", "next")
    by = ("view", "life", "next")
    found = uneven(tables, "purged", _unlike, parts, purged, by=by, inside="seq < until", lacking_only=True)
    return told(found, "purged, but never delivered here in this view: {other} did", EXTRA)


RULE = PromiseRule(
    "stability-safety",
    VIRTUAL_SYNCHRONY,
    "messages",
    "nothing was purged by votes in a view of several members",
    counts=(
        Count(
            cohorts,
            judged="if(members > 1, messages, 0)",
            skipped={
                "the journal of a member is missing": "missing",
                "the journal of a member ends early": "partial",
                "the journal of a member is open, and ends in this view or before": "going_on",
            },
            suspect="members > 1 and differs",
        ),
    ),
    exact=exact,
    needs=frozenset({"purge"}),
)
