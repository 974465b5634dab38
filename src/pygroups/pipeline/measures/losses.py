"""Losses and their cost: discards by reason, requests for missing runs, and retransmissions."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.history import History
from pygroups.pipeline.measures.kinds import SENT, by_member


def drops(history: History) -> DataFrame:
    """Per group, member, kind and reason: the number of dropped inputs and of refused joiners."""
    found = history.events.where("kind in ('drop', 'refuse')").select("life", "kind", "reason")
    reason = F.expr("coalesce(reason, 'no reason given')").alias("reason")
    return by_member(found, history).groupBy("group", "member", "kind", reason).agg(F.count("*").alias("times"))


def retransmissions(history: History) -> DataFrame:
    """Per group and member that asked or retransmitted: the number of its requests, of the runs that it requested, and
    of the runs that it retransmitted for others.

    `repeated_share` is the repeated runs of a member over the runs that it sent first (null where it sent none).
    """
    events = history.events.where("kind in ('retransmit_request', 'retransmit')").selectExpr(
        "life",
        "int(kind = 'retransmit_request') as asked",
        "int(kind = 'retransmit') as repeated",
        "greatest(coalesce(high - low, 1L), 0L) as missing",
        "coalesce(bytes, 0L) as bytes",
        "0L as sent",
    )
    sends = history.runs.where(SENT).groupBy("life").agg(F.count("*").alias("sent"))
    zeros = ("0 as asked", "0 as repeated", "0L as missing", "0L as bytes")
    rows = events.unionByName(sends.selectExpr("life", *zeros, "sent"))
    found = (
        by_member(rows, history)
        .groupBy("group", "member")
        .agg(
            F.expr("sum(asked)").alias("requests"),
            F.expr("sum(asked * missing)").alias("runs_asked_for"),
            F.expr("sum(repeated)").alias("repeats"),
            F.expr("sum(repeated * bytes)").alias("repeated_bytes"),
            F.expr("sum(sent)").alias("runs_sent"),
        )
    )
    share = "if(runs_sent > 0, repeats / runs_sent, null) as repeated_share"
    return found.where("requests > 0 or repeats > 0").selectExpr("*", share)
