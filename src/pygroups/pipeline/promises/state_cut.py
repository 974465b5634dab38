"""state-cut: the state given is exactly what was delivered before the view it belongs to."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.keys import life_key_of
from pygroups.pipeline.old_findings import VIRTUAL_SYNCHRONY, Rule, findings, view_name, words
from pygroups.pipeline.old_tables import Tables
from pygroups.pipeline.runs import given_marks


def judge(tables: Tables) -> DataFrame:
    """A fact is one state given or taken at one member; a state taken needs its provider's journal."""
    return _given(tables).unionAll(_taken(tables))


def _given(tables: Tables) -> DataFrame:
    """What the provider says the state holds, against what it had delivered before that view."""
    starts = tables.views.select("life", "view", F.col("index").alias("begin"), "epoch").dropDuplicates(
        ["life", "view"]
    )
    given = tables.events.where("kind = 'state_get'").join(F.broadcast(starts), ["life", "view"])
    given = given.withColumn("state", F.xxhash64("life", "index"))
    claimed = given.select("group", "state", F.explode("digest").alias("origin", "claimed")).select(
        "state", life_key_of(F.col("origin")).alias("sender"), "claimed", "origin"
    )
    had = _marks_before(tables, given.select("state", "life", "begin", "epoch"))
    both = claimed.where("claimed > 0").join(had, ["state", "sender"], "full")
    unlike = (
        both.where("coalesce(claimed, 0) <> coalesce(had, 0)")
        .groupBy("state")
        .agg(
            F.min_by(F.coalesce("claimed", F.lit(0)), "sender").alias("claimed"),
            F.min_by(F.coalesce("had", F.lit(0)), "sender").alias("had"),
            F.min_by("origin", "sender").alias("about"),
        )
    )
    return findings(
        given.join(unlike, "state", "left"),
        judged=1,
        broken=F.col("claimed").isNotNull(),
        view=view_name(),
        member=F.col("address"),
        other=F.col("peer"),
        origin=F.col("about"),
        detail=words("gave a state up to message ", F.col("claimed"), ", and had delivered up to ", F.col("had")),
    )


def _marks_before(tables: Tables, states: DataFrame) -> DataFrame:
    """Per state and sender: the highest number that its giver had delivered, heard as a gap, or was given itself."""
    last = (F.col("first") + F.col("count") - 1).alias("had")
    gaps = tables.events.where("kind = 'gap'").select("life", "index", "sender", last)
    heard = tables.deliveries.select("life", "index", "sender", last).unionAll(gaps)
    before = heard.join(F.broadcast(states), "life").where("index < begin").select("state", "sender", "had")
    marks = given_marks(tables.views).withColumnRenamed("epoch", "since")
    inherited = marks.join(F.broadcast(states), "life").where("since <= epoch and mark > 0")
    every = before.unionAll(inherited.select("state", "sender", F.col("mark").alias("had")))
    return every.groupBy("state", "sender").agg(F.max("had").alias("had"))


def _taken(tables: Tables) -> DataFrame:
    """What a member took, against what its provider gave, and against the digest that its view began with."""
    given = tables.events.where("kind = 'state_get'").select(
        F.col("life").alias("provider"),
        "view",
        F.col("checksum").alias("given_checksum"),
        _entries("digest").alias("given_digest"),
        life_key_of(F.col("peer")).alias("life"),
    )
    begun = tables.views.select("life", "view", _entries("digest").alias("view_digest")).dropDuplicates(
        ["life", "view"]
    )
    lives = tables.journals.select(F.col("life").alias("provider"), "whole")
    taken = tables.events.where("kind = 'state_set'").withColumns(
        {"provider": life_key_of(F.col("peer")), "taken_digest": _entries("digest")}
    )
    rows = taken.join(
        F.broadcast(given.dropDuplicates(["life", "view", "provider"])), ["life", "view", "provider"], "left"
    )
    rows = rows.join(F.broadcast(begun), ["life", "view"], "left").join(F.broadcast(lives), "provider", "left")
    unknown = F.col("given_digest").isNull() & ~F.coalesce("whole", F.lit(False))
    wrong = (
        F.when(F.expr("taken_digest <> view_digest"), "its digest is not that of the view it belongs to")
        .when(
            F.col("given_digest").isNull() & F.coalesce("whole", F.lit(False)), "its provider gave none for this view"
        )
        .when(F.expr("given_digest <> taken_digest"), "its digest is not the one that was given")
        .when(F.expr("given_checksum <> checksum"), "its bytes are not those that were given")
    )
    return findings(
        rows,
        judged=F.when(unknown & wrong.isNull(), 0).otherwise(1),
        skipped=F.when(unknown & wrong.isNull(), 1),
        reason="the journal of the provider is missing or ends early",
        broken=wrong.isNotNull(),
        view=view_name(),
        member=F.col("address"),
        other=F.col("peer"),
        detail=words("took a state: ", wrong),
    )


def _entries(name: str) -> Column:
    """A digest in a form that can be compared; an entry of 0 is as good as none."""
    return F.expr(f"array_sort(map_entries(map_filter({name}, (origin, mark) -> mark > 0)))")


RULE = Rule("state-cut", VIRTUAL_SYNCHRONY, "views", "no state was given", judge, frozenset({"state_get", "state_set"}))
