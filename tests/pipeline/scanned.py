"""Deliveries of views made by hand, as rules read them: for each member a line of runs in the order delivered.

"b1" is the run of b that begins with message 1; "b1*40000" has so many messages, "b1!" another body than its origin
sent, "b1?" no position. A query costs seconds and a view in it nothing: the cases of a test file are views, and groups,
of one history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pygroups.pipeline.block_scan import blocks_of, streams_of
from pygroups.pipeline.findings import columns_of
from pygroups.pipeline.promises import RULES
from pygroups.pipeline.runs import runs_of, sample_of
from pygroups.pipeline.stretches import doubtful, within

LETTERS = "ABCDEFGH"
_RECORDS = """
    `group` string, profile string, ordered boolean, quiet_end bigint, kind int, life bigint, view bigint,
    history bigint, index bigint, sender bigint, first bigint, count int, bytes bigint, checksum bigint, stream bigint,
    seq bigint, position bigint, expected bigint, peer bigint, counted bigint
"""
_LIVES = (
    "`group` string, profile string, ordered boolean, life bigint, first_view bigint, quiet_end bigint, "
    "stop_index bigint, whole boolean"
)
_SCATTER = 0x9E3779B97F4A7C15
Members = dict[str, str]


def life_of(name: str, view: int) -> int:
    """The key of a member or sender of a view."""
    return _key(view << 7 | ord(name.upper()))


NONE_OPEN, NO_OWN_LAST = "false as open", "cast(null as bigint) as own_last"  # each journal has ended


def name_of(life: int) -> str:
    return chr(_number(life) & 127)


def place_of(view: int) -> int:
    """The place of a view among those of `scanned`, by its key."""
    return _number(view) >> 7


def _key(number: int) -> int:
    """Keys are hashes: scattered over 64 bits."""
    return (number * _SCATTER + (1 << 63)) % (1 << 64) - (1 << 63)


def _number(key: int) -> int:
    return key * pow(_SCATTER, -1, 1 << 64) % (1 << 64)


def scanned(spark: SparkSession, views: Sequence[Members], profile: str = "total", broken: str = "") -> Any:
    """Streams, blocks, runs and the frames below them, of views whose members are listed in this order.

    Views are told apart by their place in `views`: `place_of`, and of their groups "g0", "g1" and so on.
    The journals of the members in `broken` end early.
    """
    records = [row for view, members in enumerate(views) for row in _of_view(view, members, profile)]
    listed = [row for view, members in enumerate(views) for row in _listed(view, "".join(members))]
    known = [
        (f"g{view}", profile, profile == "total", life_of(n, view), 0, None, None, n not in broken)
        for view in range(len(views))
        for n in LETTERS
    ]
    lives = spark.createDataFrame(known, _LIVES).selectExpr("*", NONE_OPEN, NO_OWN_LAST).coalesce(1)
    frame = spark.createDataFrame(records, _RECORDS).coalesce(1).localCheckpoint()
    deliveries = frame.where("kind = 1")
    streams = streams_of(frame, lives, None, columns_of(RULES, "streams"), going_on=False).localCheckpoint()
    blocks = blocks_of(deliveries, lives, streams, {}).localCheckpoint()
    sample = sample_of(frame, blocks, lives, whole=not broken)
    kept: dict[str, DataFrame] = {}

    def once(name: str, make: Callable[[Any], DataFrame]) -> DataFrame:
        if name not in kept:
            kept[name] = make(tables).localCheckpoint()
        return kept[name]

    tables = SimpleNamespace(
        lives=lives,
        views=spark.createDataFrame(listed, "view bigint, life bigint, address string, members array<string>").coalesce(
            1
        ),
        deliveries=deliveries,
        streams=streams,
        blocks=blocks,
        runs=runs_of(sample, lives),
        in_doubt=runs_of(within(sample, doubtful(sample, lives)), lives),
        once=once,
    )
    return tables


def _of_view(view: int, members: Members, profile: str) -> list[tuple[Any, ...]]:
    rows = [row for name, line in members.items() for row in _delivered(view, name, line, profile)]
    return rows + [_sent(view, *run, profile=profile) for run in sorted({_label(row) for row in rows if row[13] > 0})]


def _delivered(view: int, name: str, line: str, profile: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    position, nexts = 0, dict.fromkeys("abcdefgh", 1)
    for index, word in enumerate(line.split()):
        run, _, many = word.rstrip("!?").partition("*")
        sender, first, count = run[0], int(run[1:]), int(many or 1)
        body = -first if word.endswith("!") else first
        place = None if word.endswith("?") else position
        known = (f"g{view}", profile, profile == "total", None, 1, life_of(name, view), _key(view << 7), None, index)
        label = (life_of(sender, view), first, count, count, body)
        rows.append((*known, *label, 1, index, place, nexts[sender], None, position))
        position += count
        nexts[sender] = max(nexts[sender], first + count)
    return rows


def _label(row: tuple[Any, ...]) -> tuple[int, int, int, int]:
    return row[9], row[10], row[11], row[13]


def _sent(view: int, sender: int, first: int, count: int, body: int, *, profile: str) -> tuple[Any, ...]:
    known = (f"g{view}", profile, profile == "total", None, 0, sender, _key(view << 7), None)
    known = (*known, first, sender, first, count, count)
    return (*known, body, None, None, None, None, None, None)


def _listed(view: int, names: str) -> list[tuple[Any, ...]]:
    addresses = [f"{name}@1" for name in names]
    return [
        (_key(view << 7), life_of(name, view), address, addresses)
        for name, address in zip(names, addresses, strict=True)
    ]
