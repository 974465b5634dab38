"""Rows of Spark as messages: each once, whatever Spark repeats."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

import pygroups
from pygroups.contrib import spark_sink
from pygroups.contrib.spark import SOURCES_MAX, Rows, Tagged, encode
from pygroups.contrib.spark_sink import Target, target_of
from tests.patience import patience

TYPES = {"binary": BinaryType(), "string": StringType(), "int": IntegerType()}


def taken(rows: Rows, *tags: tuple[str, int, int, int]) -> list[bytes]:
    found = (rows.take(encode(Tagged(*tag, b"%d.%d.%d" % tag[1:]))) for tag in tags)
    return [payload for payload in found if payload is not None]


def test_an_attempt_that_is_repeated_adds_only_what_is_new() -> None:
    first = [("q", 0, 0, row) for row in range(3)]
    assert taken(Rows(), *first, *first, ("q", 0, 0, 3)) == [b"0.0.0", b"0.0.1", b"0.0.2", b"0.0.3"]


def test_parts_and_sources_are_apart() -> None:
    tags = [("q", 0, 0, 0), ("q", 0, 1, 0), ("r", 0, 0, 0)]
    assert len(taken(Rows(), *tags, *tags)) == 3


def test_a_task_of_an_earlier_batch_that_comes_late_adds_nothing() -> None:
    assert taken(Rows(), ("q", 0, 0, 0), ("q", 1, 0, 0), ("q", 0, 0, 1), ("q", 1, 0, 1)) == [
        b"0.0.0",
        b"1.0.0",
        b"1.0.1",
    ]


def test_what_is_remembered_is_bounded() -> None:
    rows = Rows()
    taken(rows, *((f"q{number}", 0, 0, 0) for number in range(SOURCES_MAX + 5)))
    assert len(rows._sources) == SOURCES_MAX


def test_a_message_of_a_program_is_refused() -> None:
    with pytest.raises(ValueError, match="is no row of Spark's sink"):
        Rows().take(b"to everyone")


@pytest.mark.parametrize(
    ("options", "schema", "says"),
    [
        ({}, "payload binary", "give the group"),
        ({"group": "g", "grup": "h"}, "payload binary", "option 'grup' is not known"),
        ({"group": "g"}, "payload int", "one column 'payload' of type binary or string"),
        ({"group": "g"}, "a string, payload string", "one column 'payload'"),
        ({"group": "g", "timeout": "long"}, "payload string", "a number of seconds"),
    ],
)
def test_a_wrong_write_is_refused_in_a_sentence(options: dict[str, str], schema: str, says: str) -> None:
    with pytest.raises(AnalysisException, match=says):
        target_of(
            options, StructType([StructField(name, TYPES[ddl]) for name, ddl in map(str.split, schema.split(","))])
        )


def test_a_task_that_is_repeated_reaches_the_members_once(tmp_path: Path) -> None:
    """Two tasks, one of them twice, as Spark plays them: joined, sent, delivered everywhere, left."""
    target = Target("rows", discovery=f"dir:{tmp_path}", timeout=patience(60))
    parts = [[b"a0", b"a1", b"a2"], [b"b0"]]

    async def read() -> list[bytes | None]:
        rows = Rows()
        async with pygroups.Channel("rows", name="reader", discovery=f"dir:{tmp_path}") as channel:
            for part in (0, 1, 0):
                batches = iter([pa.RecordBatch.from_pydict({"payload": parts[part]})])
                assert await spark_sink._sent(target, "write", 0, part, batches) == len(parts[part])
            messages: list[bytes | None] = []
            async for event in channel:
                if isinstance(event, pygroups.Message):
                    messages.append(rows.take(event.payload))
                if len(messages) == 7:
                    break
        return messages

    assert asyncio.run(read()) == [b"a0", b"a1", b"a2", b"b0", None, None, None]
