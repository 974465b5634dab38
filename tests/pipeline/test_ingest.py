"""Ingest: the rows that journals hold, each once, whenever they were written."""

from __future__ import annotations

import random
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pygroups.journal.frames import Header, encode_frame, segment_beginning
from pygroups.journal.reader import Quarantine, find_segments, read_segments
from pygroups.journal.schema import PREAMBLE, services_of_v1
from pygroups.journal.writer import segment_path
from pygroups.pipeline.ingest import NotATable, NotTheSame, Table, ingest
from pygroups.pipeline.ingest.keys import history_key, key_of, life_key, view_key
from pygroups.pipeline.ingest.layout import EVENTS, NAMES, RUN_KINDS, RUNS, VOTE_KINDS, VOTES
from pygroups.pipeline.ingest.sink import escaped
from pygroups.pipeline.ingest.table import read_rows
from pygroups.pipeline.recorded import distinct_names
from tests.pipeline.ingested import DAY_US, NOON_US, drawn, life_of, names_of, put, rows_of, run, stages

KEYS = (
    *(-742675068286279677, -6223710498164943037, -3734023771215069332, -9146540450145997684),
    *(4288963093313234335, 5738425687750045587, -7444071767201028348),
)


def test_keys_are_those_of_spark() -> None:
    """Spark's `xxhash64` gave these numbers for the same columns."""
    assert key_of("orders", "A", "3f2c") == life_key("orders", "A@3f2c") == KEYS[0]
    assert view_key("orders", 4, "A@3f2c") == KEYS[1]
    assert history_key("h1") == KEYS[2]
    assert key_of("orders", None, "3f2c") == KEYS[3]
    long = "Zoë-long-name-that-is-more-than-32-bytes"
    assert key_of("größe", long, "0123456789abcdef") == KEYS[4]
    assert view_key("größe", -7, None) == KEYS[5]
    assert history_key("") == KEYS[6]


