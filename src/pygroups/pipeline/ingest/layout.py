"""The tables of a history as Arrow schemas: `ingest` writes them, and all others read them. This module needs pyarrow.

Partition columns (`group string`, `day date`) stand in the names of folders, not in the files; a reader adds them.
"""

import json
from pathlib import Path
from typing import Final

import pyarrow as pa

from pygroups.journal.reader import TYPES

FORMAT: Final = 1
TABLE_FILE: Final = "table.json"
LOCK_FILE: Final = "lock"
AUDITED: Final = ("silver", "gold")
"""Folders beside those of a table, in which an audit with `--out` keeps what it made of the table."""

SEND: Final = 0
DELIVER: Final = 1
UNICAST_SEND: Final = 2
UNICAST_DELIVER: Final = 3
ORDER: Final = 4
RUN_KINDS: Final = {
    "send": SEND,
    "deliver": DELIVER,
    "unicast_send": UNICAST_SEND,
    "unicast_deliver": UNICAST_DELIVER,
    "order": ORDER,
}
"""The kinds of record that stand in `runs`, and their numbers in its column `kind`."""
VOTE_KINDS: Final = ("stable", "purge")
"""The kinds of record that stand in `votes`; all others stand in `events`."""

_LONG = pa.int64()
_PLACE: Final = [("index", _LONG), ("time_us", _LONG), ("mono_us", _LONG)]

RUNS: Final = pa.schema(
    [
        ("kind", pa.int8()),
        ("life", _LONG),
        *_PLACE,
        *((name, _LONG) for name in ("view", "history", "sender", "first")),
        ("count", pa.int32()),
        *((name, _LONG) for name in ("bytes", "checksum", "stream", "seq", "position", "order")),
        *((name, _LONG) for name in ("expected", "peer", "connection", "counted")),
    ]
)
"""One row per run record. `life`, `view`, `history`, `sender`, `stream` and `peer` are keys (`keys.py`).

`expected` (kind DELIVER): the number that continues this sender's numbers at this life, before this record; null where
none is expected yet.  `counted` (kind DELIVER): the messages that this journal has in the view before this record; null
without a view, and in rows of an ingest that did not count.
"""

EVENT_COLUMNS: Final = (
    *("members", "transitional", "subgroups", "primary", "previous_number", "previous_creator"),
    *("ballot_number", "ballot_leader", "stage", "next_number", "next_creator", "origin", "origin_incarnation"),
    *("first", "count", "bytes", "checksum", "stream", "seq", "position", "order", "peer", "connection"),
    *("low", "high", "digest", "gauges", "reason", "detail"),
)
"""The columns of `events` that are the journal's own."""

EVENTS: Final = pa.schema(
    [
        ("life", _LONG),
        *_PLACE,
        ("kind", pa.string()),
        ("view", _LONG),
        ("history", _LONG),
        ("view_number", _LONG),
        ("view_creator", pa.string()),
        ("previous", _LONG),
        ("sender", _LONG),
        *((name, TYPES[name]) for name in EVENT_COLUMNS),
        ("expected", _LONG),
    ]
)
"""One row per record of a kind that is neither in `runs` nor in `votes`. `expected` is filled for `gap` only."""

VOTES: Final = pa.schema(
    [
        ("life", _LONG),
        *_PLACE,
        ("kind", pa.string()),
        ("view", _LONG),
        ("history", _LONG),
        ("digest", TYPES["digest"]),
    ]
)
"""One row per `stable` or `purge` record."""

ROWS: Final = {"runs": RUNS, "events": EVENTS, "votes": VOTES}
"""The tables that are partitioned by group and day."""

NAMES: Final = pa.schema(
    [
        ("group", pa.string()),
        ("kind", pa.string()),
        ("key", _LONG),
        ("name", pa.string()),
        ("number", _LONG),
        ("creator", pa.string()),
    ]
)
"""What a key stands for: kind "life" (an address), "view" (also its number and creator) or "history". Rows repeat."""

MANIFEST: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("commit", "group", "member", "incarnation", "profile", "host", "boot_id")),
        ("life", _LONG),
        ("address", pa.string()),
        ("file", pa.string()),
        ("segment", pa.int32()),
        *((name, _LONG) for name in ("begin", "end", "first_index", "last_index", "rows", "wrong_index")),
        ("damage", pa.string()),
        ("damage_offset", _LONG),
        ("bytes", _LONG),
        ("files", pa.list_(pa.string())),
        ("kinds", pa.list_(pa.string())),
        *((name, _LONG) for name in ("first_us", "last_us", "last_mono_us")),
        ("services", pa.list_(pa.string())),
    ]
)
"""One row per byte range of a segment that was ingested; a second damaged place in it is a further row without rows.

`wrong_index`: where the numbers in the range stop being consecutive: the first one that is missing, or that was there
before. The records of a life from there on are not trusted. `first_us` and `last_us` are the least and the greatest
`time_us` of the range's records, `last_mono_us` is their greatest `mono_us`.
`services` are those of the header; null in rows of an earlier ingest.
"""


def is_table(path: Path) -> bool:
    """Whether the folder `path` is a table of histories, of any format."""
    return (path / TABLE_FILE).is_file()


def format_of(path: Path) -> int | None:
    """The format that the table names in its own file; None if this file cannot be read or decoded."""
    try:
        told = json.loads((path / TABLE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    number = told.get("format") if isinstance(told, dict) else None
    return number if isinstance(number, int) else None
