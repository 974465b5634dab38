"""The passes over run records that all rules share: streams, and blocks of a view's order. The passes need trusted
records.

Each pass is one aggregation with 64-bit keys. Members with equal digests had the same runs. Where digests differ, an
exact step reads the records again (`order.py`, `sets.py`).
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.keys import life_key_of

BLOCK: Final = 65_536  # messages; a run belongs to the block of its first position
DIGEST: Final = ("bits", "low_sum", "high_sum")
LANE: Final = "if(ordered, 0L, sender)"
PLACE: Final = "if(ordered, position, first)"


def digest_of(value: str, prefix: str = "") -> dict[str, str]:
    """An order-free digest of many 64-bit values as SQL aggregates: xor, and the sums of two 31-bit halves.

    An xor alone cannot see a pair, and a sum alone cannot see values that cancel out. Nulls do not count.
    """
    return {
        f"{prefix}bits": f"coalesce(bit_xor({value}), 0L)",
        f"{prefix}low_sum": f"coalesce(sum({value} & 2147483647), 0L)",
        f"{prefix}high_sum": f"coalesce(sum(shiftrightunsigned({value}, 33)), 0L)",
    }


def merged(prefix: str = "") -> dict[str, str]:
    """Digests of parts as the digest of the whole: SQL aggregates."""
    bits, low, high = (prefix + name for name in DIGEST)
    return {bits: f"bit_xor({bits})", low: f"sum({low})", high: f"sum({high})"}


def named(columns: Mapping[str, str]) -> list[str]:
    """SQL texts, each with the name of its column."""
    return [f"{text} as {name}" for name, text in columns.items()]


_STREAM: Final = ("kind", "life", "view", "sender", "stream", "late")
_OF_STREAM: Final = {
    "history": "max(history)",
    "runs": "count(1)",
    "messages": "sum(count)",
    "begin": "min(index)",
    "last": "max(first + count - 1)",
    "stop": "max(place + count)",
    "ahead": "sum(if(first > own_last, count, 0))",
    **digest_of("run"),
}
_STABLE: Final = {
    "below": "max(below)",
    "stable_messages": "sum(if(kept is null, 0, count))",
    **digest_of("kept", "stable_"),
}


def streams_of(
    records: DataFrame, lives: DataFrame, purges: DataFrame | None, columns: Mapping[str, str], *, going_on: bool
) -> DataFrame:
    """One row per (kind, life, view, sender, stream, late): a member's sends or deliveries of one sender in a view.

    `records` are trusted run records of the kinds 0 to 3; `purges` (`purges_of`) may be None; `columns` are the columns
    of rules, SQL aggregates by name.  Columns: group, profile, ordered, history; `late` (at or behind the end of
    quiet); runs, messages; `begin`, the first index; `last`, the greatest number; `stop`, the place behind the last
    run; `ahead`, the messages numbered above all that an open journal of the sender has; the digest of the runs
    (`bits`, `low_sum`, `high_sum`), and the same with `stable_` of the runs purged by votes, with `stable_messages`,
    and the number `below` which votes purge runs; of the incarnation `first_view`, `settles` (whether the incarnation
    reaches quiet), `stops` (whether its journal has a stop); `origin_whole` and `origin_open`, null without the
    sender's journal. With `going_on` a journal is open.
    """
    rows = records.selectExpr(
        *("kind", "life", "view", "history", "index", "sender", "first", "count", "stream", "seq", "expected"),
        f"{PLACE} as place",
        "coalesce(index >= quiet_end, false) as late",
        "xxhash64(sender, first) as run",
    )
    if going_on:
        rows = rows.join(lives.where("open").selectExpr("life as sender", "own_last"), "sender", "left")
    else:
        rows = rows.selectExpr("*", "cast(null as bigint) as own_last")
    wanted = _OF_STREAM | dict(columns)
    if purges is not None:
        below = purges.selectExpr("view ^ stream as purged", "below")
        rows = rows.join(below, F.expr("view ^ stream = purged"), "left").selectExpr(
            *rows.columns, "below", "if(seq < below, run, null) as kept"
        )
        wanted |= _STABLE
    sums = rows.groupBy(*_STREAM).agg(*(F.expr(text).alias(name) for name, text in wanted.items()))
    members = lives.selectExpr(
        *("life", "group", "profile", "first_view", "ordered"),
        "quiet_end is not null as settles",
        "stop_index is not null as stops",
    )
    origins = lives.selectExpr("life as sender", "whole as origin_whole", "open as origin_open")
    return sums.join(members, "life", "left").join(origins, "sender", "left")


def purges_of(votes: DataFrame) -> DataFrame:
    """Per view and stream: the number below which votes let the members purge runs.  Columns group, view, stream,
    below."""
    entries = votes.where("kind = 'purge' and view is not null").select(
        "group", "view", F.explode("digest").alias("address", "mark")
    )
    highest = entries.groupBy("group", "view", "address").agg(F.max("mark").alias("below"))
    return highest.where("below > 0").select("group", "view", life_key_of(F.col("address")).alias("stream"), "below")


_BLOCK: Final = ("life", "view", "lane", "block", "slot")
_OF_BLOCK: Final = {
    "history": "max(history)",
    "runs": "count(1)",
    "messages": "sum(count)",
    "stop": "max(place + count)",
    **digest_of("value"),
}


def blocks_of(deliveries: DataFrame, lives: DataFrame, streams: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """One row per (life, view, lane, block, slot): a member's deliveries there, compared with all others.

    An ordered profile has one lane in a view, whose blocks are of positions; another a lane for each sender, whose
    blocks are of numbers. A block is cut into slots where a member's deliveries end, so that a dead member's last
    block is compared at equal length. Deliveries of an ordered profile without a position have a null block.

    Columns: group, profile, ordered, history, runs, messages, stop; `digest` of places, runs and bodies; `members`, how
    many have this slot; `differs`, whether their digests do; `reference`, the member that got furthest in the lane;
    `deviates`, whether this member is another than the reference and differs from it here.
    """
    rows = cut(deliveries.where("view is not null"), cuts_of(streams)).selectExpr(
        *(*_BLOCK, "history", "count", "place", "position", "counted"),
        "xxhash64(if(ordered, position, null), sender, first, count, bytes, checksum) as value",
    )
    wanted = _OF_BLOCK | dict(columns)
    sums = rows.groupBy(*_BLOCK).agg(*(F.expr(text).alias(name) for name, text in wanted.items()))
    digests = sums.selectExpr(
        *(*_BLOCK, "history", "runs", "messages", "stop", *columns),
        f"xxhash64(runs, {', '.join(DIGEST)}) as digest",
        "max_by(life, struct(stop, life)) over (partition by view, lane) as reference",
    )
    together = "over (partition by view, lane, block, slot)"
    compared = digests.selectExpr(
        "*",
        f"count(1) {together} as members",
        f"block is not null and min(digest) {together} <> max(digest) {together} as differs",
        f"max(if(life = reference, digest, null)) {together} as expected",
    )
    deviates = "life <> reference and (expected is null or expected <> digest) as deviates"
    known = compared.selectExpr(*(name for name in compared.columns if name != "expected"), deviates)
    return known.join(lives.selectExpr("life", "group", "profile", "ordered"), "life", "left")


def cuts_of(streams: DataFrame) -> DataFrame:
    """The cuts of blocks: the places at which deliveries of a member in a lane of a view end, but for the last.

    Columns: `at` (view, lane and block in one), `low`, `high` (places), `slot`, from 1.
    """
    ends = streams.where("kind = 1 and view is not null").selectExpr("life", "view", f"{LANE} as lane", "stop")
    ends = ends.groupBy("view", "lane", "life").agg(F.max("stop").alias("stop"))
    lanes = ends.groupBy("view", "lane").agg(F.expr("array_sort(collect_set(stop))").alias("stops"))
    ragged = lanes.where("size(stops) > 1").select("view", "lane", "stops", F.posexplode("stops").alias("at", "low"))
    return ragged.where("at < size(stops) - 1").selectExpr(
        f"view ^ lane ^ (low div {BLOCK}) as at", "low", "stops[at + 1] as high", "at + 1 as slot"
    )


def cut(deliveries: DataFrame, cuts: DataFrame) -> DataFrame:
    """Deliveries with `lane`, `place`, `block` and `slot`."""
    placed = deliveries.selectExpr("*", f"{LANE} as lane", f"{PLACE} as place").selectExpr(
        "*", f"place div {BLOCK} as block"
    )
    inside = F.expr("view ^ lane ^ block = at and place >= low and place < high")
    found = placed.join(cuts, inside, "left")
    return found.selectExpr(*placed.columns, "coalesce(slot, 0) as slot")