def slow_rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The same tables, row by row from the records: a second way to say what they are."""
    found: dict[str, list[dict[str, Any]]] = {"runs": [], "events": [], "votes": []}
    records: list[dict[str, Any]] = []
    for part in read_segments(find_segments([folder])):
        records += part.to_pylist()
    numbers: dict[Any, dict[Any, int]] = {}
    counted: dict[str, tuple[Any, int]] = {}
    given: set[str] = set()
    for row in sorted(records, key=lambda row: (row["member"], row["index"])):
        group, member, kind = row["group"], row["member"], row["kind"]
        sender = row["origin"] and life_key(group, f"{row['origin']}@{row['origin_incarnation']}")
        view = (row["view_number"], row["view_creator"])
        keyed = {
            "life": life_key(group, f"{member}@{row['incarnation']}"),
            "view": None if view[0] is None else view_key(group, *view),
            "history": row["history"] and history_key(row["history"]),
            "sender": sender,
            "previous": None,
            "group": group,
            "day": date.fromordinal(date(1970, 1, 1).toordinal() + row["time_us"] // DAY_US),
            "expected": None,
            "counted": None,
        }
        mine = numbers.setdefault(member, {})
        if kind == "view" and row["digest"] is not None:
            mine.clear()
            mine.update((life_key(group, name), mark + 1) for name, mark in row["digest"])
            given.add(member)
        if kind in ("deliver", "gap"):
            default = None if row["profile"] == "gossip" and member not in given else 1
            keyed["expected"] = mine.get(sender, default)
            mine[sender] = max(keyed["expected"] or 0, row["first"] + row["count"])
        if kind == "deliver":
            before, count = counted.get(member, (None, 0))
            count = count if before == view else 0
            keyed["counted"] = None if view[0] is None else count
            counted[member] = view, count + row["count"]
        table = "runs" if kind in RUN_KINDS else "votes" if kind in VOTE_KINDS else "events"
        if table == "runs":
            keyed["kind"] = RUN_KINDS[kind]
            keyed |= {name: row[name] and life_key(group, row[name]) for name in ("stream", "peer")}
        schema = {"runs": RUNS, "events": EVENTS, "votes": VOTES}[table]
        whole = {**row, **keyed}
        found[table].append({name: whole[name] for name in (*schema.names, "group", "day")} | {"table": table})
    return {name: sorted(rows, key=lambda row: (row["life"], row["index"])) for name, rows in found.items()}


def plain(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    for some in rows.values():
        for row in some:
            row["day"] = str(row["day"])
    return rows


@pytest.mark.parametrize("profile", ["total", "uniform", "gossip"])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_tables_hold_what_the_records_say(tmp_path: Path, profile: str, seed: int) -> None:
    drawn(tmp_path / "journals", seed, profile)
    ingest([tmp_path / "journals"], tmp_path / "table")
    assert plain(rows_of(tmp_path / "table")) == plain(slow_rows(tmp_path / "journals"))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("profile", ["uniform", "gossip"])
def test_journals_that_grow_are_ingested_as_if_at_once(tmp_path: Path, seed: int, profile: str) -> None:
    journals = tmp_path / "journals"
    drawn(journals, seed, profile)
    at_once = ingest([journals], tmp_path / "once")
    moments = stages(journals, seed, 4)
    for file in journals.glob("*/*@*/*.journal"):
        file.unlink()
    bytes_, rows = 0, 0
    for files in moments:
        put(files)
        result = ingest([journals], tmp_path / "table")
        bytes_, rows = bytes_ + result.bytes, rows + result.rows
        assert result.damaged == []
    assert (bytes_, rows) == (at_once.bytes, at_once.rows)
    assert rows_of(tmp_path / "table") == rows_of(tmp_path / "once")
    assert names_of(tmp_path / "table") == names_of(tmp_path / "once")
    assert ingest([journals], tmp_path / "table").commit is None
    ranges = [
        row for row in Table(tmp_path / "table").manifest().to_pylist() if row["file"].endswith("A@3f2c/000001.journal")
    ]
    assert [row["begin"] for row in ranges] == [0, *(row["end"] for row in ranges[:-1])]
    assert [row["wrong_index"] for row in ranges] == [None] * len(ranges)


def test_a_second_ingest_reads_what_is_new(tmp_path: Path) -> None:
    journal = life_of(tmp_path / "j")
    journal.write([("start", None, {})], NOON_US, 1)
    first = ingest([tmp_path / "j"], tmp_path / "t")
    assert (first.files, first.rows, first.skipped) == (1, 1, 0)
    again = ingest([tmp_path / "j"], tmp_path / "t")
    assert (again.commit, again.rows, again.bytes, again.skipped) == (None, 0, 0, 1)
    journal.write([("send", None, run("A", 1)), ("send", None, run("A", 2))], NOON_US, 2)
    more = ingest([tmp_path / "j"], tmp_path / "t")
    assert (more.files, more.rows, more.skipped) == (1, 2, 1)
    assert first.bytes + more.bytes == segment_path(journal.folder, 0).stat().st_size
    told = Table(tmp_path / "t").manifest().to_pylist()
    assert [(row["first_index"], row["last_index"], row["rows"]) for row in told] == [(0, 0, 1), (1, 2, 2)]
    assert [row["kinds"] for row in told] == [["start"], ["send"]]
    assert told[0]["commit"] < told[1]["commit"]


def test_a_torn_end_is_read_when_it_is_whole(tmp_path: Path) -> None:
    journal = life_of(tmp_path / "j")
    journal.write([("start", None, {})], NOON_US, 1)
    journal.write([("stop", None, {})], NOON_US, 2)
    path = segment_path(journal.folder, 0)
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    for _ in range(2):
        assert ingest([tmp_path / "j"], tmp_path / "t").damaged == []
    path.write_bytes(whole)
    assert ingest([tmp_path / "j"], tmp_path / "t").rows == 1
    assert [row["kind"] for row in rows_of(tmp_path / "t")["events"]] == ["start", "stop"]
    assert Table(tmp_path / "t").manifest()["damage"].to_pylist() == [None, None]


def test_a_torn_end_that_nobody_goes_on_with_is_told_once(tmp_path: Path) -> None:
    journal = life_of(tmp_path / "j", segment=1)
    for kind in ("start", "leave", "stop"):
        journal.write([(kind, None, {})], NOON_US, 1)
    first, second, third = (segment_path(journal.folder, number) for number in (1, 2, 3))
    later = third.read_bytes()
    third.unlink()
    second.write_bytes(second.read_bytes()[:-2])
    assert ingest([tmp_path / "j"], tmp_path / "t").damaged == []
    third.write_bytes(later)
    assert first.exists()
    (place,) = ingest([tmp_path / "j"], tmp_path / "t").damaged
    assert (place.file, place.reason) == (str(second), "the segment ends within a frame")
    assert ingest([tmp_path / "j"], tmp_path / "t").commit is None
    told = [row for row in Table(tmp_path / "t").manifest().to_pylist() if row["damage"] or row["wrong_index"]]
    assert [(row["segment"], row["damage_offset"], row["wrong_index"]) for row in told] == [
        (2, place.offset, None),
        (3, None, 1),
    ]


def test_a_header_twice_before_a_torn_end_is_damage(tmp_path: Path) -> None:
    """As after a copy that was put together wrongly: its last frame has no number to go on from."""
    journal = life_of(tmp_path / "j")
    journal.write([("start", None, {})], NOON_US, 1)
    path = segment_path(journal.folder, 0)
    data = path.read_bytes()
    frame = encode_frame([("stop", None, {})], 1, NOON_US, 2)
    header = segment_beginning(Header("orders", "A", "3f2c", "total", "", "here", "boot", [], services_of_v1("total")))[
        len(PREAMBLE) :
    ]
    for following in (b"", data):
        path.write_bytes(data + header + frame[:-3])
        if following:
            segment_path(journal.folder, 1).write_bytes(following)
        places = [place.reason[:26] for place in ingest([tmp_path / "j"], tmp_path / f"t{len(following)}").damaged]
        told = [part for part in read_segments(find_segments([tmp_path / "j"])) if isinstance(part, Quarantine)]
        assert places == [part.reason[:26] for part in told]
        assert places[0] == "not a record that is known"


def test_damage_stands_in_the_manifest(tmp_path: Path) -> None:
    journal = life_of(tmp_path / "j")
    for number in range(1, 7):
        journal.write([("send", None, run("A", number))], NOON_US, number)
    path = segment_path(journal.folder, 0)
    data = bytearray(path.read_bytes())
    places = [data.index(b"\xa4send\x01"), data.index(b"\xa4send\x03")]
    for place in places:
        data[place + 1] ^= 1
    path.write_bytes(data)
    result = ingest([tmp_path / "j"], tmp_path / "t")
    assert (result.rows, [place.reason for place in result.damaged]) == (4, ["bad checksum"] * 2)
    first, second = Table(tmp_path / "t").manifest().to_pylist()
    assert (first["rows"], first["wrong_index"], first["first_index"], first["last_index"]) == (4, 1, 0, 5)
    assert (first["damage"], first["damage_offset"]) == ("bad checksum", result.damaged[0].offset)
    assert (second["rows"], second["begin"], second["end"]) == (0, second["damage_offset"], second["damage_offset"])
    assert ingest([tmp_path / "j"], tmp_path / "t").commit is None


@pytest.mark.parametrize("broken", ["body", "length"])
@pytest.mark.parametrize("seed", range(3))
def test_damage_in_a_journal_that_grows_is_told_once_and_hides_no_frame(tmp_path: Path, broken: str, seed: int) -> None:
    """The bytes come piece by piece: behind the damage stands, for a while, a frame that is not whole yet."""
    journal = life_of(tmp_path / "j")
    for number in range(1, 7):
        journal.write([("send", None, run("A", number))], NOON_US, number)
    path = segment_path(journal.folder, 0)
    data = bytearray(path.read_bytes())
    kind = data.index(b"\xa4send\x03")
    data[kind + 1 if broken == "body" else data.rindex(b"\x00\x00\x00", 0, kind) - 1] ^= 1
    rng = random.Random(seed)
    sizes = sorted({*rng.sample(range(len(data)), 12), kind + 60, len(data)})
    damaged, rows = [], 0
    for size in sizes:
        path.write_bytes(data[:size])
        for _ in range(2):
            result = ingest([tmp_path / "j"], tmp_path / "t")
            damaged += result.damaged
            rows += result.rows
    at_once = ingest([tmp_path / "j"], tmp_path / "once")
    assert (len(damaged), rows) == (1, 5) == (len(at_once.damaged), at_once.rows)
    assert damaged[0].offset == at_once.damaged[0].offset
    assert rows_of(tmp_path / "t") == rows_of(tmp_path / "once")


@pytest.mark.parametrize(
    ("indices", "wrong"), [([0, 1, 2], None), ([1, 2], 0), ([0, 1, 1, 2], 1), ([0, 2, 1, 5], 1), ([0, 1, 3, 0], 0)]
)
def test_where_indices_stop_being_consecutive(tmp_path: Path, indices: list[int], wrong: int | None) -> None:
    journal = life_of(tmp_path / "j")
    for index in indices:
        journal._encoder.index = index
        journal.write([("send", None, run("A", 1))], NOON_US, 1)
    ingest([tmp_path / "j"], tmp_path / "t")
    assert Table(tmp_path / "t").manifest()["wrong_index"].to_pylist() == [wrong]


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"something else", "this is not a journal segment"), (b"PYGJRNL\x03rest", "journal version 3 is not known")],
)
def test_a_segment_that_is_none_is_told_once(tmp_path: Path, data: bytes, reason: str) -> None:
    journal = life_of(tmp_path / "j")
    journal.write([("start", None, {})], NOON_US, 1)
    path = segment_path(journal.folder, 1)
    path.write_bytes(data)
    result = ingest([tmp_path / "j"], tmp_path / "t")
    assert [place.reason.startswith(reason) for place in result.damaged] == [True]
    path.write_bytes(data + b"and more")
    assert ingest([tmp_path / "j"], tmp_path / "t").commit is None
    told = Table(tmp_path / "t").manifest().to_pylist()
    assert [(row["address"], row["profile"], row["rows"]) for row in told] == [
        ("A@3f2c", "total", 1),
        ("A@3f2c", None, 0),
    ]


@pytest.mark.parametrize("last", [False, True])
def test_a_segment_without_a_header_belongs_to_the_member_of_its_folder(tmp_path: Path, last: bool) -> None:
    """The folder above the member's is not named as the group."""
    folder = tmp_path / "backup of monday" / "A@3f2c"
    folder.mkdir(parents=True)
    header = segment_beginning(Header("orders", "A", "3f2c", "total", "", "here", "boot", [], services_of_v1("total")))
    for number in range(2):
        frame = encode_frame([("leave", None, {})], number, 1, 1)
        path = segment_path(folder, number)
        path.write_bytes(header + frame)
        if number == last:
            path.write_bytes(b"".join([b"x", header[1:], frame]))
    ingest([tmp_path / "backup of monday"], tmp_path / "table")
    manifest = Table(tmp_path / "table").manifest().to_pylist()
    assert [(row["group"], row["address"], row["segment"]) for row in manifest] == [
        ("orders", "A@3f2c", 0),
        ("orders", "A@3f2c", 1),
    ]
    assert [row["damage"] is not None for row in manifest] == [not last, last]


