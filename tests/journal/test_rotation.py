"""Rotation: a border between two segments changes no row, a kill at a border loses nothing, and a real disk is full."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pygroups.journal.columns import Decoded, read_columns
from pygroups.journal.errors import JournalError
from pygroups.journal.frames import Record
from pygroups.journal.reader import Quarantine, find_segments, read_segments
from pygroups.journal.scan import header_of
from pygroups.journal.schema import services_of_v1
from pygroups.journal.writer import RESERVE, RETRY_US, JournalWriter, segment_path
from tests.disks import full_disk, resize

VIEW = (4, "A@3f2c91d000000001")
RUN = {"origin": "B", "origin_incarnation": "77", "count": 2, "bytes": 9, "checksum": 5}
DISK_BYTES = 1 << 20


def opened(root: Path, profile: str = "total", **options: Any) -> JournalWriter:
    return JournalWriter(
        root, "orders", "A", "3f2c", profile, host="here", boot_id="boot", services=services_of_v1(profile), **options
    )


def records_of(seed: int, profile: str = "total") -> list[list[Record]]:
    """The records of some turns."""
    rng, turns = random.Random(seed), []
    for turn in range(24):
        records: list[Record] = []
        for at in range(rng.choice((1, 1, 2, 5))):
            draw = rng.random()
            if draw < 0.1:
                history = {"history": f"h{turn // 8}"} if profile == "uniform" else {}
                records.append(("view", (turn, "A@1"), {"members": ["A@1"], **history}))
            elif draw < 0.3:
                records.append(("stable", VIEW, {"digest": {"A@1": turn}}))
            else:
                records.append(("deliver", VIEW, {**RUN, "first": 2 * at}))
        turns.append(records)
    return turns


def write(root: Path, turns: list[list[Record]], borders: set[int], profile: str) -> JournalWriter:
    """Write `turns` with a new segment before each turn whose number is in `borders`."""
    journal = opened(root, profile)
    for turn, records in enumerate(turns):
        if turn in borders:
            journal._segment_bytes = 1
        journal.write(records, turn, turn)
        journal._segment_bytes = 1 << 30
    journal.close()
    return journal


def rows_in(root: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for part in read_segments(find_segments([root])):
        assert not isinstance(part, Quarantine), part
        rows += part.to_pylist()
    return sorted(rows, key=lambda row: row["index"])


def decoded(root: Path) -> tuple[int, list[Any]]:
    """The numbers of rows that the decoding by columns finds, and the damage."""
    rows, damage = 0, []
    for segment in find_segments([root]):
        _, first = header_of(segment.path)
        for part in read_columns(segment.path, first, segment.size):
            if isinstance(part, Decoded):
                rows += len(part.runs.place) + len(part.votes.place) + sum(len(other.place) for other in part.others)
                damage += part.damage
            else:
                damage.append(part)
    return rows, damage


def borders_of(count: int) -> Iterator[set[int]]:
    yield from ({turn} for turn in range(count))
    yield set(range(count))
    for seed in range(10):
        rng = random.Random(seed)
        yield {turn for turn in range(count) if rng.random() < rng.choice((0.1, 0.5))}


@pytest.mark.parametrize("profile", ["total", "uniform"])
def test_a_border_before_any_turn_changes_no_row(tmp_path: Path, profile: str) -> None:
    turns = records_of(1, profile)
    write(tmp_path / "whole", turns, set(), profile)
    expected = rows_in(tmp_path / "whole")
    assert len(expected) == sum(map(len, turns))
    for number, borders in enumerate(borders_of(len(turns))):
        root = tmp_path / str(number)
        journal = write(root, turns, borders, profile)
        assert len(list(journal.folder.glob("*.journal"))) == 1 + len(borders)
        assert rows_in(root) == expected
        assert decoded(root) == (len(expected), [])


def test_a_torn_end_at_any_border_is_no_damage_if_the_next_segment_continues(tmp_path: Path) -> None:
    """The writer was killed in a frame, began again, and the number of the torn frame was used again."""
    turns = records_of(2)
    for border in range(1, len(turns)):
        root = tmp_path / str(border)
        first = opened(root)
        for turn, records in enumerate(turns[:border]):
            first.write(records, turn, turn)
        first.close()
        file = segment_path(first.folder, 0)
        file.write_bytes(file.read_bytes() + b"\x40\x00\x00\x00\x01\x02\x03\x04torn")
        second = opened(root)
        for turn, records in enumerate(turns[border:], border):
            second.write(records, turn, turn)
        second.close()
        assert [row["index"] for row in rows_in(root)] == list(range(sum(map(len, turns))))


# -- kill -9 at every call to the system


CALLS = ("open", "write", "close", "unlink", "fsync", "fstat", "ftruncate")


def dies_at(nth: int, root: Path, tell: int) -> None:
    """In a child: write records with many rotations, and be killed right before, or right after, call `nth`."""
    left = nth

    def counting(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*arguments, **named)
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return counted

    told = os.write
    journal = opened(root, segment_bytes=300, keep=3, fsync=True)
    for name in CALLS:
        setattr(os, name, counting(getattr(os, name)))
    for number in range(12):
        journal.write([("stable", VIEW, {"digest": {"A@1": number}})] * 2, number, number)
        told(tell, bytes([number]))


def test_a_kill_before_and_after_every_call_to_the_system_loses_no_written_record(tmp_path: Path) -> None:
    last = 0
    for nth in range(1, 1_000):
        root = tmp_path / str(nth)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover (the child is killed, or leaves at once)
            try:
                os.close(reading)
                dies_at(nth, root, writing)
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            written = len(pipe.read())
        _, status = os.waitpid(child, 0)
        found = [row["index"] for row in rows_in(root)]
        assert found == list(range(found[0] if found else 0, found[-1] + 1 if found else 0))
        assert not written or found[-1] + 1 >= 2 * written  # the record that was being written may be there too
        assert len(list(root.glob("*/*/*.journal"))) <= 4  # and one to go, when the kill came before its end
        journal = opened(root, segment_bytes=300, keep=3)  # the next process goes on with it
        journal.write([("stable", VIEW, {"digest": {"A@1": 99}})], 99, 99)
        journal.close()
        again = [row["index"] for row in rows_in(root)]
        assert again[-1] == (found[-1] + 1 if found else 0)
        assert len(list(root.glob("*/*/*.journal"))) <= 3
        shutil.rmtree(root)
        if os.WIFEXITED(status):
            last = nth
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
    assert last > 100  # calls; without any the child would have ended at once


# -- a disk that is really full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    with full_disk(tmp_path / "disk", DISK_BYTES) as disk:
        yield disk


@pytest.mark.parametrize("segment_bytes", [4_096, 1 << 30])
def test_a_disk_of_one_megabyte_is_full_and_has_room_again(small_disk: Path, segment_bytes: int) -> None:
    journal = opened(small_disk, segment_bytes=segment_bytes)
    record: Record = ("stable", VIEW, {"digest": {f"member-{n}@1": n for n in range(100)}})
    written = 0
    with pytest.raises(JournalError, match="No space left on device"):
        for written in range(10_000):
            journal.write([record], written, written)
    assert 100 < written < 10_000 and journal.lost == 1
    *rows, told = rows_in(small_disk)
    assert [row["index"] for row in rows] == list(range(written))  # and nothing half-written
    assert (told["index"], told["kind"], told["reason"]) == (written + 1, "drop", "journal lost")
    assert told["detail"] == "No space left on device"
    for number in range(5):
        journal.write([record], 0, written + number)
    assert journal.lost == 6
    oldest = min(find_segments([small_disk]), key=lambda segment: segment.path)
    if segment_bytes == 4_096:
        os.unlink(oldest.path)
    else:
        resize(small_disk, 2 * DISK_BYTES)
    journal.write([record], 0, written + 2 * RETRY_US)
    assert journal.lost == 6
    journal.close()
    found = [row["index"] for row in rows_in(small_disk)]
    assert found[-1] == written + 7 == journal.next_index - 1
    assert [after for before, after in pairwise(found) if after != before + 1] == [written + 1, written + 7]
    assert (journal.folder / "lock").stat().st_size == len(RESERVE)  # and the next outage has a page again


@pytest.mark.parametrize("seed", range(20))
def test_every_outage_shows_although_nothing_can_be_written_to_its_end(tmp_path: Path, seed: int) -> None:
    """Records of any size, a disk of any size: the last page of the disk is never the last word."""
    rng = random.Random(seed)
    size, record_bytes = rng.choice((64, 128, 256)) << 10, rng.choice((1, 10, 100, 1_000))
    with full_disk(tmp_path / "disk", size) as disk:
        journal = opened(disk, segment_bytes=rng.choice((4_096, 20_000, 1 << 30)))
        record: Record = ("stable", VIEW, {"digest": {f"member-{n}@1": n for n in range(record_bytes)}})
        written = 0
        with pytest.raises(JournalError):
            for written in range(100_000):
                journal.write([record] * rng.choice((1, 2, 7)), written, written)
        journal.close()
        *rows, told = rows_in(disk)
        assert [row["index"] for row in rows] == list(range(len(rows)))
        assert told["index"] > len(rows) and told["reason"] == "journal lost"


def test_a_disk_with_room_for_the_kept_segments_is_never_full(small_disk: Path) -> None:
    journal = opened(small_disk, segment_bytes=DISK_BYTES // 8, keep=4)
    record: Record = ("stable", VIEW, {"digest": {f"member-{n}@1": n for n in range(100)}})
    for number in range(3_000):  # some megabytes
        journal.write([record], number, number)
    journal.close()
    rows = [row["index"] for row in rows_in(small_disk)]
    assert rows == list(range(rows[0], 3_000)) and 0 < rows[0] < 3_000
    assert journal.lost == 0
