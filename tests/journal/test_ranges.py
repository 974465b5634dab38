"""Ranges of a segment give what the segment gives; columns and kinds that nobody asks for cost nothing."""

from __future__ import annotations

import random
from collections.abc import Iterable
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from pygroups.journal import frames
from pygroups.journal.frames import frame_of
from pygroups.journal.ranges import header_of, split
from pygroups.journal.reader import (
    EVERYTHING,
    SCHEMA,
    Quarantine,
    Range,
    Segment,
    WantedRecords,
    find_segments,
    read_segments,
)
from pygroups.journal.schema import PREAMBLE
from pygroups.journal.writer import MemoryJournal, segment_path

RUN: dict[str, Any] = {"origin": "B", "origin_incarnation": "2", "count": 1, "bytes": 9, "stream": "B@2"}


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    """A `uniform` life whose history changes twice, with votes among the deliveries."""
    journal = MemoryJournal("orders", "A", "3f2c", "uniform", services=["PRIMARY"])
    for number in range(300):
        if number % 100 == 7:
            view = {"members": ["A@3f2c"], "history": f"history {number}", "detail": "\u0124view is no kind here"}
            journal.write([("view", (number, "A@3f2c"), view)], number, number)
        journal.write([("deliver", (1, "A@3f2c"), RUN | {"first": number, "position": number})], number, number)
        if number % 3 == 0:
            journal.write([("stable", (1, "A@3f2c"), {"digest": {"B@2": number}})], number, number)
    return with_data(tmp_path, journal.getvalue())


def with_data(tmp_path: Path, data: bytes | bytearray) -> Segment:
    folder = tmp_path / "orders" / "A@3f2c"
    folder.mkdir(parents=True, exist_ok=True)
    segment_path(folder, 0).write_bytes(data)
    (found,) = find_segments([tmp_path])
    return found


def read(
    parts: Iterable[Segment | Range], asked: WantedRecords = EVERYTHING
) -> tuple[list[dict[str, Any]], list[Quarantine]]:
    rows: list[dict[str, Any]] = []
    damage: list[Quarantine] = []
    for part in read_segments(parts, asked=asked):
        if isinstance(part, Quarantine):
            damage.append(part)
        else:
            rows += part.to_pylist()
    return sorted(rows, key=lambda row: str(row.get("index", ""))), sorted(damage, key=lambda place: place.offset)


@pytest.mark.parametrize("most", [1, 100, 1000, 10_000])
def test_all_ranges_together_are_the_segment(segment: Segment, most: int) -> None:
    ranges = split(segment, most)
    assert [place.begin for place in ranges] == [0, *(place.end for place in ranges[:-1])]
    assert ranges[-1].end == segment.size
    assert segment.size / (most + 100) - 1 < len(ranges) <= ceil(segment.size / most)
    assert read(ranges) == read([segment])
    assert {row["history"] for row in read(ranges)[0]} == {None, "history 7", "history 107", "history 207"}


def test_a_small_segment_is_one_range_and_its_file_is_not_opened(segment: Segment) -> None:
    Path(segment.path).unlink()
    assert split(segment, segment.size) == [Range(segment, 0, segment.size)]


@pytest.mark.parametrize("seed", range(60))
def test_damage_is_told_once_and_costs_what_it_costs_in_the_whole_segment(segment: Segment, seed: int) -> None:
    draw = random.Random(seed)
    data = bytearray(Path(segment.path).read_bytes())
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(data))
        choice = draw.randrange(3)
        if choice == 0:
            data[at] ^= 1 << draw.randrange(8)
        elif choice == 1:
            del data[at : at + draw.randrange(40)]
        else:
            data[at:at] = draw.randbytes(draw.randrange(40))
    damaged = with_data(Path(segment.path).parents[2], data)
    assert read(split(damaged, 700)) == read([damaged])