def test_a_header_that_is_not_whole_yet_is_read_later(tmp_path: Path) -> None:
    journal = life_of(tmp_path / "j")
    journal.write([("start", None, {})], NOON_US, 1)
    path = segment_path(journal.folder, 0)
    data = path.read_bytes()
    for size in (0, 5, 8, 30):
        path.write_bytes(data[:size])
        result = ingest([tmp_path / "j"], tmp_path / "t")
        assert (result.rows, result.damaged) == (0, [])
    path.write_bytes(data)
    assert ingest([tmp_path / "j"], tmp_path / "t").rows == 1


def grown(tmp_path: Path) -> Path:
    journal = life_of(tmp_path / "j")
    for number in range(3):
        journal.write([("send", None, run("A", number))], NOON_US, number)
    ingest([tmp_path / "j"], tmp_path / "t")
    return segment_path(journal.folder, 0)


def refused(tmp_path: Path, *paths: Path) -> str:
    before = rows_of(tmp_path / "t")
    with pytest.raises(NotTheSame) as error:
        ingest(paths, tmp_path / "t")
    assert rows_of(tmp_path / "t") == before
    return str(error.value)


def test_a_journal_that_is_not_the_same_is_refused(tmp_path: Path) -> None:
    path = grown(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    assert "a journal only grows" in refused(tmp_path, tmp_path / "j")
    path.write_bytes(data[:-1] + b"?" + data)
    assert "was replaced: its first" in refused(tmp_path, tmp_path / "j")
    path.write_bytes(data)
    assert ingest([tmp_path / "j"], tmp_path / "t").commit is None


def test_a_segment_out_of_turn_is_refused(tmp_path: Path) -> None:
    journal = life_of(tmp_path / "j", segment=1)
    for number in range(3):
        journal.write([("send", None, run("A", number))], NOON_US, number)
    first, second = segment_path(journal.folder, 1), segment_path(journal.folder, 2)
    data = second.read_bytes()
    second.unlink()
    ingest([tmp_path / "j"], tmp_path / "t")
    second.write_bytes(data)
    assert "appeared after a later segment of its member" in refused(tmp_path, tmp_path / "j")
    second.unlink()
    first.write_bytes(first.read_bytes() + data[8:])
    assert "has grown after a later segment of its member" in refused(tmp_path, tmp_path / "j")


def test_a_copy_of_a_journal_is_the_same_life(tmp_path: Path) -> None:
    path = grown(tmp_path)
    copy = tmp_path / "copy" / "orders" / "A@3f2c" / path.name
    put({copy: path.read_bytes()})
    assert ingest([tmp_path / "copy"], tmp_path / "t").commit is None
    assert ingest([tmp_path / "copy", tmp_path / "j"], tmp_path / "t").files == 1
    life_of(tmp_path / "copy").write([("stop", None, {})], NOON_US, 1)  # a further segment, in the copy alone
    assert ingest([tmp_path / "j", tmp_path / "copy"], tmp_path / "t").rows == 1
    copy.write_bytes(path.read_bytes() + path.read_bytes()[8:])
    path.write_bytes(path.read_bytes() + b"something else")
    assert "are copies of segment 0 of A@3f2c in group orders, but their bytes differ: ingest only one" in refused(
        tmp_path, tmp_path / "j", tmp_path / "copy"
    )


def test_days_and_names_of_groups_are_folders(tmp_path: Path) -> None:
    journal = life_of(tmp_path / "j", group="a=b c")
    for time_us in (0, DAY_US - 1, DAY_US, -1, 1 << 62):
        journal.write([("send", None, run("A", 1))], time_us, 1)
    ingest([tmp_path / "j"], tmp_path / "t")
    assert sorted(str(path.parent.relative_to(tmp_path / "t")) for path in tmp_path.glob("t/runs/*/*/*.parquet")) == [
        "runs/group=a%3Db c/day=1969-12-31",
        "runs/group=a%3Db c/day=1970-01-01",
        "runs/group=a%3Db c/day=1970-01-02",
        "runs/group=a%3Db c/day=__HIVE_DEFAULT_PARTITION__",
    ]
    assert Table(tmp_path / "t").groups == ["a=b c"]
    assert [escaped(name) for name in ("", "x/y", "ü%")] == ["__HIVE_DEFAULT_PARTITION__", "x%2Fy", "ü%25"]


def test_rows_stand_in_order_with_their_limits(tmp_path: Path) -> None:
    for name in "ABC":
        journal = life_of(tmp_path / "j", name)
        for number in range(50):
            journal.write([("send", None, run(name, number))], NOON_US, number)
    ingest([tmp_path / "j"], tmp_path / "t")
    (file,) = Table(tmp_path / "t").runs_files
    rows = [(row["life"], row["index"]) for row in pq.read_table(file, partitioning=None).to_pylist()]
    assert rows == sorted(rows)
    column = pq.ParquetFile(file).metadata.row_group(0).column(RUNS.names.index("index"))
    assert (column.statistics.min, column.statistics.max) == (0, 49)


@pytest.mark.slow
def test_a_pool_writes_what_one_process_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[ingest.__module__]
    drawn(tmp_path / "j", 3, "uniform")
    ingest([tmp_path / "j"], tmp_path / "one")
    monkeypatch.setattr(module, "SMALL_BYTES", 0)
    monkeypatch.setattr(module, "_BATCH_BYTES", 1)
    done: list[tuple[int, int]] = []
    result = ingest([tmp_path / "j"], tmp_path / "two", jobs=2, progress=lambda *told: done.append(told))
    assert len(Table(tmp_path / "two").names_files) == 2
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "two")
    assert done[-1] == (result.bytes, result.bytes)


