"""Rows of Spark in a group: the messages of `df.write.format("pygroups")`, for the programs that receive them.

Spark repeats a task that failed, so the sink sends each row at least once.  Each message has a tag, and `Rows` drops
the repeats.  This module does not need Spark.  Guide: docs/guides/spark.md.
"""

from __future__ import annotations

from typing import Final

import msgspec

SOURCES_MAX: Final = 1_000
"""The writes that `Rows` remembers; the one that was silent for longest is forgotten first."""


class Tagged(msgspec.Struct, frozen=True, array_like=True):
    """A row as a message: row number `row`, from 0, of part `part` of batch `batch` of a write.

    - source: the id of a streaming query, which stays after a restart, or of one write of a DataFrame
    - batch: the number of the micro-batch, 0 for a DataFrame; batches follow one another
    - part: the partition; its rows come in their order from each attempt
    """

    source: str
    batch: int
    part: int
    row: int
    payload: bytes


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Tagged)


def encode(row: Tagged) -> bytes:
    """The payload of a row's message."""
    return _encoder.encode(row)


class Rows:
    """Takes the rows out of messages, each once, in the order of the group.

        rows = Rows()
        async for event in channel:
            if isinstance(event, pygroups.Message) and (payload := rows.take(event.payload)) is not None:
                ...

    Members that take the same messages from the first one on have the same rows.  The numbers of the newest batch of
    each source are in memory, and no rows.
    """

    def __init__(self) -> None:
        self._sources: dict[str, tuple[int, dict[int, int]]] = {}  # the newest batch, and the next row of its parts

    def take(self, payload: bytes) -> bytes | None:
        """The row in the payload of a message, or None for a repeat.  Raises ValueError for a message without a tag."""
        try:
            row = _decoder.decode(payload)
        except msgspec.MsgspecError as error:
            raise ValueError(f"the message is no row of Spark's sink: {error}") from error
        batch, following = self._sources.pop(row.source, (row.batch, {}))
        if row.batch > batch:
            batch, following = row.batch, {}
        self._sources[row.source] = batch, following
        if len(self._sources) > SOURCES_MAX:
            del self._sources[next(iter(self._sources))]
        if row.batch < batch or row.row < following.get(row.part, 0):
            return None
        following[row.part] = row.row + 1
        return row.payload
