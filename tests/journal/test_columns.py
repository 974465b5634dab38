"""The decoding by columns gives the rows and the damage that the decoding record by record gives."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xxhash import xxh32_intdigest

from pygroups.journal import records, scan
from pygroups.journal.columns import Decoded, read_columns
from pygroups.journal.frames import Header, encode_frame, frame_of, segment_beginning
from pygroups.journal.reader import Quarantine, find_segments, read_segments
from pygroups.journal.rows import FREQUENT, RUN_NUMBERS, Rows
from pygroups.journal.schema import COLUMNS, FIELDS, KINDS, PREFIX
from pygroups.journal.writer import segment_path

IDENTITY = ("group", "member", "incarnation", "profile", "host")
NAMES = ("A", "B", "Zoë", "a-name-that-is-longer-than-31-bytes")
ADDRESSES = [f"{name}@{number:016x}" for number, name in enumerate(NAMES)]
INTEGERS = (0, 1, 127, 128, 255, 256, 65535, 65536, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1)
HEADER = Header("orders", "A", "3f2c", "uniform", "1", "here", "boot", [], ["PRIMARY"])


class Drawn:
    """Draws records, most of them of the usual shape."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.strange = seed % 3 == 0

    def journal(self) -> bytes:
        data, index, rng = segment_beginning(HEADER), 0, self.rng
        for _ in range(rng.randrange(1, 60)):
            rows = [self.record(index + at) for at in range(rng.choice((0, 1, 1, 1, 2, 3, 8, 20)))]
            data += frame_of(rows)
            index += len(rows)
        return data

    def record(self, index: int) -> list[Any]:
        rng = self.rng
        kind = rng.choice(KINDS) if rng.random() < 0.2 else rng.choice(FREQUENT)
        view = rng.choice((None, [rng.choice(INTEGERS), rng.choice(ADDRESSES)], [3, "B@1"]))
        fields = [self.value(name) for name in FIELDS[kind]]
        record = [kind, index, self.integer(), self.integer(), view, *fields]
        if self.strange and rng.random() < 0.05:
            record[rng.randrange(len(record))] = rng.choice((2.5, "x", [], {}, b"x", None, -1, 1 << 63, True, ["x"]))
        if self.strange and rng.random() < 0.03:
            record += rng.choice(([1], [None, 2.5], ["text"], [{"a": 1}], list(range(30))))
        if self.strange and rng.random() < 0.01:
            record = record[: rng.randrange(len(record))]
        return record

    def integer(self) -> int:
        return self.rng.choice(INTEGERS) * self.rng.choice((1, 1, 1, -1))

    def value(self, name: str) -> Any:
        rng = self.rng
        if rng.random() < 0.1:
            return None
        match COLUMNS[name]:
            case "bigint":
                return self.integer()
            case "int":
                return rng.randrange(1 << 31)
            case "string":
                return rng.choice(ADDRESSES if name in ("stream", "peer") else NAMES)
            case "array<binary>":
                return None if rng.random() < 0.9 else [b"one", b"x" * 300]
            case "map<string,bigint>":
                return {address: self.integer() for address in rng.sample(ADDRESSES, rng.randrange(len(ADDRESSES)))}
            case "boolean":
                return True
            case "array<string>":
                return rng.sample(ADDRESSES, 2)
            case _:
                return [[ADDRESSES[0]], ADDRESSES[1:]]


def written(folder: Path, data: bytes) -> Path:
    life = folder / "orders" / "A@3f2c"
    life.mkdir(parents=True)
    segment_path(life, 0).write_bytes(data)
    return life


def slowly(folder: Path) -> tuple[list[str], list[tuple[int, str]]]:
    rows, damage = [], []
    for part in read_segments(find_segments([folder])):
        if isinstance(part, Quarantine):
            damage.append((part.offset, part.reason))
        else:
            rows += [text_of(row) for row in part.to_pylist()]
    return sorted(rows), sorted(damage)


def by_columns(folder: Path) -> tuple[list[str], list[tuple[int, str]]]:
    (segment,) = find_segments([folder])
    header, begin = scan.header_of(segment.path)
    if not isinstance(header, Header):
        return [], [] if header.torn else [(header.offset, header.reason)]
    rows: list[str] = []
    damage: list[tuple[int, str]] = []
    history: str | None = None
    for part in read_columns(segment.path, begin, segment.size):
        if isinstance(part, Decoded):
            damage += [(place.offset, place.reason) for place in part.damage]
            rows += [text_of(row) for row in rows_of(part, history)]
            history = part.histories[-1][1] if part.histories else history
        elif not part.torn:
            damage.append((part.offset, part.reason))
    return sorted(rows), sorted(damage)


