"""The stream of the messages of a group in their total order: each once, only what is stable, from any archives."""

from __future__ import annotations

import json
import os
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from pygroups.journal.ranges import header_of
from pygroups.journal.reader import find_segments
from pygroups.journal.schema import services_of_v1
from pygroups.journal.writer import JournalWriter
from pygroups.pipeline.ordered import index
from pygroups.pipeline.ordered.archive import Archive
from pygroups.pipeline.schemas import ORDERED
from pygroups.pipeline.source import GroupsDataSource
from pygroups.pipeline.source_ordered import Offset, OrderedStream
from pygroups.pipeline.source_request import WrongRequest, request_of
from tests.pipeline.spark_session import spark

__all__ = ["spark"]

ALL = ReadAllAvailable()
CLOCK = count(1)  # of all members, in microseconds
View = tuple[int, str]
ONE, TWO, THREE = (1, "A@1"), (2, "B@1"), (3, "B@1")


class Member:
    """A member whose journal a test writes record by record."""

    def __init__(
        self, root: Path, address: str, *, profile: str = "total", payloads: bool = True, **limits: int
    ) -> None:
        name, _, incarnation = address.partition("@")
        services = services_of_v1(profile)
        told = {"host": "h", "boot_id": "b", "services": services}
        self.journal = JournalWriter(root, "g", name, incarnation, profile, **told, **limits)
        self.address, self.payloads = address, payloads
        self.view: View | None = None
        self.position = 0

    def write(self, kind: str, **fields: Any) -> None:
        now = next(CLOCK)
        self.journal.write([(kind, self.view, fields)], now, now)

    def install(self, view: View, members: str, came: str = "", *, primary: bool = True) -> None:
        before = (None, None) if self.view is None else self.view
        self.view, self.position = view, 0
        self.write(
            "view",
            members=members.split(),
            transitional=came.split() or [self.address],
            primary=primary,
            previous_number=before[0],
            previous_creator=before[1],
        )

    def deliver(self, origin: str, first: int, number: int = 1, *, seq: int) -> None:
        name, _, incarnation = origin.partition("@")
        self.write(
            "deliver",
            origin=name,
            origin_incarnation=incarnation,
            first=first,
            count=number,
            bytes=1,
            stream="A@1",
            seq=seq,
            position=self.position,
            payload=[f"{name}{first + n}".encode() for n in range(number)] if self.payloads else None,
        )
        self.position += number

    def purge(self, below: int) -> None:
        self.write("purge", digest={"A@1": below})


def stream_on(root: Path, **options: str) -> OrderedStream:
    return OrderedStream(request_of({"path": str(root), "table": "ordered", **options}), ORDERED)


def rows_between(root: Path, start: Offset, end: Offset, **options: str) -> list[dict[str, Any]]:
    """The rows of a batch, as a new process reads it from offsets that Spark keeps as JSON."""
    stream = stream_on(root, **options)
    start, end = json.loads(json.dumps([start, end]))
    return [row for part in stream.partitions(start, end) for batch in stream.read(part) for row in batch.to_pylist()]


class Reader:
    """A stream that goes on, and all that it gave."""

    def __init__(self, root: Path, **options: str) -> None:
        self.root, self.options = root, options
        self.stream = stream_on(root, **options)
        self.at = self.stream.initialOffset()
        self.got: list[str] = []

    def go_on(self, limit: Any = ALL) -> list[str]:
        """The new payloads."""
        end = self.stream.latestOffset(self.at, limit)
        new = [row["payload"].decode() for row in rows_between(self.root, self.at, end, **self.options)]
        self.stream.commit(end)
        self.at, self.got = end, self.got + new
        return new


def test_a_message_comes_once_and_when_it_is_stable(tmp_path: Path) -> None:
    members = [Member(tmp_path, address) for address in ("A@1", "B@1")]  # the archive of C is elsewhere
    reader = Reader(tmp_path)
    for member in members:
        member.install(ONE, "A@1 B@1 C@1")
        member.deliver("B@1", 1, 2, seq=0)
        member.deliver("A@1", 1, seq=1)
    assert reader.go_on() == [], "delivered, and perhaps not by all"
    members[1].purge(1)
    assert reader.go_on() == ["B1", "B2"]
    before = reader.at
    assert reader.go_on() == [] and reader.at == before
    members[0].purge(2)
    assert reader.go_on() == ["A1"]


