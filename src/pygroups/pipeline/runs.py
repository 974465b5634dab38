"""The records about each run, added up: all sends, and a sample of the deliveries.

Where the digests of two members are equal in a view, one of them stands for both: equal blocks prove equal bodies.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.block_scan import LANE, named

if TYPE_CHECKING:
    from pygroups.pipeline.tables import Tables

LABEL: Final = "xxhash64(count, bytes, checksum)"
RUN: Final = ("sender", "peer", "first")
_OF_RUN: Final = {
    "history": "min(history)",
    "life": "min(life)",
    "sends": "count_if(kind in (0, 2))",
    "deliveries": "count_if(kind in (1, 3))",
    "delivered": "sum(if(kind in (1, 3), count, 0))",
    "low_label": "min(label)",
    "high_label": "max(label)",
    "low_view": "min(in_view)",
    "high_view": "max(in_view)",
}


def runs_of(sample: DataFrame, lives: DataFrame) -> DataFrame:
    """One row per run `(sender, peer, first)` in a sample (`sample_of`); `peer` is 0 for a multicast.

    Columns: group, profile, history; sends, deliveries (records that were looked at), delivered (their messages);
    `low_label` and `high_label`, the least and greatest hash of count, bytes and checksum in these records;
    `low_view` and `high_view` of those in which it was delivered; `origin_whole` and
    `origin_open`, null without the sender's journal; `ahead`, whether an open journal of the sender ends before it.
    """
    said = sample.selectExpr(
        *("kind", "life", "history", "sender", "peer", "first", "count", "in_view"),
        f"{LABEL} as label",
    )
    runs = said.groupBy(*RUN).agg(*(F.expr(text).alias(name) for name, text in _OF_RUN.items()))
    known = runs.join(lives.select("life", "group", "profile"), "life", "left").join(origins(lives), "sender", "left")
    ahead = "coalesce(if(peer = 0, first > own_last, origin_open), false) as ahead"
    return known.selectExpr(*(name for name in known.columns if name not in ("life", "own_last")), ahead)


def sample_of(records: DataFrame, blocks: DataFrame, lives: DataFrame, *, whole: bool) -> DataFrame:
    """The records to add up, of trusted run records of the kinds 0 to 3.

    All sends and unicasts are read. If members of a view had the same deliveries, those of one member are read.
    Deliveries from a sender whose journal ends early are read at all members, because integrity counts each of them;
    with `whole` there is no such journal.

    Columns beside: `peer` is 0 for a multicast; `in_view`, null but for a multicast that was delivered; `part` is 0 for
    what origins sent, and for deliveries of the members that stand for others, otherwise the key of the incarnation.
    """
    of_reference = "bool_or(life = reference) as stands"
    chosen = blocks.where("life = reference or deviates").selectExpr(
        "life ^ view ^ lane as chosen", "life", "reference"
    )
    chosen = chosen.groupBy("chosen").agg(F.expr(of_reference))
    lane = f"life ^ view ^ {LANE} = chosen"
    known = records.join(chosen, F.expr(f"kind = 1 and {lane}"), "left")
    kept = "kind <> 1 or view is null or chosen is not null"
    if not whole:
        broken = lives.where("not whole").selectExpr("life as broken")
        known = known.join(broken, F.expr("kind = 1 and sender = broken"), "left")
        kept = f"{kept} or broken is not null"
    return known.where(kept).selectExpr(
        *("kind", "life", "history", "sender", "first", "count", "bytes", "checksum"),
        "coalesce(peer, 0L) as peer",
        "if(kind = 1, view, null) as in_view",
        "if(kind <> 1 or stands, 0L, life) as part",
    )


def origins(lives: DataFrame) -> DataFrame:
    """Per sender with a journal whether it is whole and open, and its greatest own number if it is open."""
    return lives.selectExpr("life as sender", "whole as origin_whole", "open as origin_open", "own_last")


def said_of(tables: "Tables") -> DataFrame:
    """All that was sent or delivered: trusted run records of the kinds 0 to 3, with `peer` 0 for a multicast."""
    columns = ("group", "history", "kind", "life", "index", "view", "position", "sender", "first", "count", "bytes")
    rows = [
        frame.selectExpr(*columns, "checksum", "coalesce(peer, 0L) as peer")
        for frame in (tables.sends, tables.deliveries, tables.unicasts)
    ]
    return rows[0].unionAll(rows[1]).unionAll(rows[2])


def given_marks(views: DataFrame) -> DataFrame:
    """Per incarnation, epoch and sender: up to which number the given state covers the sender's messages."""
    entries = views.where("digest is not null").select(
        "group", "life", "epoch", F.explode("digest").alias("at", "mark")
    )
    origin = "split(at, '@', 2)"
    return entries.selectExpr(
        "life", "epoch", *named({"sender": f"xxhash64(`group`, {origin}[0], {origin}[1])"}), "mark"
    )