def rows_of(part: Decoded, history: str | None) -> list[dict[str, Any]]:
    found = [*frequent(part.runs), *frequent(part.votes)]
    for other in part.others:
        columns = {name: column.to_pylist() for name, column in other.columns.items()}
        for at, place in enumerate(other.place.tolist()):
            found.append({"place": place} | {name: column[at] for name, column in columns.items()})
    for row in found:
        before = [told for place, told in part.histories if place <= row["place"]]
        row["history"] = before[-1] if before else history
        del row["place"]
    return found


def frequent(rows: Rows) -> list[dict[str, Any]]:
    found = []
    assert (np.diff(rows.place) > 0).all()
    for at, place in enumerate(rows.place.tolist()):
        names = {name: column.names[column.codes[at]] for name, column in rows.names.items()}
        number, creator = names.pop("view") or (None, None)
        origin, incarnation = names.pop("origin", None) or (None, None)
        row = {"place": place, "kind": FREQUENT[rows.kind[at]], "view_number": number, "view_creator": creator, **names}
        row |= {"origin": origin, "origin_incarnation": incarnation}
        for name, column in rows.numbers.items():
            row[name] = None if column.nulls[at] else int(column.values[at])
        if rows.digest is not None:
            row["digest"] = rows.digest[at].as_py()
        found.append(row)
    return found


def text_of(row: dict[str, Any]) -> str:
    """Without who wrote it, and without the payload, which the columns of the frequent kinds leave out."""
    given = {name: row.get(name) for name in COLUMNS if name not in IDENTITY and name != "payload"}
    return repr(given)