@pytest.mark.parametrize("name", ["file", "folder"])
def test_what_is_no_table_is_refused(tmp_path: Path, name: str) -> None:
    grown(tmp_path)
    out = tmp_path / "out"
    if name == "file":
        out.write_text("x")
    else:
        put({out / "x": b""})
    with pytest.raises(NotATable, match="is neither empty nor a table of journals"):
        ingest([tmp_path / "j"], out)


def test_a_table_of_another_format_is_refused(tmp_path: Path) -> None:
    grown(tmp_path)
    (tmp_path / "t" / "table.json").write_text('{"format": 2}')
    with pytest.raises(NotATable, match="is a table of format 2; this version reads format 1 alone"):
        ingest([tmp_path / "j"], tmp_path / "t")


def test_a_table_that_has_lost_rows_is_not_judged(tmp_path: Path) -> None:
    journal = life_of(tmp_path / "j")
    journal.write([("start", None, {}), ("send", None, run("A", 1))], NOON_US, 1)
    ingest([tmp_path / "j"], tmp_path / "t")
    Table(tmp_path / "t").check()
    (file,) = map(Path, Table(tmp_path / "t").runs_files)
    file.unlink()
    with pytest.raises(NotATable, match=r"is incomplete: runs/group=orders/day=\S+\.parquet is missing; ingest"):
        Table(tmp_path / "t").check()


