"""integrity: what is delivered was sent by its origin, with the same body."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import ALL, Rule, findings, sender_name, view_name, words
from pygroups.pipeline.old_tables import Tables
from pygroups.pipeline.runs import one_body

_KEY = ("sender", "to", "first")


def judge(tables: Tables) -> DataFrame:
    """A fact is one message at one member. Without the origin's journal, or behind its end, it cannot be judged."""
    origins = tables.journals.select(F.col("life").alias("sender"), "whole")
    runs = tables.runs.where("deliveries > 0").join(F.broadcast(origins), "sender", "left")
    unsent = F.col("sends") == 0
    unknown = unsent & ~F.coalesce("whole", F.lit(False))
    reason = F.when(F.col("whole").isNull(), "the journal of the origin is missing")
    counted = findings(
        runs,
        judged=F.when(unknown, 0).otherwise(F.col("delivered")),
        skipped=F.when(unknown, F.col("delivered")),
        reason=reason.otherwise("the journal of the origin ends early"),
    )
    if "bodies" not in tables.suspicious:
        return counted
    return counted.unionAll(_otherwise(tables, runs.where(~unknown & (unsent | ~one_body()))))


def _otherwise(tables: Tables, doubtful: DataFrame) -> DataFrame:
    """The exact step: each member that delivered such a run under a label that its origin never gave it."""
    sent = tables.messages.select(_columns(None, None)).unionAll(
        tables.connections.where("kind = 'unicast_send'").select(_columns("peer", None))
    )
    delivered = tables.deliveries.select(_columns(None, "position")).unionAll(
        tables.connections.where("kind = 'unicast_deliver'").select(_columns("peer", None))
    )
    suspects = doubtful.select("sender", F.coalesce("peer", F.lit("")).alias("to"), "first", "sends")
    wrong = delivered.join(suspects, list(_KEY)).join(sent.select(*_KEY, "label"), [*_KEY, "label"], "left_anti")
    return findings(
        wrong.dropDuplicates(["life", *_KEY]),
        broken=F.lit(True),
        view=F.col("in_view"),
        member=F.col("address"),
        origin=sender_name(),
        first=F.col("first"),
        position=F.col("position"),
        detail=F.when(F.col("sends") == 0, words("delivered, but ", sender_name(), " never sent it")).otherwise(
            words("delivered with another body than ", sender_name(), " sent")
        ),
    )


def _columns(peer: str | None, position: str | None) -> list[Column]:
    """Sends and deliveries in one form; unicasts have neither view nor position."""
    view = view_name() if peer is None else F.lit(None).cast("string")
    columns = [F.col(name) for name in ("group", "history", "life", "address", "sender", "first")]
    return [
        *columns,
        *(F.col("origin"), F.col("origin_incarnation")),
        (F.lit("") if peer is None else F.coalesce(peer, F.lit(""))).alias("to"),
        F.xxhash64("count", "bytes", "checksum").alias("label"),
        view.alias("in_view"),
        (F.lit(None).cast("bigint") if position is None else F.col(position)).alias("position"),
    ]


RULE = Rule("integrity", ALL, "messages", "nothing was delivered", judge)
