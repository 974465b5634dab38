"""What anybody said of each run, and the deliveries that do not continue their sender's numbers."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pygroups.pipeline.keys import life_key_of

_RUN = ("group", "origin", "origin_incarnation", "sender", "peer", "first")
_LABEL = ("count", "bytes", "checksum")


def runs_of(messages: DataFrame, deliveries: DataFrame, connections: DataFrame, views: DataFrame) -> DataFrame:
    """One row per run `(origin, incarnation, peer, first)`: how often sent and delivered, and under which labels.

    `low_*` and `high_*` are the least and greatest count, bytes and checksum that any journal gives it; `low_view` and
    `high_view` the keys of the views it was delivered in; `low_life` and `high_life` two lives that disagree. A run
    belongs to one history, though it may be sent in one and delivered in the next.
    """
    nothing = F.lit(None)
    sent = messages.withColumns({"peer": nothing.cast("string"), "sent": F.lit(1), "in_view": nothing.cast("bigint")})
    delivered = deliveries.withColumns({"peer": nothing.cast("string"), "sent": F.lit(0), "in_view": F.col("view")})
    unicast = connections.withColumns(
        {"sent": F.expr("if(kind = 'unicast_send', 1, 0)"), "in_view": nothing.cast("bigint")}
    )
    columns = [*_RUN, *_LABEL, "history", "profile", "life", "sent", "in_view"]
    rows = sent.select(columns).unionAll(delivered.select(columns)).unionAll(unicast.select(columns))
    label = F.xxhash64(*_LABEL)
    histories = views.select("history", F.xxhash64("history").alias("history_key")).where("history is not null")
    keyed = rows.withColumn("history_key", F.when(F.col("history").isNotNull(), F.xxhash64("history")))
    runs = keyed.groupBy(*_RUN, "profile").agg(
        F.min("history_key").alias("history_key"),  # a number: grouping by hash has no place for strings
        F.sum("sent").alias("sends"),
        F.sum(F.expr("if(sent = 0, 1, 0)")).alias("deliveries"),
        F.sum("count").alias("said"),
        F.sum(F.expr("if(sent = 0, count, 0)")).alias("delivered"),
        *(F.min(name).alias(f"low_{name}") for name in _LABEL),
        *(F.max(name).alias(f"high_{name}") for name in _LABEL),
        F.min_by("life", label).alias("low_life"),
        F.max_by("life", label).alias("high_life"),
        F.min("in_view").alias("low_view"),
        F.max("in_view").alias("high_view"),
    )
    return runs.join(F.broadcast(histories.distinct()), "history_key", "left")


def one_body() -> Column:
    """Of a row of `runs`: every journal that speaks of the run gives it one label."""
    return F.expr("low_count = high_count and low_bytes = high_bytes and low_checksum = high_checksum")


def irregular_of(deliveries: DataFrame, events: DataFrame, views: DataFrame) -> DataFrame:
    """Deliveries and gaps whose first number is not the next after all that this member has of their sender.

    Numbers begin behind the digest of a given state, else at 1; in `gossip` without a digest anywhere. `expected` is
    the number that should have come. A gap that begins at or before it is regular.
    """
    columns = ["group", "history", "profile", "life", "address", "index", "view", "view_number", "view_creator"]
    columns += ["origin", "origin_incarnation", "sender", "first", "count", "position", "epoch", "is_gap"]
    epochs = views.select("life", "view", "epoch").dropDuplicates(["life", "view"])
    gaps = events.where("kind = 'gap'").join(F.broadcast(epochs), ["life", "view"], "left")
    gaps = gaps.withColumns({"epoch": F.coalesce("epoch", F.lit(0).cast("bigint")), "is_gap": F.lit(True)})
    steps = deliveries.withColumn("is_gap", F.lit(False)).select(columns).unionAll(gaps.select(columns))
    before = Window.partitionBy("life", "epoch", "sender").orderBy("index")
    before = before.rowsBetween(Window.unboundedPreceding, -1)
    numbered = steps.withColumn("top", F.max(F.col("first") + F.col("count") - 1).over(before))
    begun = numbered.join(F.broadcast(given_marks(views)), ["life", "epoch", "sender"], "left")
    default = F.when(F.col("profile") != "gossip", 0)
    begun = begun.withColumn("mark", F.when(F.col("epoch") > 0, F.coalesce("mark", F.lit(0))).otherwise(default))
    wrong = F.expr("first <> expected and not (is_gap and first < expected)")
    return begun.withColumn("expected", F.greatest("top", "mark") + 1).where(wrong)


def given_marks(views: DataFrame) -> DataFrame:
    """Per life, epoch and sender: up to which number the given state covers the sender's messages."""
    given = views.where(F.col("digest").isNotNull())
    entries = given.select("group", "life", "epoch", F.explode("digest").alias("origin", "mark"))
    return entries.select("life", "epoch", life_key_of(F.col("origin")).alias("sender"), "mark")
