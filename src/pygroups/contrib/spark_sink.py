"""Spark's sink `pygroups`: each task joins the group, sends its rows, waits until all members have them, and leaves.

Guide: docs/guides/spark.md.  `spark.py` has the messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark import TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import BinaryType, StringType, StructType

from pygroups.channel import Channel
from pygroups.contrib.spark import Tagged, encode

if TYPE_CHECKING:
    import pyarrow as pa

PAYLOAD: Final = "payload"
OPTIONS: Final = ("group", "profile", "discovery", "secret", "timeout")
_OF_SPARK: Final = ("path", "paths", "checkpointlocation", "queryname")
TIMEOUT_S: Final = 60.0
_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"


@dataclass(frozen=True)
class Target:
    """The group of a sink, and how a task joins it.  `timeout`: the most seconds to join, and to hand over the rows."""

    group: str
    profile: str = "total"
    discovery: str | None = None
    secret: str | None = None
    timeout: float = TIMEOUT_S

    @asynccontextmanager
    async def joined(self) -> AsyncIterator[Channel]:
        """A channel that only sends."""
        more: dict[str, Any] = {} if self.discovery is None else {"discovery": self.discovery}
        if self.secret is not None:
            more["secret"] = Path(self.secret)
        channel = Channel(self.group, profile=self.profile, events="none", **more)
        async with asyncio.timeout(self.timeout):
            await channel.__aenter__()
        try:
            yield channel
        finally:
            await channel.__aexit__(None, None, None)


def target_of(options: Mapping[str, str], schema: StructType) -> Target:
    """The target in the options of a write.  Raises AnalysisException, in one sentence, for a wrong one or a schema."""
    given = {name.lower(): value for name, value in options.items() if name.lower() not in _OF_SPARK}
    for name in given:
        if name not in OPTIONS:
            raise AnalysisException(f"option {name!r} is not known: the options of a write are {', '.join(OPTIONS)}")
    if not given.get("group"):
        raise AnalysisException("give the group that the rows go to: .option('group', NAME)")
    if schema.names != [PAYLOAD] or not isinstance(schema[PAYLOAD].dataType, BinaryType | StringType):
        raise AnalysisException(
            f"a write needs one column {PAYLOAD!r} of type binary or string, and got {schema.simpleString()}: "
            "select the payload, for instance to_json(struct(*)) as payload"
        )
    try:
        timeout = float(given.pop("timeout", TIMEOUT_S))
    except ValueError:
        raise AnalysisException("option 'timeout' must be a number of seconds") from None
    return Target(timeout=timeout, **given)


@dataclass
class Sent(WriterCommitMessage):
    """The number of rows of a task."""

    rows: int


class GroupWriter(DataSourceArrowWriter):
    """Writes a DataFrame; `source` names this write in the tags of its rows."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.source = uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _send(self.target, self.source, 0, iterator)


class GroupStreamWriter(DataSourceStreamArrowWriter):
    """Writes a streaming query, whose id and batch numbers stay the same when a batch is repeated."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None  # Spark calls this in a task
        query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        assert query is not None and batch is not None
        return _send(self.target, query, int(batch), iterator)


def _send(target: Target, source: str, batch: int, batches: Iterator[pa.RecordBatch]) -> Sent:
    context = TaskContext.get()
    part = 0 if context is None else context.partitionId()
    return Sent(asyncio.run(_sent(target, source, batch, part, batches)))


async def _sent(target: Target, source: str, batch: int, part: int, batches: Iterator[pa.RecordBatch]) -> int:
    """Send the rows, and wait until all members have the last one, and so all before it.  Returns their number."""
    payloads = (value for rows in batches for value in rows.column(0).to_pylist())
    last = next(payloads, None)
    if last is None:
        return 0
    number = 0
    async with target.joined() as channel:
        for payload in payloads:
            await channel.send(encode(Tagged(source, batch, part, number, _bytes(last))))
            last, number = payload, number + 1
        async with asyncio.timeout(target.timeout):
            await channel.send(encode(Tagged(source, batch, part, number, _bytes(last))), until="stable")
    return number + 1


def _bytes(payload: bytes | str | None) -> bytes:
    return payload.encode() if isinstance(payload, str) else payload or b""