def test_the_archive_of_a_dead_member_is_replaced_by_another_one(tmp_path: Path) -> None:
    a, b = Member(tmp_path, "A@1"), Member(tmp_path, "B@1")
    reader = Reader(tmp_path)
    for member in (a, b):
        member.install(ONE, "A@1 B@1 C@1")
        member.deliver("B@1", 1, seq=0)
    a.purge(1)
    assert reader.go_on() == ["B1"]
    a.deliver("A@1", 1, seq=1)  # and dies: no other member has this message
    b.deliver("B@1", 2, seq=2)
    b.install(TWO, "B@1 C@1", "B@1 C@1")
    b.deliver("C@1", 1, seq=0)
    assert reader.go_on() == ["B2"], "what the members have delivered that go on together"
    again = Member(tmp_path, "A@2")
    for member, came in ((b, "B@1 C@1"), (again, "A@2")):
        member.install(THREE, "B@1 C@1 A@2", came)
        member.deliver("A@2", 1, seq=0)
    again.purge(1)
    assert reader.go_on() == ["C1", "A1"]
    whole = Reader(tmp_path)
    assert whole.go_on() == reader.got, "in one batch the same"


def test_what_the_archives_of_all_members_agree_on_comes_without_a_vote(tmp_path: Path) -> None:
    """All members crash at once: nobody votes any more, and no view follows."""
    members = a, b, c = [Member(tmp_path, address) for address in ("A@1", "B@1", "C@1")]
    reader = Reader(tmp_path)
    for member in members:
        member.install(ONE, "A@1 B@1 C@1")
        member.deliver("B@1", 1, seq=0)
    a.purge(1)
    for member in (a, b):
        member.deliver("B@1", 2, 2, seq=1)
    assert reader.go_on() == ["B1"], "nothing tells that C has the next two"
    c.deliver("B@1", 2, 2, seq=1)
    assert reader.go_on() == ["B2", "B3"]
    a.deliver("A@1", 1, seq=2)  # A alone had it when it crashed
    for member in (b, c):
        member.deliver("C@1", 1, seq=2)
    for member in members:
        member.deliver("B@1", 4, seq=3)
    assert reader.go_on() == [], "at one position the members delivered different messages"


def test_messages_that_no_archive_has_are_an_error_or_left_out(tmp_path: Path) -> None:
    a = Member(tmp_path, "A@1")
    a.install(ONE, "A@1 B@1")
    a.deliver("B@1", 1, seq=0)
    a.purge(1)
    again = Member(tmp_path, "A@2")
    again.install(THREE, "B@1 A@2")
    again.deliver("B@1", 9, seq=0)
    again.purge(1)
    reader = Reader(tmp_path)
    assert reader.go_on() == ["B1"]
    with pytest.raises(WrongRequest, match="no archive tells how view 1 of A@1 ended, and view 3 of B@1 came later"):
        reader.go_on()
    assert Reader(tmp_path, failOnDataLoss="false").go_on() == ["B1", "B9"]


def test_a_split_goes_on_at_the_primary_side(tmp_path: Path) -> None:
    a, b, c = (Member(tmp_path, address) for address in ("A@1", "B@1", "C@1"))
    for member in (a, b, c):
        member.install(ONE, "A@1 B@1 C@1")
        member.deliver("B@1", 1, seq=0)
    a.deliver("A@1", 1, seq=1)
    a.install((2, "A@1"), "A@1", primary=False)
    a.deliver("A@1", 2, seq=0)
    for member in (b, c):
        member.install(TWO, "B@1 C@1", "B@1 C@1")
        member.deliver("C@1", 1, seq=0)
    for member, came in ((a, "A@1"), (b, "B@1 C@1"), (c, "B@1 C@1")):
        member.install(THREE, "B@1 C@1 A@1", came)
        member.deliver("A@1", 3, seq=0)
    b.purge(1)
    assert Reader(tmp_path).go_on() == ["B1", "C1", "A3"]


@pytest.mark.parametrize("primary", [True, False])
@pytest.mark.parametrize("first", ["the other side", "the followed side"])
def test_a_followed_side_that_dies_whole_is_left_when_its_members_are_back(
    tmp_path: Path, first: str, primary: bool
) -> None:
    """B orders, and A is cut off before it has its own message, so it delivers it once more, alone."""
    a, b, c = (Member(tmp_path, address) for address in ("A@1", "B@1", "C@1"))
    for member in (a, b, c):
        member.install(ONE, "A@1 B@1 C@1")
    for member in (b, c):
        member.deliver("A@1", 1, seq=0)

    def alone() -> None:
        a.install((2, "A@1"), "A@1", primary=False)
        a.deliver("A@1", 1, seq=0)

    if first == "the other side":
        alone()
    for member in (b, c):
        member.install(TWO, "B@1 C@1", "B@1 C@1")
        member.deliver("C@1", 1, seq=0)
    b.purge(1)
    if first == "the followed side":
        alone()
    reader = Reader(tmp_path)
    assert reader.go_on() == ["A1", "C1"]
    a.deliver("A@1", 2, seq=1)
    assert reader.go_on() == [], "the side that is followed may be alive elsewhere"
    new = [Member(tmp_path, address) for address in ("B@2", "C@2")]
    for member, came in zip((a, *new), ("A@1", "B@2", "C@2"), strict=True):
        member.install((3, "A@1"), "A@1 B@2 C@2", came, primary=primary)
        member.deliver("B@2", 1, seq=0)
    assert reader.go_on() == Reader(tmp_path).go_on()[2:] == ["B1"]


