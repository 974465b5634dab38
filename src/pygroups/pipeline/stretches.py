"""Stretches of a sender's numbers: digests clear most stretches, so that few runs are added up one by one.

A stretch has the runs that begin in a range of BLOCK numbers of one sender. The sends are one part of it, and the
deliveries in a sample (`sample_of`) are others: those of the members that stand for the rest together, and those of
each further member.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.block_scan import BLOCK, named
from pygroups.pipeline.runs import origins

_STRETCH: Final = ("sender", "peer", "stretch")
_LOW: Final = "({value} & 2147483647)"
_HIGH: Final = "shiftrightunsigned({value}, 33)"
_OF_PART: Final = {
    "low": "min(first)",
    "high": "max(first + count)",
    "bodies": "bit_xor(body)",
    "views": "bit_xor(viewed)",
    "bits": "bit_xor(begin ^ end)",
    "low_sum": f"sum({_LOW.format(value='begin')} - {_LOW.format(value='end')})",
    "high_sum": f"sum({_HIGH.format(value='begin')} - {_HIGH.format(value='end')})",
}
_FOLLOWS: Final = f"""
    bits = begin ^ end and low_sum = {_LOW.format(value="begin")} - {_LOW.format(value="end")}
        and high_sum = {_HIGH.format(value="begin")} - {_HIGH.format(value="end")}
"""
_CLEAR: Final = """
    bool_and(follows) and min(bodies) = max(bodies)
        and not coalesce(min(if(sent, null, views)) <> max(if(sent, null, views)), false)
"""
_KEY: Final = "sender ^ peer ^ stretch as stretch"


def doubtful(sample: DataFrame, lives: DataFrame) -> DataFrame:
    """The stretches in which a run may be at odds with another record of it: one key (`stretch`) for each.

    A stretch is clear if in each part the runs follow one another without a hole, all parts have the same bodies, and
    the parts of deliveries the same views. Deliveries without sends are clear only where there is no journal of the
    sender, and nothing is clear of a sender whose journal ends early, nor a unicast of one whose journal is open.

    The runs [first, end) of a part follow one another if their firsts without the least are their ends without the
    greatest: then none is there twice, and digests of bodies are those of sets. All comparisons are of digests.
    """
    rows = sample.selectExpr(
        *("sender", "peer", "part", "kind in (0, 2) as sent", "first", "count"),
        f"first div {BLOCK} as stretch",
        "xxhash64(first, count, bytes, checksum) as body",
        "xxhash64(first, in_view) as viewed",
        "xxhash64(first) as begin",
        "if(count > 0, xxhash64(first + count), 1L) as end",
    )
    parts = rows.groupBy(*_STRETCH, "part", "sent").agg(*map(F.expr, named(_OF_PART)))
    known = parts.selectExpr("*", "xxhash64(low) as begin", "xxhash64(high) as end")
    whole = known.selectExpr(*_STRETCH, "sent", "bodies", "views", f"{_FOLLOWS} as follows").groupBy(*_STRETCH)
    judged = whole.agg(F.expr(f"{_CLEAR} as clear"), F.expr("bool_or(sent) as sends")).join(
        origins(lives), "sender", "left"
    )
    sent = "origin_whole and sends and (peer = 0 or not origin_open)"
    cleared = f"clear and if(origin_whole is null, true, {sent})"
    return judged.where(f"not ({cleared})").selectExpr(_KEY)


def within(sample: DataFrame, stretches: DataFrame) -> DataFrame:
    """The records of a sample in these stretches, and in other stretches that share a key with one of them."""
    rows = sample.selectExpr("*", _KEY.replace("stretch", f"(first div {BLOCK})", 1))
    return rows.join(stretches, "stretch", "left_semi").drop("stretch")