@pytest.mark.parametrize("folder", ["names", "carried"])
def test_a_table_without_a_file_that_a_commit_wrote_is_refused(tmp_path: Path, folder: str) -> None:
    """Without names nobody could be named; without what is carried along, records would be added twice."""
    life_of(tmp_path / "j").write([("start", None, {})], NOON_US, 1)
    ingest([tmp_path / "j"], tmp_path / "t")
    (file,) = (tmp_path / "t" / folder).glob("*.parquet")
    file.unlink()
    with pytest.raises(
        NotATable, match=rf"is incomplete: {folder}/\S+\.parquet is missing; ingest the journals into a"
    ):
        Table(tmp_path / "t").check()
        ingest([tmp_path / "j"], tmp_path / "t")


@pytest.mark.parametrize("folder", ["manifest", "carried"])
def test_a_damaged_file_of_a_table_is_refused_in_a_sentence(tmp_path: Path, folder: str) -> None:
    life_of(tmp_path / "j").write([("start", None, {})], NOON_US, 1)
    ingest([tmp_path / "j"], tmp_path / "t")
    (file,) = (tmp_path / "t" / folder).glob("*.parquet")
    file.write_bytes(b"")
    with pytest.raises(NotATable, match=r"\.parquet is damaged: ingest the journals into a new table"):
        Table(tmp_path / "t").manifest()
        ingest([tmp_path / "j"], tmp_path / "t")


