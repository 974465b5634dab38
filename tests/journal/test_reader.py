"""The reader: all columns of every kind; damage is told with file and offset and costs only what is damaged."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pygroups.journal.frames import frame_of
from pygroups.journal.reader import SCHEMA, NotAJournal, Quarantine, find_segments, read_segments
from pygroups.journal.schema import COLUMNS, FIELDS, FRAME_HEAD_BYTES, KINDS, PREAMBLE
from pygroups.journal.writer import JournalWriter, MemoryJournal, segment_path

SAMPLES: dict[str, Any] = {
    "string": "x",
    "bigint": -5,
    "int": 7,
    "boolean": True,
    "array<string>": ["A@1", "B@2"],
    "array<array<string>>": [["A@1"], ["B@2"]],
    "map<string,bigint>": {"A@1": 3},
    "array<binary>": [b"\x00\xff"],
}


def journal_of(count: int, profile: str = "total") -> MemoryJournal:
    journal = MemoryJournal("orders", "A", "3f2c", profile)
    for number in range(count):
        journal.write([("send", (1, "A@3f2c"), {"first": number})], 10 * number, number)
    return journal


def read(*folders: Path) -> tuple[list[dict[str, Any]], list[Quarantine]]:
    rows: list[dict[str, Any]] = []
    damage: list[Quarantine] = []
    for part in read_segments(find_segments(folders)):
        if isinstance(part, Quarantine):
            damage.append(part)
        else:
            assert part.schema == SCHEMA
            rows += part.to_pylist()
    return sorted(rows, key=lambda row: row["index"]), damage


def offsets(data: bytes | bytearray) -> list[int]:
    """Where each frame behind the header begins."""
    found, at = [], len(PREAMBLE)
    while at < len(data):
        found.append(at)
        at += FRAME_HEAD_BYTES + int.from_bytes(data[at : at + 4], "little")
    return found[1:]


def with_data(tmp_path: Path, data: bytes | bytearray, number: int = 0) -> Path:
    folder = tmp_path / "orders" / "A@3f2c"
    folder.mkdir(parents=True, exist_ok=True)
    segment_path(folder, number).write_bytes(data)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_every_kind_comes_back_in_its_column(kind: str, tmp_path: Path) -> None:
    fields = {name: SAMPLES[COLUMNS[name]] for name in FIELDS[kind]}
    journal = MemoryJournal("orders", "A", "3f2c", "total", host="here")
    journal.write([(kind, (4, "B@77"), fields)], 100, 200)
    rows, damage = read(journal.save(tmp_path))
    assert damage == []
    expected: dict[str, Any] = dict.fromkeys(COLUMNS)
    expected |= {"group": "orders", "member": "A", "incarnation": "3f2c", "profile": "total", "host": "here"}
    expected |= {"index": 0, "time_us": 100, "mono_us": 200, "kind": kind, "view_number": 4, "view_creator": "B@77"}
    maps = {name: list(fields[name].items()) for name in ("digest", "gauges") if name in fields}
    assert rows == [expected | fields | maps]


def test_many_records_come_in_fat_batches(tmp_path: Path) -> None:
    folder = journal_of(10_000).save(tmp_path)
    batches = list(read_segments(find_segments([folder]), batch_rows=6000))
    assert [type(batch) for batch in batches] == [pa.RecordBatch] * 2
    assert sum(batch.num_rows for batch in batches) == 10_000


@pytest.mark.parametrize("up", [0, 1, 2])
def test_a_life_a_group_and_a_folder_of_groups_are_found(tmp_path: Path, up: int) -> None:
    path = journal_of(1).save(tmp_path)
    for _ in range(up):
        path = path.parent
    assert [segment.member for segment in find_segments([path, path])] == ["A"]


@pytest.mark.parametrize("name", ["nothing", "file"])
def test_a_folder_that_is_none_is_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        NotAJournal, match="give a folder of journals, the folder of a group, or the folder of one incarnation"
    ):
        find_segments([tmp_path / name])
    with pytest.raises(NotAJournal, match="has no journal"):
        find_segments([tmp_path])


def test_a_torn_end_is_normal(tmp_path: Path) -> None:
    data = journal_of(3).getvalue()
    rows, damage = read(with_data(tmp_path, data[:-5]))
    assert ([row["index"] for row in rows], damage) == ([0, 1], [])


@pytest.mark.parametrize(("goes_on_at", "told"), [(2, 0), (3, 1)])
def test_a_torn_end_in_the_middle_must_be_gone_on_with(tmp_path: Path, goes_on_at: int, told: int) -> None:
    data = journal_of(3).getvalue()
    later = MemoryJournal("orders", "A", "3f2c", "total")
    later._encoder.index = goes_on_at
    later.write([("send", None, {})], 1, 1)
    with_data(tmp_path, data[:-5], 0)
    rows, damage = read(with_data(tmp_path, later.getvalue(), 1))
    assert [row["index"] for row in rows] == [0, 1, goes_on_at]
    assert [place.reason for place in damage] == ["the segment ends within a frame"] * told


def test_a_damaged_body_costs_its_frame(tmp_path: Path) -> None:
    data = bytearray(journal_of(4).getvalue())
    second = offsets(data)[1]
    data[second + FRAME_HEAD_BYTES + 3] ^= 0x40
    rows, damage = read(with_data(tmp_path, data))
    assert [row["index"] for row in rows] == [0, 2, 3]
    assert [(place.offset, place.reason) for place in damage] == [(second, "bad checksum")]
    assert damage[0].segment.path.endswith("A@3f2c/000000.journal")


@pytest.mark.parametrize("length", [3, 1 << 20, (1 << 32) - 1])
def test_behind_a_damaged_length_the_next_good_frame_is_found(tmp_path: Path, length: int) -> None:
    data = bytearray(journal_of(4).getvalue())
    second = offsets(data)[1]
    data[second : second + 4] = length.to_bytes(4, "little")
    rows, damage = read(with_data(tmp_path, data))
    assert [row["index"] for row in rows] == [0, 2, 3]
    assert damage[0].offset == second


def test_what_cannot_be_decoded_is_told(tmp_path: Path) -> None:
    data = journal_of(2).getvalue() + frame_of([["dance", 2, 0, 0, None]]) + frame_of([["send", 3, 0, 0, None]])
    bad_type = frame_of([["stable", 4, 0, 0, None, "no map"], ["stable", 5, 0, 0, None, {"A@1": 1}]])
    rows, damage = read(with_data(tmp_path, data + bad_type))
    assert [row["index"] for row in rows] == [0, 1, 5]
    assert [place.reason[:24] for place in damage] == [
        "not a record that is kno",
        "record ['send', 3] has f",
        "record ['stable', 4] has",
    ]
    assert sorted(place.offset for place in damage) == offsets(data + bad_type)[2:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_of_a_later_version_is_read_as_far_as_it_is_known(kind: str, tmp_path: Path) -> None:
    known = [kind, 0, 1, 2, None, *(SAMPLES[COLUMNS[name]] for name in FIELDS[kind])]
    later = [[*known[:1], 1, *known[2:], {"a": [1]}, "new"], [*known[:1], 2, *known[2:], 7]]
    rows, damage = read(with_data(tmp_path, journal_of(0).getvalue() + frame_of([known, *later])))
    assert damage == []
    assert [row["index"] for row in rows] == [0, 1, 2]
    assert rows[0] | {"index": 1} == rows[1]
    assert rows[0] | {"index": 2} == rows[2]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"something else", "this is not a journal segment"),
        (b"PYGJRNL\x03rest", "journal version 3 is not known, only versions 1 and 2"),
        (PREAMBLE + frame_of([["x"]]), "the header is missing"),
    ],
)
def test_a_segment_without_header_is_told_and_the_others_are_read(tmp_path: Path, data: bytes, reason: str) -> None:
    with_data(tmp_path, data, 0)
    rows, damage = read(with_data(tmp_path, journal_of(2).getvalue(), 1))
    assert [row["index"] for row in rows] == [0, 1]
    assert [place.reason for place in damage] == [reason]


def test_the_history_follows_the_view_over_a_rotation(tmp_path: Path) -> None:
    journal = JournalWriter(
        tmp_path, "g", "A", "1", "uniform", host="h", boot_id="b", services=["PRIMARY"], segment_bytes=1
    )
    journal.write([("start", None, {})], 0, 0)
    journal.write([("view", (1, "A@1"), {"history": "h1"}), ("send", (1, "A@1"), {})], 1, 1)
    journal.write([("send", (1, "A@1"), {})], 2, 2)
    journal.write([("view", (2, "A@1"), {"history": "h2"}), ("send", (2, "A@1"), {})], 3, 3)
    journal.close()
    rows, _ = read(tmp_path)
    assert [row["history"] for row in rows] == [None, "h1", "h1", "h1", "h2", "h2"]


@pytest.mark.parametrize("seed", range(40))
def test_no_damage_stops_the_reader(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(journal_of(30).getvalue())
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    rows, damage = read(with_data(tmp_path, bytes(data[: rng.randrange(len(data))] if seed % 4 == 0 else data)))
    assert len(rows) <= 30
    assert {row["index"] for row in rows} <= set(range(30))
    assert len(rows) >= 26 or damage or seed % 4 == 0


def test_a_folder_that_cannot_be_read_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("orders/A@3f2c", "orders/B@3f2c", "lost+found/none"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "000000.journal").write_bytes(b"")
    scan = os.scandir

    def scandir(path: Path) -> Any:
        if Path(path).name in closed:
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    closed = {"lost+found"}
    assert len(find_segments([tmp_path])) == 2
    for name in ("B@3f2c", "orders", tmp_path.name):
        closed = {name}
        with pytest.raises(PermissionError):
            find_segments([tmp_path])
