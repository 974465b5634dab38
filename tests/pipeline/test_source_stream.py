"""The stream of journals: every record once, over growth, rotation, removal, limits and restarts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors.exceptions.captured import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from pygroups.journal.schema import services_of_v1
from pygroups.journal.writer import JournalWriter, segment_path
from pygroups.pipeline.schemas import RECORDS
from pygroups.pipeline.source_request import WrongRequest, request_of
from pygroups.pipeline.source_stream import JournalsStream, Offset

ALL = ReadAllAvailable()
RUN: dict[str, Any] = {"origin": "A", "origin_incarnation": "1", "bytes": 1, "stream": "A@1", "count": 1}


class Life:
    """A member that writes one record after another."""

    def __init__(self, root: Path, member: str = "A", **options: Any) -> None:
        services = services_of_v1("total")
        self.journal = JournalWriter(
            root, "g", member, "1", "total", host="h", boot_id="b", services=services, **options
        )
        self.next = 1

    def write(self, count: int = 1) -> None:
        for _ in range(count):
            self.journal.write([("deliver", (1, "A@1"), RUN | {"first": self.next})], self.next, self.next)
            self.next += 1

    def view(self, history: str) -> None:
        self.journal.write([("view", (1, "A@1"), {"history": history})], self.next, self.next)

    @property
    def folder(self) -> Path:
        return self.journal.folder


def stream_on(root: Path, **options: str) -> JournalsStream:
    return JournalsStream(request_of({"path": str(root), **options}), RECORDS)


def between(stream: JournalsStream, start: Offset, end: Offset) -> list[dict[str, Any]]:
    start, end = json.loads(json.dumps([start, end]))  # Spark keeps offsets as JSON
    return [
        row for part in stream.partitions(start, end) for batch in _batches(stream, part) for row in batch.to_pylist()
    ]


def _batches(stream: JournalsStream, part: Any) -> Iterator[pa.RecordBatch]:
    return stream.read(part)


def firsts(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return sorted((row["member"], row["first"]) for row in rows if row["kind"] == "deliver")


def test_each_record_comes_once_while_members_write_rotate_and_begin(tmp_path: Path) -> None:
    a, stream = Life(tmp_path, segment_bytes=400), stream_on(tmp_path)
    offsets, got = [stream.initialOffset()], []
    a.write(3)
    for round_ in range(6):
        if round_ == 2:
            b = Life(tmp_path, "B")
        if round_ >= 2:
            b.write(2)
        a.write(round_ * 3)
        offsets.append(stream.latestOffset(offsets[-1], ALL))
        got += between(stream, offsets[-2], offsets[-1])
    assert len(list(a.folder.glob("*.journal"))) > 3, "segments were rotated"
    assert firsts(got) == [("A", n) for n in range(1, a.next)] + [("B", n) for n in range(1, b.next)]
    assert stream.latestOffset(offsets[-1], ALL) == offsets[-1], "nothing new"
    again = [row for start, end in pairwise(offsets) for row in between(stream, start, end)]
    assert firsts(again) == firsts(got), "a batch that Spark repeats has the same rows, whatever was written since"


def test_a_frame_that_is_half_written_waits(tmp_path: Path) -> None:
    a, stream = Life(tmp_path), stream_on(tmp_path)
    a.write()
    start = stream.latestOffset(stream.initialOffset(), ALL)
    a.write()
    path = segment_path(a.folder, 0)
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    assert stream.latestOffset(start, ALL) == start
    path.write_bytes(whole)
    end = stream.latestOffset(start, ALL)
    assert firsts(between(stream, start, end)) == [("A", 2)]


def test_damage_within_a_segment_is_passed_and_told_as_quarantine(tmp_path: Path) -> None:
    a, stream = Life(tmp_path), stream_on(tmp_path)
    a.write(2)
    start = stream.latestOffset(stream.initialOffset(), ALL)
    a.write(3)
    path = segment_path(a.folder, 0)
    data, at = bytearray(path.read_bytes()), start["segments"][str(path)]["end"]
    data[at + 12] ^= 0xFF
    path.write_bytes(data)
    end = stream.latestOffset(start, ALL)
    assert firsts(between(stream, start, end)) == [("A", 4), ("A", 5)]
    places = JournalsStream(request_of({"path": str(tmp_path), "table": "quarantine"}), RECORDS)
    places.columns = ["offset", "reason"]
    (told,) = between(places, start, end)
    assert told == {"offset": at, "reason": "bad checksum"}


def test_the_history_of_a_record_is_that_of_the_last_view_before_it(tmp_path: Path) -> None:
    a, stream = Life(tmp_path), stream_on(tmp_path)
    offsets, got = [stream.initialOffset()], []
    for history in ("one", None, "two", None):
        if history:
            a.view(history)
        a.write()
        offsets.append(stream.latestOffset(offsets[-1], ALL))
        got += between(stream, offsets[-2], offsets[-1])
    assert [row["history"] for row in got if row["kind"] == "deliver"] == ["one", "one", "two", "two"]


def test_a_limit_of_bytes_goes_to_all_segments_that_grow(tmp_path: Path) -> None:
    a, b, stream = Life(tmp_path), Life(tmp_path, "B"), stream_on(tmp_path, maxBytesPerTrigger="2000")
    a.write(200)
    b.write(20)
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxBytes(2000)
    at, batches = stream.initialOffset(), []
    while (then := stream.latestOffset(at, limit)) != at:
        read = sum(
            place["end"] - at["segments"].get(path, {"end": 0})["end"] for path, place in then["segments"].items()
        )
        assert 0 < read <= 2000
        batches.append(firsts(between(stream, at, then)))
        at = then
    assert len(batches) > 5 and {member for member, _ in batches[0]} == {"A", "B"}
    assert sorted(chain(*batches)) == [("A", n) for n in range(1, 201)] + [("B", n) for n in range(1, 21)]
    assert stream.latestOffset(stream.initialOffset(), ALL) == at, "Trigger.AvailableNow reads all, whatever the limit"


def test_less_than_a_frame_is_a_frame(tmp_path: Path) -> None:
    a, stream = Life(tmp_path), stream_on(tmp_path)
    a.write(3)
    at, steps = stream.initialOffset(), 0
    while (then := stream.latestOffset(at, ReadMaxBytes(1))) != at:
        assert len(between(stream, at, then)) == 1
        at, steps = then, steps + 1
    assert steps == 3


def test_what_was_removed_before_it_was_read_is_an_error_or_left_out(tmp_path: Path) -> None:
    a, stream = Life(tmp_path, segment_bytes=300), stream_on(tmp_path)
    a.write(2)
    start = stream.latestOffset(stream.initialOffset(), ALL)
    a.write(20)
    segments = sorted(a.folder.glob("*.journal"))
    assert len(segments) > 4
    for gone in segments[:3]:
        gone.unlink()
    with pytest.raises(WrongRequest, match=r"was removed before .*failOnDataLoss=false"):
        stream.latestOffset(start, ALL)
    lenient = stream_on(tmp_path, failOnDataLoss="false")
    end = lenient.latestOffset(start, ALL)
    left = firsts(between(lenient, start, end))
    assert 2 < left[0][1] < 22 and left == [("A", n) for n in range(left[0][1], 23)]


def test_segments_that_were_read_may_go(tmp_path: Path) -> None:
    a, stream = Life(tmp_path, segment_bytes=300), stream_on(tmp_path)
    a.write(12)
    start = stream.latestOffset(stream.initialOffset(), ALL)
    for gone in sorted(a.folder.glob("*.journal"))[:-1]:
        gone.unlink()
    a.write(2)
    end = stream.latestOffset(start, ALL)
    assert firsts(between(stream, start, end)) == [("A", 13), ("A", 14)]


def test_segments_between_that_nobody_saw_are_missed(tmp_path: Path) -> None:
    a, stream = Life(tmp_path, segment_bytes=200), stream_on(tmp_path)
    a.write(1)
    start = stream.latestOffset(stream.initialOffset(), ALL)
    path = str(segment_path(a.folder, 0))
    start["segments"][path]["whole"] = True
    a.write(9)
    for gone in sorted(a.folder.glob("*.journal"))[:3]:
        gone.unlink()
    with pytest.raises(WrongRequest, match=r"the segment before .* was removed"):
        stream.latestOffset(start, ALL)


def test_a_journal_that_was_replaced_is_refused(tmp_path: Path) -> None:
    a, stream = Life(tmp_path), stream_on(tmp_path)
    a.write(3)
    start = stream.latestOffset(stream.initialOffset(), ALL)
    path = segment_path(a.folder, 0)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(WrongRequest, match="was shortened or replaced"):
        stream.latestOffset(start, ALL)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"table": "runs"}, "can be read in batches only"),
        ({"maxBytesPerTrigger": "many"}, "must be a whole number of bytes"),
        ({"failOnDataLoss": "perhaps"}, "must be true or false"),
        ({"maxBytesPerTriger": "1"}, "did you mean 'maxBytesPerTrigger'"),
    ],
)
def test_a_wrong_request_is_refused_in_a_sentence(tmp_path: Path, options: dict[str, str], says: str) -> None:
    with pytest.raises(WrongRequest, match=says):
        stream_on(tmp_path, **options)


@pytest.mark.slow
def test_a_query_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    journal, out, checkpoint = tmp_path / "journal", str(tmp_path / "out"), str(tmp_path / "checkpoint")
    a = Life(journal, segment_bytes=500)
    stream = spark.readStream.format("pygroups").option("table", "messages").load(str(journal))
    assert stream.isStreaming
    for more in (5, 7):
        a.write(more)
        query = stream.select("origin", "number").writeStream.option("checkpointLocation", checkpoint)
        query.trigger(availableNow=True).format("parquet").start(out).awaitTermination(120)
    rows = spark.read.parquet(out).orderBy("number").collect()
    assert [tuple(row) for row in rows] == [("A", number) for number in range(1, 13)]


@pytest.mark.slow
def test_a_query_that_cannot_begin_says_so_in_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    Life(tmp_path / "journal").write()
    stream = spark.readStream.format("pygroups").option("table", "runs").load(str(tmp_path / "journal"))
    with pytest.raises(StreamingQueryException) as caught:
        stream.writeStream.format("noop").start().awaitTermination(60)
    text = str(caught.value).partition("=== Streaming Query ===")[0]
    assert "table 'runs' can be read in batches only" in text
    assert "Traceback" not in text
