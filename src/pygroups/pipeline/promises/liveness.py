"""liveness: after healing one view within the bound, and everything delivered. Without marks it is not judged."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.keys import life_key_of
from pygroups.pipeline.old_findings import ALL, Rule, findings, sender_name, view_name, words
from pygroups.pipeline.old_tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one member at quiet, and one origin as one member heard it by then."""
    healed = (
        tables.events.where("kind = 'heal'")
        .groupBy("life")
        .agg(F.max("mono_us").alias("healed_us"), F.max("index").alias("heal_index"))
    )
    bounds = tables.events.where("kind = 'start'").select("life", F.expr("gauges['bound_us']").alias("bound_us"))
    quiet = tables.journals.where("marked and quiet_index is not null").select(
        "group", "profile", "life", "address", "quiet_index", "quiet_view"
    )
    linked = tables.linked.select("life", "linked")
    members = quiet.join(F.broadcast(healed), "life").join(F.broadcast(bounds.dropDuplicates(["life"])), "life", "left")
    members = members.join(F.broadcast(linked), "life", "left").withColumn("linked", F.coalesce("linked", "life"))
    return _one_view(tables, members).unionAll(_heard(tables, members))


def _one_view(tables: Tables, members: DataFrame) -> DataFrame:
    """The view at quiet: installed within the bound after `heal`, the same for all, and not blocked."""
    views = tables.views.select(
        "life",
        F.col("view").alias("quiet_view"),
        "view_number",
        "view_creator",
        "history",
        F.col("mono_us").alias("installed_us"),
    )
    rows = members.where("profile <> 'unicast'").join(views, ["life", "quiet_view"], "left")
    several = rows.groupBy("linked").agg(F.countDistinct("quiet_view").alias("views"))
    blocks = tables.events.where("kind in ('block', 'unblock')").join(
        F.broadcast(members.select("life", "quiet_index")), "life"
    )
    blocked = blocks.where("index < quiet_index").groupBy("life").agg(F.max_by("kind", "index").alias("last_word"))
    rows = rows.join(several, "linked").join(blocked, "life", "left")
    after = F.col("installed_us") - F.col("healed_us")
    wrong = (
        F.when(F.col("quiet_view").isNull(), "reached quiet without a view")
        .when(F.col("views") > 1, "reached quiet in another view than others that it shared one with")
        .when(
            after > F.col("bound_us"),
            words("installed this view ", after, " us after heal; the bound is ", F.col("bound_us")),
        )
        .when((F.col("last_word") == "block") & F.col("profile").startswith("uniform"), "reached quiet blocked")
    )
    return findings(
        rows,
        judged=F.when(F.col("bound_us").isNull() & wrong.isNull(), 0).otherwise(1),
        skipped=F.when(F.col("bound_us").isNull() & wrong.isNull(), 1),
        reason="a member's start record names no bound",
        broken=wrong.isNotNull(),
        view=view_name(),
        member=F.col("address"),
        detail=wrong,
    )


def _heard(tables: Tables, members: DataFrame) -> DataFrame:
    """Per member and origin that reached quiet too: the highest number heard by then against the highest sent."""
    upto = members.select("group", "life", "address", "linked", "quiet_index")
    ends = upto.select("life", "quiet_index")
    sent = tables.messages.join(F.broadcast(ends), "life").where("index < quiet_index")
    sent = sent.groupBy("life", "origin", "origin_incarnation").agg(F.max(_last()).alias("sent"))
    origins = sent.join(F.broadcast(upto.select("life", "linked")), "life").withColumnRenamed("life", "sender")
    pairs = origins.join(F.broadcast(upto.drop("quiet_index")), "linked")
    told = tables.deliveries.select("life", "index", "sender", _last().alias("heard"))
    gaps = tables.events.where("kind = 'gap'").select("life", "index", "sender", _last().alias("heard"))
    marks = tables.views.where("digest is not null").select(
        "life", "index", F.explode("digest").alias("origin", "heard"), "group"
    )
    given = marks.select("life", "index", life_key_of(F.col("origin")).alias("sender"), "heard")
    heard = told.unionAll(gaps).unionAll(given).join(F.broadcast(ends), "life").where("index < quiet_index")
    heard = heard.groupBy("life", "sender").agg(F.max("heard").alias("heard"))
    rows = pairs.join(heard, ["life", "sender"], "left").withColumn("heard", F.coalesce("heard", F.lit(0)))
    return findings(
        rows.withColumn("history", F.lit(None).cast("string")),
        judged=1,
        broken=F.col("heard") < F.col("sent"),
        member=F.col("address"),
        origin=sender_name(),
        first=F.col("heard") + 1,
        detail=words("at quiet heard up to message ", F.col("heard"), ", and ", F.col("sent"), " were sent"),
    )


def _last() -> Column:
    return F.col("first") + F.col("count") - 1


RULE = Rule("liveness", ALL, "views", "the journals have no marks of heal and quiet", judge, frozenset({"heal"}))
