"""Deliveries of one view made by hand, as rules read them: for each member a line of runs in the order delivered.

"b1" is the run of b that begins with message 1; "b1*40000" has so many messages, "b1!" another body than its origin
sent, "b1?" no position.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pygroups.pipeline.runs import runs_of
from pygroups.pipeline.scan import blocks_of, streams_of

VIEW = 77
_RECORDS = """
    `group` string, profile string, ordered boolean, quiet_end bigint, kind int, life bigint, view bigint,
    history bigint, index bigint, sender bigint, first bigint, count int, bytes bigint, checksum bigint, stream bigint,
    seq bigint, position bigint, expected bigint, peer bigint
"""
_LIVES = (
    "`group` string, profile string, life bigint, first_view bigint, quiet_end bigint, stop_index bigint, whole boolean"
)


def life_of(name: str) -> int:
    """The key of a member or sender: any number will do."""
    return ord(name.upper())


def name_of(life: int) -> str:
    return chr(life)


def scanned(spark: SparkSession, members: dict[str, str], profile: str = "total", whole: bool = True) -> Any:
    """Streams, blocks, runs and the frames below them, of a view whose members are listed in this order."""
    ordered = profile == "total"
    rows = [row for name, line in members.items() for row in _delivered(name, line, profile, ordered)]
    rows += [
        _sent(*run, profile=profile, ordered=ordered) for run in sorted({_label(row) for row in rows if row[13] > 0})
    ]
    records = spark.createDataFrame(rows, _RECORDS)
    lives = spark.createDataFrame([("g", profile, life_of(n), 0, None, None, whole) for n in "ABCDEFGH"], _LIVES)
    deliveries = records.where("kind = 1")
    streams = streams_of(records, lives, None, {})
    blocks = blocks_of(deliveries, lives, streams, {})
    return SimpleNamespace(
        lives=lives,
        views=_views(spark, "".join(members)),
        deliveries=deliveries,
        streams=streams,
        blocks=blocks,
        runs=runs_of(records, blocks, lives, whole=whole),
    )


def _delivered(name: str, line: str, profile: str, ordered: bool) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    position, nexts = 0, dict.fromkeys("abcdefgh", 1)
    for index, word in enumerate(line.split()):
        run, _, many = word.rstrip("!?").partition("*")
        sender, first, count = run[0], int(run[1:]), int(many or 1)
        body = -first if word.endswith("!") else first
        place = None if word.endswith("?") else position
        known = ("g", profile, ordered, None, 1, life_of(name), VIEW, None, index, life_of(sender), first, count, count)
        rows.append((*known, body, 1, index, place, nexts[sender], None))
        position += count
        nexts[sender] = max(nexts[sender], first + count)
    return rows


def _label(row: tuple[Any, ...]) -> tuple[int, int, int, int]:
    return row[9], row[10], row[11], row[13]


def _sent(sender: int, first: int, count: int, body: int, *, profile: str, ordered: bool) -> tuple[Any, ...]:
    known = ("g", profile, ordered, None, 0, sender, VIEW, None, first, sender, first, count, count, body)
    return (*known, None, None, None, None, None)


def _views(spark: SparkSession, names: str) -> DataFrame:
    addresses = [f"{name}@1" for name in names]
    rows = [(VIEW, life_of(name), address, addresses) for name, address in zip(names, addresses, strict=True)]
    return spark.createDataFrame(rows, "view bigint, life bigint, address string, members array<string>")