@pytest.fixture(params=[1 << 20, 5000, 700])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many bytes are decoded together."""
    monkeypatch.setattr(scan, "WINDOW", request.param)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.usefixtures("sizes")
def test_drawn_journals_are_read_alike(tmp_path: Path, seed: int) -> None:
    folder = written(tmp_path, Drawn(seed).journal())
    assert by_columns(folder) == slowly(folder)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.usefixtures("sizes")
def test_damaged_journals_are_read_alike(tmp_path: Path, seed: int) -> None:
    drawn = Drawn(seed)
    data, rng = bytearray(drawn.journal()), drawn.rng
    for _ in range(rng.randrange(1, 5)):
        data[rng.randrange(0 if seed % 10 == 0 else 60, len(data)) if len(data) > 60 else 0] = rng.randrange(256)
    if seed % 2:
        del data[rng.randrange(len(data)) :]
    folder = written(tmp_path, bytes(data))
    assert by_columns(folder) == slowly(folder)


def test_frequent_records_are_not_decoded_one_by_one(tmp_path: Path) -> None:
    run = {name: 5 for name in RUN_NUMBERS if name in FIELDS["deliver"]} | {"origin": "A", "stream": "A@1"}
    rows = [("deliver", (3, "A@1"), run), ("purge", (3, "A@1"), {"digest": {"A@1": 7, "B@2": 300}})]
    data = segment_beginning(HEADER) + b"".join(encode_frame(rows, 2 * at, at, at) for at in range(100))
    folder = written(tmp_path, data)
    _, begin = scan.header_of(str(segment_path(folder, 0)))
    (window,) = scan.scan(str(segment_path(folder, 0)), begin, len(data))
    assert isinstance(window, scan.FrameWindow)
    found = records.records_in(window.data, window.begins, window.stops)
    assert (len(found.kind), list(found.slow)) == (200, [])
    assert by_columns(folder) == slowly(folder)


@pytest.mark.parametrize("more", [[7], [None, True, 2.5], [-1] * 8])
def test_frequent_records_of_a_later_version_are_not_decoded_one_by_one(tmp_path: Path, more: list[Any]) -> None:
    rows = [["send", 0, 1, 2, None, "A", "1", 3, 1, 100, 7, *more], ["stable", 1, 1, 2, None, {"A@1": 7}, *more]]
    folder = written(tmp_path, segment_beginning(HEADER) + frame_of(rows) * 60)
    path = str(segment_path(folder, 0))
    (window,) = scan.scan(path, scan.header_of(path)[1], segment_path(folder, 0).stat().st_size)
    assert isinstance(window, scan.FrameWindow)
    assert list(records.records_in(window.data, window.begins, window.stops).slow) == []
    assert by_columns(folder) == slowly(folder)


def test_a_name_twice_in_a_digest_counts_once(tmp_path: Path) -> None:
    body = frame_of([["stable", 0, 1, 2, None, {"A@1": 7, "A@2": 8}]])[8:].replace(b"A@2", b"A@1")
    twice = struct.pack("<II", len(body), xxh32_intdigest(body)) + body
    folder = written(tmp_path, segment_beginning(HEADER) + twice * 60)
    assert by_columns(folder) == slowly(folder)
    assert re.search(r"\('A@1', 8\)\]", by_columns(folder)[0][0])


SEND = ["A", "1", 3, 1, 100, 7]
ODD: dict[str, list[Any]] = {
    "a field is missing": [None, *SEND[:-1]],
    "a view of three": [[3, "A@1", 4], *SEND],
    "a view without a number": [["A@1", 3], *SEND],
    "a view without a creator": [[3, None], *SEND],
    "an origin that is a number": [None, 7, *SEND[1:]],
    "a count of 33 bits": [None, *SEND[:3], 1 << 32, *SEND[4:]],
    "a checksum of 64 bits": [None, *SEND[:5], (1 << 64) - 1],
    "a number that is a fraction": [None, *SEND[:5], 2.5],
    "a number that is a text": [None, *SEND[:5], "7"],
    "a number that is true": [None, *SEND[:5], True],
    "many fields more": [None, *SEND, *range(20)],
    "a text more": [None, *SEND, "text"],
    "a list more": [None, *SEND, [1]],
}


def with_frames(folder: Path, bodies: list[bytes]) -> Path:
    frames = [struct.pack("<II", len(body), xxh32_intdigest(body)) + body for body in bodies]
    return written(folder, segment_beginning(HEADER) + b"".join(frames))


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_an_odd_record_is_read_alike(tmp_path: Path, odd: list[Any]) -> None:
    folder = with_frames(tmp_path, [frame_of([["send", at, 1, 2, *odd]])[8:] for at in range(60)])
    assert by_columns(folder) == slowly(folder)


ODD_VIEWS: dict[str, dict[str, Any]] = {
    "members that are a text": {"members": "ABC"},
    "members that are a map": {"members": {"A@1": 1}},
    "a member that is bytes": {"members": ["A@1", b"B@1"]},
    "subgroups that are texts": {"subgroups": ["AB", "CD"]},
    "a number that is a fraction": {"previous_number": 1.5},
    "a creator that is bytes": {"previous_creator": b"A@1"},
    "a mark that is a fraction": {"digest": {"A@1": 1.5}},
}


@pytest.mark.parametrize("odd", ODD_VIEWS.values(), ids=ODD_VIEWS.keys())
def test_a_value_of_another_type_is_damage_and_the_rest_is_read(tmp_path: Path, odd: dict[str, Any]) -> None:
    right: dict[str, Any] = {"members": ["A@1"], "subgroups": [["A@1"]], "digest": {"A@1": 1}}
    views = [right, right | odd, right]
    rows = [["view", at, 1, 2, [1, "A@1"], *map(view.get, FIELDS["view"])] for at, view in enumerate(views)]
    folder = with_frames(tmp_path, [frame_of([row])[8:] for row in rows])
    found, damage = by_columns(folder)
    assert (found, damage) == slowly(folder)
    reasons = ["record ['view', 1] has fields that are not of its kind"]
    assert (len(found), [reason for _, reason in damage]) == (2, reasons)


@pytest.mark.parametrize("place", ["index", "time_us"])
def test_a_record_without_an_index_or_time_is_read_alike(tmp_path: Path, place: str) -> None:
    rows = [["send", at, at, 2, None, *SEND] for at in range(60)]
    for row in rows:
        row[PREFIX.index(place)] = None
    folder = with_frames(tmp_path, [frame_of([row])[8:] for row in rows])
    assert by_columns(folder) == slowly(folder)


BODIES = {
    "bytes behind the array": lambda body: body + b"\xc0",
    "bytes too few": lambda body: body[:-1],
    "an empty body": lambda body: b"",
    "no array": lambda body: b"\xc0",
    "an empty array": lambda body: b"\x90",
    "too many arrays in arrays": lambda body: b"\x91" * 9000 + b"\x90",
    "no record": lambda body: b"\x91\xc0",
    "a name that is no text": lambda body: body.replace(b"\xa1A", b"\xa1\xff"),
    "a further field that is no text": lambda body: body.replace(b"\x9b", b"\x9c") + b"\xa1\xff",
    "a record more than it says": lambda body: body + body[1:],
    "a kind that goes on otherwise": lambda body: body.replace(b"\xa4send", b"\xacunicast_sand"),
}


@pytest.mark.parametrize("change", BODIES.values(), ids=BODIES.keys())
def test_an_odd_frame_is_read_alike(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    bodies = [frame_of([["send", at, 1, 2, None, *SEND]])[8:] for at in range(60)]
    folder = with_frames(tmp_path, [*bodies, *map(change, bodies)])
    assert by_columns(folder) == slowly(folder)