@pytest.mark.parametrize("table", ["runs", "events", "names"])
@pytest.mark.parametrize("damage", ["emptied", "cut", "flipped"])
def test_a_damaged_file_of_rows_is_seen(tmp_path: Path, table: str, damage: str) -> None:
    """Spark itself takes an empty file for a table without rows, and a flipped bit for another number."""
    life_of(tmp_path / "j").write([("start", None, {}), *[("send", None, run("A", n)) for n in range(99)]], NOON_US, 1)
    ingest([tmp_path / "j"], tmp_path / "t")
    (file,) = (Path(name) for name in getattr(Table(tmp_path / "t"), f"{table}_files"))
    data = bytearray(file.read_bytes())
    if damage == "flipped":
        column = pq.ParquetFile(file).metadata.row_group(0).column(0)
        data[(column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 1] ^= 1
    file.write_bytes({"emptied": b"", "cut": data[: len(data) // 2], "flipped": data}[damage])
    with pytest.raises(NotATable, match=rf"{file} is damaged: ingest the journals into a new table"):
        if damage == "flipped":
            schema = {"runs": RUNS, "events": EVENTS, "names": NAMES}[table]
            read_rows(file, schema)
        elif table == "names":
            distinct_names(Table(tmp_path / "t"))
        else:
            Table(tmp_path / "t").check()


def test_a_file_that_lost_rows_is_seen(tmp_path: Path) -> None:
    life_of(tmp_path / "j").write([("send", None, run("A", n)) for n in range(9)], NOON_US, 1)
    ingest([tmp_path / "j"], tmp_path / "t")
    (file,) = Table(tmp_path / "t").runs_files
    pq.write_table(pq.read_table(file, partitioning=None).slice(0, 5), file)
    with pytest.raises(NotATable, match=r"is incomplete: commit \d+ has 5 records, not 9; ingest the journals into a"):
        Table(tmp_path / "t").check()


def test_a_folder_in_which_an_audit_kept_its_tables_becomes_a_table(tmp_path: Path) -> None:
    grown(tmp_path)
    put({tmp_path / "out" / "silver" / "lives" / "x": b"", tmp_path / "out" / "gold" / "violations" / "y": b""})
    assert ingest([tmp_path / "j"], tmp_path / "out").rows == 3


def test_a_manifest_that_cannot_be_read_is_not_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life_of(tmp_path / "j").write([("start", None, {})], NOON_US, 1)
    ingest([tmp_path / "j"], tmp_path / "t")

    def denied(path: Path) -> list[str]:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.scandir", denied)
    monkeypatch.setattr("os.listdir", denied)
    with pytest.raises(PermissionError):
        Table(tmp_path / "t")
