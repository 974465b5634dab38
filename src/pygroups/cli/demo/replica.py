"""One member's table of all records, in the order that all members agree on.  The table is the group's state."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from .feeds import Feed, Record

TABLE: Final = """
CREATE TABLE IF NOT EXISTS records (
    position INTEGER PRIMARY KEY, feed TEXT NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_feed ON records (feed, line);
DELETE FROM records;
"""
ROWS_AT_ONCE: Final = 500
Row = tuple[int, str, int, str]  # position from 0, feed, line from 1, text

_LENGTH: Final = struct.Struct(">I")
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Row])


class Replica:
    """The table in the SQLite file `path`.  The table starts empty; rows of an earlier process are deleted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.base = sqlite3.connect(path, isolation_level=None)
        self.base.execute("PRAGMA journal_mode = WAL")  # so that a state can be read while records are written
        self.base.execute("PRAGMA synchronous = OFF")  # safe for a killed process, though not for a power failure
        self.base.executescript(TABLE)
        self.count = 0

    def apply(self, records: Iterable[Record]) -> None:
        """Append `records`, all or none."""
        rows = [(position, *record) for position, record in enumerate(records, self.count)]
        self._insert(rows)
        self.count += len(rows)

    def _insert(self, rows: Sequence[Row]) -> None:
        self.base.execute("BEGIN")
        self.base.executemany("INSERT INTO records VALUES (?, ?, ?, ?)", rows)
        self.base.execute("COMMIT")

    def next_line(self, feed: str) -> int:
        """The first line of `feed` that is not in the table."""
        (last,) = self.base.execute("SELECT max(line) FROM records WHERE feed = ?", (feed,)).fetchone()
        return 1 + (last or 0)

    def close(self) -> None:
        """Close the table, without the extra files of SQLite."""
        self.base.execute("PRAGMA journal_mode = DELETE")
        self.base.close()

    # -- the state, for pygroups

    async def get_state(self) -> AsyncIterator[bytes]:
        """A snapshot of the current table.  The snapshot is read while the member continues."""
        snapshot = sqlite3.connect(self.path, isolation_level=None)
        snapshot.execute("BEGIN")
        snapshot.execute("SELECT count(*) FROM records").fetchone()  # the first query takes the snapshot
        return _pieces(snapshot)

    async def set_state(self, data: bytes) -> None:
        """Start with the table of another member."""
        rest = memoryview(data)
        while rest:
            (length,) = _LENGTH.unpack_from(rest)
            rows = _decoder.decode(rest[_LENGTH.size : _LENGTH.size + length])
            self._insert(rows)
            self.count += len(rows)
            rest = rest[_LENGTH.size + length :]


async def _pieces(snapshot: sqlite3.Connection) -> AsyncIterator[bytes]:
    try:
        rows = snapshot.execute("SELECT position, feed, line, text FROM records ORDER BY position")
        while some := rows.fetchmany(ROWS_AT_ONCE):
            body = _encoder.encode(some)
            yield _LENGTH.pack(len(body)) + body
    finally:
        snapshot.close()


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of a finished replica, by position."""
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        yield from base.execute("SELECT position, feed, line, text FROM records ORDER BY position")
    finally:
        base.close()


def digest_of(path: Path) -> str:
    """A digest that is equal for two replicas with the same records in the same order."""
    digest = hashlib.sha256()
    for row in rows_of(path):
        digest.update(_encoder.encode(row))
    return digest.hexdigest()


def what_is_wrong(path: Path, feeds: Sequence[Feed]) -> str:
    """The first error of a replica: "" if it has each record of `feeds` once, in the order of its feed."""
    expected = {feed.name: feed.records() for feed in feeds}
    had = dict.fromkeys(expected, 0)
    for place, (position, feed, line, text) in enumerate(rows_of(path)):
        if position != place:
            return f"position {place} is missing"
        if line != had.get(feed, -1) + 1:
            return f"line {line} of {feed} is at position {position}, after line {had.get(feed)}"
        if line > len(expected[feed]) or text != expected[feed][line - 1]:
            return f"line {line} of {feed} has another text"
        had[feed] = line
    lacking = [f"{len(lines) - had[feed]:,} of {feed}" for feed, lines in expected.items() if had[feed] < len(lines)]
    return f"records are missing: {', '.join(lacking)}" if lacking else ""