def test_a_torn_end_is_no_damage_of_the_last_range(segment: Segment) -> None:
    torn = with_data(Path(segment.path).parents[2], Path(segment.path).read_bytes()[:-5])
    assert read(split(torn, 700)) == read([torn])
    assert read([torn])[1] == []


def test_only_the_last_range_of_a_segment_may_be_torn(segment: Segment) -> None:
    ranges = split(segment, 700)
    cut = Range(segment, ranges[1].begin, ranges[1].end - 5, ranges[1].header, ranges[1].history)
    assert [place.reason for place in read([cut])[1]] == ["the segment ends within a frame"]


def test_what_grows_after_the_look_is_not_read(segment: Segment) -> None:
    before = read([segment])
    ranges = split(segment, 700)
    with Path(segment.path).open("ab") as file:
        file.write(frame_of([["leave", 9999, 1, 1, None, "bye", None]]))
    assert read(ranges) == before


def test_the_header_is_read_without_the_rest(segment: Segment) -> None:
    header = header_of(segment)
    assert header is not None and (header.group, header.profile, header.in_force) == ("orders", "uniform", [])
    Path(segment.path).write_bytes(PREAMBLE + b"no frame")
    assert header_of(segment) is None
    Path(segment.path).unlink()
    assert header_of(segment) is None


def test_only_the_asked_columns_and_kinds_come(segment: Segment) -> None:
    columns = frozenset({"kind", "history", "first", "view_number"})
    full = read([segment])[0]
    wanted = [{name: row[name] for name in SCHEMA.names if name in columns} for row in full]
    assert sorted(read([segment], WantedRecords(columns))[0], key=repr) == sorted(wanted, key=repr)
    views = [row for row in full if row["kind"] in ("view", "stable")]
    assert read([segment], WantedRecords(kinds=frozenset({"view", "stable"}))) == (views, [])
    assert read([segment], WantedRecords(kinds=frozenset())) == ([], [])
    deliveries = [row for row in full if row["kind"] == "deliver"]
    assert (
        read(split(segment, 500), WantedRecords(kinds=frozenset({"deliver"})))[0] == deliveries
    )  # each with its history


def test_frames_without_an_asked_kind_are_not_decoded(segment: Segment, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    decode = frames._decode

    def counted(body: bytes) -> Any:
        decoded.append(body)
        return decode(body)

    monkeypatch.setattr(frames, "_decode", counted)
    columns = frozenset({"kind", "index"})
    assert len(read([segment], WantedRecords(columns, frozenset({"stable"})))[0]) == 100
    assert len(decoded) == 101  # and the header
    decoded.clear()
    assert len(read([segment])[0]) == 403
    assert len(decoded) == 404


def of_damaged(segment: Segment) -> tuple[Range, list[tuple[int, str]]]:
    """A range with records that do not fit their kind and a kind that is none, and where each of them stands."""
    data = Path(segment.path).read_bytes()
    begin, said = len(data), []
    for at in range(40):
        row = ["stable", at, 1, "late", [1, "A@3f2c"]] if at % 2 else ["sable", at, 1, 1, None]
        said.append((len(data), "fields that are not of its kind" if at % 2 else "not a record that is known"))
        data += frame_of([row])
    Path(segment.path).write_bytes(data)
    header = header_of(segment)
    assert header is not None
    return Range(segment, begin, len(data), header), said


def test_damage_in_a_range_is_told_at_its_place_in_the_segment(segment: Segment) -> None:
    part, said = of_damaged(segment)
    _, damage = read([part])
    assert len(damage) == len(said)
    for found, (offset, reason) in zip(sorted(damage, key=lambda one: one.offset), said, strict=True):
        assert found.offset == offset and reason in found.reason


def test_records_that_do_not_fit_are_found_without_reading_the_segment_again(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, said = of_damaged(segment)
    decoded: list[object] = []
    before = frames._decode
    monkeypatch.setattr(frames, "_decode", lambda body: (decoded.append(body), before(body))[1])
    assert len(read([part])[1]) == len(said)
    assert len(decoded) == len(said)
