"""epsilon: where messages may be missed, their share is not above the bound that the members state at their start."""

from math import log
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from pygroups.pipeline.binomial import log_at_least, share_at_least
from pygroups.pipeline.findings import GOSSIP, Count, PromiseRule, findings
from pygroups.pipeline.marks import heard
from pygroups.pipeline.tables import Tables

LEVEL: Final = 1e-9
"""The share is above the bound if a group that keeps it misses so many messages with a smaller probability."""

_BOUND: Final = "epsilon_ppm > 0"
_TELLS: Final = f"facts * ln(epsilon_ppm / 1e6) < {log(LEVEL)}"  # if all were missed, the test would fail
_SUSPECT: Final = f"{_BOUND} and {_TELLS} and missed * 1e6 > facts * epsilon_ppm"


def sums(tables: Tables) -> DataFrame:
    """One row per set of linked members: the `facts` between members that stayed together and reached quiet, how many
    of them were `missed`, those between members that were `apart`, and the greatest bound, `epsilon_ppm`.

    A fact is a message of another member, sent while this one had the receiver in its view, and behind the number with
    which the receiver began.  A message is missed if it was announced as a gap, skipped or, with marks, never heard of.
    Without marks it may have been sent after the receiver left.
    """
    low = "greatest(coalesce(start, 0L), coalesce(alone, 0L))"
    high = f"if(marked, sent, least(sent, coalesce(reached, {low})))"
    counted = tables.kept("silver/epsilon_pairs", _pairs).selectExpr(
        *("life", "sender", "`group`", "profile", "linked", "together", "epsilon_ppm"),
        f"{low} as low",
        f"greatest(0L, {high} - {low}) as wanted",
        f"if(marked, greatest(0L, sent - greatest(coalesce(reached, 0L), {low})), 0L) as unheard",
    )
    lost = _lost(tables, counted.select("life", "sender", "low"))
    summed = counted.join(lost, ["life", "sender"], "left").groupBy("group", "linked")
    return summed.agg(
        F.expr("max(profile) as profile"),
        F.expr("cast(null as bigint) as history"),
        F.expr("max(epsilon_ppm) as epsilon_ppm"),
        F.expr("coalesce(sum(if(together, wanted, 0L)), 0L) as facts"),
        F.expr("coalesce(sum(if(together, least(wanted, unheard + coalesce(lost, 0L)), 0L)), 0L) as missed"),
        F.expr("coalesce(sum(if(together, 0L, wanted)), 0L) as apart"),
    )


def _pairs(tables: Tables) -> DataFrame:
    """Per receiver (`life`) and sender that reached quiet: the receiver's `start`, the last number that was sent, that
    was sent before the receiver was a member (`alone`), and that was `reached`; and whether they stayed `together`."""
    members = tables.lives.where(f"quiet_index is not null and {tables.giving(GOSSIP)}")
    digests = tables.views.where("digest is not null").groupBy("life").agg(F.expr("max_by(digest, index) as digest"))
    receivers = members.join(digests, "life", "left").select(
        "group", "profile", "linked", "marked", "life", "address", "epsilon_ppm", "digest"
    )
    sends = tables.streams.where("kind = 0 and not late")
    sent = sends.groupBy("life").agg(F.max("last").alias("sent"))
    senders = members.join(sent, "life").selectExpr("linked", "life as sender", "address as of", "sent")
    reached = heard(tables).where("not late").groupBy("life", "sender").agg(F.max("last").alias("reached"))
    came = tables.views.selectExpr(
        "life", "index", "explode(array_except(members, coalesce(before, array()))) as other"
    )
    came = came.groupBy("life", "other").agg(F.min("index").alias("since"), F.count("*").alias("times"))
    alone = came.join(sends.select("life", "begin", "last"), "life").where("begin < since")
    alone = alone.groupBy("life", "other").agg(F.max("last").alias("alone"))
    back = came.where("times > 1")  # it was out of the views of the other one for a while
    met = receivers.join(senders, "linked").where("life <> sender")
    for frame, on in (
        (reached, ["life", "sender"]),
        (alone.selectExpr("life as sender", "other as address", "alone"), ["sender", "address"]),
        (back.selectExpr("life", "other as of", "true as left_it"), ["life", "of"]),
        (back.selectExpr("life as sender", "other as address", "true as was_left"), ["sender", "address"]),
    ):
        met = met.join(frame, on, "left")
    return tables.gathered(
        met.selectExpr("*", "digest[of] as start", "left_it is null and was_left is null as together")
    )


def _lost(tables: Tables, lows: DataFrame) -> DataFrame:
    """Per receiver and sender: the messages above `low` that were announced as a gap, or skipped in silence."""
    gaps = tables.events.where("kind = 'gap'").select("life", "sender", "first", "count").join(lows, ["life", "sender"])
    told = gaps.selectExpr("life", "sender", "greatest(0L, first + count - 1 - greatest(first - 1, low)) as lost")
    silent = tables.streams.where("kind = 1 and skipped > 0").join(lows, ["life", "sender"]).where("last > low")
    both = told.unionAll(silent.selectExpr("life", "sender", "skipped as lost"))
    return both.groupBy("life", "sender").agg(F.sum("lost").alias("lost"))


def exact(tables: Tables) -> DataFrame:
    """The few sums above the bound come to this process: SQL has no binomial distribution."""
    suspects = sums(tables).where(_SUSPECT)
    above = {row["linked"]: _sentence(row) for row in suspects.collect() if _is_above(row)}
    detail = F.coalesce(*(F.when(F.col("linked") == linked, text) for linked, text in above.items()), F.lit(""))
    return findings(suspects.where(F.col("linked").isin(*above)), detail)


def _is_above(row: Row) -> bool:
    return log_at_least(row["missed"], row["facts"], row["epsilon_ppm"] / 1e6) < log(LEVEL)


def _sentence(row: Row) -> str:
    missed, facts = row["missed"], row["facts"]
    return (
        f"{missed:,} of {facts:,} messages were missed, {missed / facts:.2%}; their probability is at least "
        f"{share_at_least(missed, facts, LEVEL):.2%} (exact binomial limit, at the level {LEVEL:g}), and the bound is "
        f"{row['epsilon_ppm'] / 1e6:.2%}"
    )


RULE = PromiseRule(
    "epsilon",
    GOSSIP,
    "messages",
    "no two members reached quiet with a message between them",
    counts=(
        Count(
            sums,
            judged=f"if({_BOUND} and {_TELLS}, facts, 0)",
            skipped={
                "a member was out of a view of another one for a while": "apart",
                "no start record states a bound": f"if({_BOUND}, 0, facts)",
                "too few messages to test the bound": f"if({_BOUND} and not ({_TELLS}), facts, 0)",
            },
            suspect=_SUSPECT,
        ),
    ),
    exact=exact,
    columns={
        "lives": {"epsilon_ppm": "coalesce(max(if(kind = 'start', gauges['epsilon_ppm'], null)), 0L)"},
        "streams": {"skipped": "sum(greatest(0L, first - expected))"},
    },
)
