"""Sets of deliveries in a view, compared between members that have to have the same."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import findings, sender_name, view_name, words
from pygroups.pipeline.order import differs, digest_of

_COHORT = ("group", "history", "view", "next")
_RUN = ("origin", "origin_incarnation", "first", "position")


def transitions(views: DataFrame) -> DataFrame:
    """One row per (view, next view, member) that went from the one straight to the other."""
    gone_on = views.where("next is not null and next_previous = view")
    return gone_on.withColumn("until", F.lit(None).cast("bigint"))


def same_sets(
    cohorts: DataFrame,
    deliveries: DataFrame,
    *,
    within: Column | None = None,
    lacking: str = "not delivered here in this view: ",
) -> DataFrame:
    """Findings: members in one cohort `(view, next)` that did not deliver the same set in `view`.

    `cohorts` has the columns of `views` with `next` and `until`, an index before which deliveries count (null: all
    do); `within` narrows further which deliveries count. Digests are compared first; only in cohorts whose digests
    differ the runs themselves. `lacking` begins the sentence about a run that somebody else delivered. A fact is one
    message at one member.
    """
    columns = cohorts.drop("origin", "index", "profile")
    wanted = columns.withColumnRenamed("address", "who")
    members = Window.partitionBy(*_COHORT)
    wanted = wanted.withColumn("companions", F.count(F.lit(1)).over(members)).where("companions > 1")
    counted = deliveries.select("view", "life", "index", "run", "count", *_RUN, "stream", "seq")
    inside = counted.join(F.broadcast(wanted), ["view", "life"]).where("until is null or index < until")
    inside = inside if within is None else inside.where(within)
    sets = inside.groupBy(*_COHORT, "life").agg(*digest_of(F.col("run")), F.sum("count").alias("messages"))
    filled = wanted.join(sets.drop("group", "history"), ["view", "next", "life"], "left").na.fill(
        0, ["runs", "bits", "low_sum", "high_sum", "messages"]
    )
    compared = filled.groupBy(*_COHORT).agg(F.sum("messages").alias("messages"), differs().alias("differs"))
    unequal = compared.where("differs").select("view", "next")
    return findings(compared, judged=F.col("messages")).unionAll(_missing(wanted, inside, unequal, lacking))


def _missing(wanted: DataFrame, inside: DataFrame, unequal: DataFrame, sentence: str) -> DataFrame:
    """The exact step: each run that somebody of the cohort delivered, at each member that did not."""
    had = inside.join(F.broadcast(unequal), ["view", "next"], "left_semi")
    runs = had.groupBy(*_COHORT, "run", "origin", "origin_incarnation", "first").agg(
        F.min_by("who", "position").alias("other"), F.min("position").alias("position")
    )
    members = wanted.select("view", "next", "life", F.col("who").alias("member"), "view_number", "view_creator")
    expected = runs.join(F.broadcast(members), ["view", "next"])
    lacking = expected.join(had.select("view", "next", "life", "run"), ["view", "next", "life", "run"], "left_anti")
    return findings(
        lacking,
        broken=F.lit(True),
        view=view_name(),
        member=F.col("member"),
        other=F.col("other"),
        origin=sender_name(),
        first=F.col("first"),
        position=F.col("position"),
        detail=words(sentence, F.col("other"), " did"),
    )
