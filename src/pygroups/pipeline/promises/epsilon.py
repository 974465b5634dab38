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

    A fact is a message of another member, behind the point at which the receiver began.  What was announced as a gap
    is missed.  Without marks a message that the receiver has not heard of may have been sent after it left.
    """
    pairs = _pairs(tables)
    start = "coalesce(start, 0L)"
    wanted = f"greatest(0L, if(marked, sent, least(sent, coalesce(reached, {start}))) - {start})"
    counted = pairs.selectExpr(
        *("`group`", "profile", "linked", "together", "epsilon_ppm"),
        f"{wanted} as wanted",
        f"greatest(0L, {wanted} - coalesce(delivered, 0L)) as lacks",
    )
    return counted.groupBy("group", "linked").agg(
        F.expr("max(profile) as profile"),
        F.expr("cast(null as bigint) as history"),
        F.expr("max(epsilon_ppm) as epsilon_ppm"),
        F.expr("coalesce(sum(if(together, wanted, 0L)), 0L) as facts"),
        F.expr("coalesce(sum(if(together, lacks, 0L)), 0L) as missed"),
        F.expr("coalesce(sum(if(together, 0L, wanted)), 0L) as apart"),
    )


def _pairs(tables: Tables) -> DataFrame:
    """Per receiver and sender that reached quiet: the first number, those sent, delivered and reached, and whether they
    stayed `together`: the later one had the other in its first view, and none of the two came back to the other."""
    settled = tables.lives.where(f"quiet_index is not null and {tables.giving(GOSSIP)}")
    first = tables.views.groupBy("life").agg(F.expr("min_by(members, index) as first_members"))
    began = (
        tables.views.where("digest is not null")
        .groupBy("life")
        .agg(F.expr("max_by(digest, index) as digest"), F.expr("max(index) as begun"))
    )
    members = settled.join(first, "life").join(began, "life", "left")
    receivers = members.select(
        "group", "profile", "linked", "marked", "life", "address", "epsilon_ppm", "first_members", "digest"
    )
    streams = tables.streams.where("not late")
    sends = streams.where("kind = 0").groupBy("life").agg(F.max("last").alias("sent"))
    senders = members.join(sends, "life").selectExpr(
        *("linked", "life as sender", "address as of", "first_members as of_members", "sent")
    )
    got = (
        streams.where("kind = 1")
        .join(began.select("life", "begun"), "life", "left")
        .where("begun is null or begin > begun")
        .groupBy("life", "sender")
        .agg(F.sum("messages").alias("delivered"))
    )
    reached = heard(tables).where("not late").groupBy("life", "sender").agg(F.max("last").alias("reached"))
    back = _came_back(tables)
    met = receivers.join(senders, "linked").where("life <> sender")
    met = met.join(got, ["life", "sender"], "left").join(reached, ["life", "sender"], "left")
    met = met.join(back.selectExpr("life", "other as of", "true as left_it"), ["life", "of"], "left")
    met = met.join(
        back.selectExpr("life as sender", "other as address", "true as was_left"), ["sender", "address"], "left"
    )
    knew = "(array_contains(first_members, of) or array_contains(of_members, address))"
    return tables.gathered(
        met.selectExpr("*", "digest[of] as start", f"{knew} and left_it is null and was_left is null as together")
    )


def _came_back(tables: Tables) -> DataFrame:
    """The members (addresses, `other`) that came into the views of a member for a second time."""
    came = tables.views.selectExpr("life", "explode(array_except(members, coalesce(before, array()))) as other")
    return came.groupBy("life", "other").agg(F.count("*").alias("times")).where("times > 1").select("life", "other")


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
    columns={"lives": {"epsilon_ppm": "coalesce(max(if(kind = 'start', gauges['epsilon_ppm'], null)), 0L)"}},
)