def test_a_group_that_ended_and_began_anew_goes_on(tmp_path: Path) -> None:
    """The numbers of views begin anew, too."""
    for incarnation in ("1", "2"):
        a = Member(tmp_path, f"A@{incarnation}")
        a.install((1, a.address), a.address)
        a.deliver(a.address, 1, seq=0)
    assert Reader(tmp_path).go_on() == ["A1", "A1"]


def test_a_view_that_a_crashed_member_alone_installed_is_lost(tmp_path: Path) -> None:
    a, b, c = (Member(tmp_path, address) for address in ("A@1", "B@1", "C@1"))
    for member in (a, b, c):
        member.install(ONE, "A@1 B@1 C@1")
    a.install((2, "A@1"), "A@1 B@1 C@1 D@1", "A@1 B@1 C@1")
    reader = Reader(tmp_path)
    reader.go_on()
    for member in (b, c):
        member.install(THREE, "B@1 C@1", "B@1 C@1")
        member.deliver("C@1", 1, seq=0)
    b.purge(1)
    assert reader.go_on() == ["C1"]


def segments_of(member: Member) -> list[Path]:
    return sorted(member.journal.folder.glob("*.journal"))


def test_segments_that_journal_keep_removes_are_needed_by_a_slow_query_alone(tmp_path: Path) -> None:
    a, b = (Member(tmp_path, address, segment_bytes=600, keep=2) for address in ("A@1", "B@1"))
    quick, slow, slower = (Reader(tmp_path, failOnDataLoss=loss) for loss in ("true", "true", "false"))
    for member in (a, b):
        member.install(ONE, "A@1 B@1")
        member.deliver("B@1", 1, seq=0)
    assert quick.go_on() == slow.go_on() == slower.go_on() == ["B1"]
    for number in range(2, 41):
        for member in (a, b):
            member.deliver("B@1", number, seq=number - 1)
        quick.go_on()
        if number == 3:
            slow.stream.latestOffset(slow.at, ALL)  # and it does not read in time what is there
    assert len(segments_of(a)) == 2 and int(segments_of(a)[0].stem) > 2
    assert quick.got == [f"B{number}" for number in range(1, 41)]
    with pytest.raises(WrongRequest, match="no archive has the message at position 1 of view 1 of A@1 any more; add"):
        slow.go_on()
    left = slower.go_on()
    assert 2 < len(left) < 39 and left == quick.got[-len(left) :]


def test_a_restart_reads_the_segments_from_its_view_on(tmp_path: Path) -> None:
    """And it gives what it gave before, with members that ended long ago and members that come later."""
    members = [Member(tmp_path, address, segment_bytes=600) for address in ("A@1", "B@1")]
    old = Member(tmp_path, "C@1")
    old.install((0, "C@1"), "C@1")
    reader = Reader(tmp_path)
    for view in range(1, 13):
        for member in members:
            member.install((view, "A@1"), "A@1 B@1", "A@1 B@1")
            for number in range(3):
                member.deliver("B@1", view * 3 + number, seq=number)
        reader.go_on()
    for path in segments_of(old):
        os.utime(path, (0, 0))
    reader.at["groups"]["g"]["began_us"] += index.STALE_US + 1_000_000  # the clock of this test begins at 0
    restarted = Reader(tmp_path)
    restarted.at = json.loads(json.dumps(reader.at))
    assert restarted.go_on() == []
    indexes = [one.stream._index for one in (reader, restarted)]
    read = [len(one._places) for one in indexes if one is not None]
    assert read[1] <= 4 < 10 < read[0] and not any("C@1" in path for path in indexes[1]._places)  # type: ignore[union-attr]
    members.append(Member(tmp_path, "D@1"))
    for member, came in zip(members, ("A@1 B@1", "A@1 B@1", "D@1"), strict=True):
        member.install(THREE, "A@1 B@1 D@1", came)
        member.deliver("D@1", 1, seq=0)
    assert restarted.go_on() == reader.go_on() == ["D1"]
    from_before = Reader(tmp_path)
    from_before.stream = restarted.stream  # Spark repeats an older batch
    assert from_before.go_on() == [*reader.got]


def test_a_limit_of_bytes_divides_the_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_STEP_BYTES", 300)
    a = Member(tmp_path, "A@1")
    a.install(ONE, "A@1")
    for number in range(1, 41):
        a.deliver("A@1", number, seq=number - 1)
    reader, batches = Reader(tmp_path), list[list[str]]()
    while new := reader.go_on(ReadMaxBytes(400)):
        batches.append(new)
    assert reader.got == [f"A{number}" for number in range(1, 41)]
    assert len(batches) > 3


def test_an_archive_without_payloads_tells_only_what_is_stable(tmp_path: Path) -> None:
    bare = Member(tmp_path, "B@1", payloads=False)
    bare.install(ONE, "A@1 B@1")
    bare.deliver("A@1", 1, seq=0)
    bare.purge(1)
    with pytest.raises(WrongRequest, match="B@1 was opened without journal_payloads=True"):
        Reader(tmp_path).go_on()
    a = Member(tmp_path, "A@1")
    a.install(ONE, "A@1 B@1")
    a.deliver("A@1", 1, seq=0)
    assert Reader(tmp_path).go_on() == ["A1"]


def test_a_profile_without_a_total_order_is_refused(tmp_path: Path) -> None:
    Member(tmp_path, "A@1", profile="fifo").install(ONE, "A@1")
    with pytest.raises(WrongRequest, match="group g has the profile fifo, which gives messages no total order"):
        Reader(tmp_path).go_on()


def test_a_query_that_is_no_stream_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Member(tmp_path, "A@1").install(ONE, "A@1")
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")  # the refusal sets it
    with pytest.raises(AnalysisException, match="can be read as a stream only"):
        GroupsDataSource({"path": str(tmp_path), "table": "ordered"}).reader(ORDERED)


@pytest.mark.slow
def test_drawn_schedules_give_each_message_once(
    drawn_root: Path, drawn: object, drawn_uniform: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Crashes, splits, merges and groups that begin anew; where a majority decides, nothing is left out either."""
    grown = OrderedStream._grown

    def with_payloads(stream: OrderedStream, start: Offset) -> dict[str, list[Archive]]:
        groups = grown(stream, start)
        for archive in (archive for archives in groups.values() for archive in archives):
            archive.payloads = True  # the simulator keeps none, and no row needs one here
        return groups

    monkeypatch.setattr(OrderedStream, "_grown", with_payloads)
    profiles = {"total": 0, "uniform": 0}
    for segment in {one.group: one for one in find_segments([drawn_root])}.values():
        header = header_of(segment)
        if header is None or header.profile not in profiles:
            continue
        folder, known = Path(segment.path).parents[1], dict[tuple[str, str], int]()
        stream = stream_on(folder)
        start = stream.initialOffset()
        for row in rows_between(folder, start, stream.latestOffset(start, ALL)):
            sender = row["origin"], row["origin_incarnation"]
            last = known.get(sender, 0)
            assert row["number"] == last + 1 or (header.profile == "total" and row["number"] > last), (folder, row)
            known[sender] = row["number"]
        profiles[header.profile] += sum(known.values())
    assert all(messages > 500 for messages in profiles.values()), profiles


@pytest.mark.slow
def test_a_query_over_archives_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    journal, out, checkpoint = tmp_path / "journal", str(tmp_path / "out"), str(tmp_path / "checkpoint")
    members = [Member(journal, address) for address in ("A@1", "B@1", "C@1")]
    for member in members:
        member.install(ONE, "A@1 B@1 C@1")
    stream = spark.readStream.format("pygroups").option("table", "ordered").load(str(journal))
    for low, high in ((0, 5), (5, 12)):
        for member in members[-2:] if low else members:  # A is dead
            for number in range(low, high):
                member.deliver("B@1", number + 1, seq=number)
        members[1].purge(high)
        query = stream.selectExpr("position", "number", "cast(payload as string) as text").writeStream
        query = query.option("checkpointLocation", checkpoint).trigger(availableNow=True).format("parquet")
        query.start(out).awaitTermination(120)
    rows = spark.read.parquet(out).orderBy("position").collect()
    assert [tuple(row) for row in rows] == [(number, number + 1, f"B{number + 1}") for number in range(12)]
