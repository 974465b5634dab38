"""The end of a journal: which records have force there, and whether any may be missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from pygroups.journal.ending import begun_at, ending_of
from pygroups.journal.frames import Record
from pygroups.journal.schema import FIELDS, PREFIX
from pygroups.journal.writer import JournalWriter, segment_path

VIEW = (4, "A@3f2c91d000000001")
DELIVER: Record = ("deliver", VIEW, {"origin": "B", "origin_incarnation": "77", "first": 1, "count": 2})
IN_VIEW: Record = ("view", VIEW, {"members": ["A@3f2c91d000000001"], "history": "h1"})
COLLECT: Record = ("flush", VIEW, {"stage": "collect", "ballot_number": 5, "ballot_leader": "A@1"})
ACCEPTED: Record = ("flush", VIEW, {"stage": "accepted", "ballot_number": 5, "ballot_leader": "A@1", "detail": "text"})
LED: Record = ("flush", None, {"stage": "accepted", "next_number": 4, "next_creator": "A@3f2c91d000000001"})
INSTALLED: Record = ("flush", VIEW, {"stage": "installed", "next_number": 5, "next_creator": "A@1", "detail": "h1"})
STAGE_AT = len(PREFIX) + FIELDS["flush"].index("stage")


def opened(root: Path, *, later: bool = False, segment_bytes: int = 1 << 20) -> JournalWriter:
    names = {"host": "here", "boot_id": "boot"}
    return JournalWriter(
        root, "orders", "A", "3f2c", "uniform", **names, services=["PRIMARY"], later=later, segment_bytes=segment_bytes
    )


def written(root: Path, *records: Record, segment_bytes: int = 1 << 20) -> Path:
    """The folder of a life with these records, one in each turn."""
    journal = opened(root, segment_bytes=segment_bytes)
    for time, record in enumerate(records, 17):
        journal.write([record], time, time)
    journal.close()
    return journal.folder


def in_force(root: Path) -> list[str]:
    """The kinds and stages of the records in force."""
    journal = opened(root, later=True)
    journal.close()
    return [row[STAGE_AT] if row[0] == "flush" else row[0] for row in journal.in_force]


def test_a_folder_without_a_journal_has_nothing_in_force(tmp_path: Path) -> None:
    assert ending_of(tmp_path) == ("", (), 0, True)
    assert begun_at(tmp_path) == 0


@pytest.mark.parametrize("segment_bytes", [1, 300, 1 << 20])
def test_the_last_view_and_the_answers_after_it_are_in_force(tmp_path: Path, segment_bytes: int) -> None:
    records = [IN_VIEW, COLLECT, ACCEPTED, *[DELIVER] * 5, IN_VIEW, *[DELIVER] * 5, COLLECT, DELIVER, ACCEPTED, DELIVER]
    folder = written(tmp_path, *records, segment_bytes=segment_bytes)
    assert in_force(tmp_path) == ["view", "collect", "accepted"]
    assert begun_at(folder) == 17
    ending = ending_of(folder)
    assert (ending.profile, ending.next_index, ending.whole) == ("uniform", len(records), True)


@pytest.mark.parametrize("segment_bytes", [1, 1 << 20])
def test_the_proposal_that_became_the_view_stays_in_force(tmp_path: Path, segment_bytes: int) -> None:
    """It stands before the view.  Another proposal that was accepted before the view has no force."""
    written(tmp_path, ACCEPTED, LED, IN_VIEW, *[DELIVER] * 3, segment_bytes=segment_bytes)
    assert in_force(tmp_path) == ["accepted", "view"]
    written(tmp_path, COLLECT, ACCEPTED, DELIVER, segment_bytes=segment_bytes)
    assert in_force(tmp_path) == ["accepted", "view", "collect", "accepted"]
    written(tmp_path, ("flush", VIEW, {**ACCEPTED[2], "next_number": 5, "next_creator": "A@1"}), INSTALLED, DELIVER)
    assert in_force(tmp_path) == ["view", "accepted", "installed"]
    written(tmp_path, COLLECT, ACCEPTED)
    assert in_force(tmp_path) == ["view", "accepted", "installed", "collect", "accepted"]
    written(tmp_path, IN_VIEW)
    assert in_force(tmp_path) == ["view"]


def test_a_view_that_another_process_installed_ends_the_answers(tmp_path: Path) -> None:
    written(tmp_path, IN_VIEW, COLLECT, ACCEPTED, INSTALLED)
    assert in_force(tmp_path) == ["view", "installed"]
    written(tmp_path, COLLECT)
    assert in_force(tmp_path) == ["view", "installed", "collect"]
    written(tmp_path, ("flush", VIEW, {"stage": "installed", "next_number": 6}))  # its own
    assert in_force(tmp_path) == ["view", "installed", "collect"]


def test_only_the_last_segment_with_records_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the size of the whole journal does not matter."""
    folder = written(tmp_path, IN_VIEW, ACCEPTED, *[DELIVER] * 500, segment_bytes=1_000)
    assert len(list(folder.glob("*.journal"))) > 30
    opened(tmp_path).close()  # a segment without a record
    read = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.name) or read_bytes(path))
    ending = ending_of(folder)
    assert len(read) == 2
    assert ending.next_index == 502


def test_a_torn_end_is_no_loss(tmp_path: Path) -> None:
    folder = written(tmp_path, IN_VIEW, ACCEPTED)
    file = segment_path(folder, 0)
    file.write_bytes(file.read_bytes() + b"\x40\x00\x00\x00\x01\x02\x03\x04torn")
    assert ending_of(folder).whole
    assert in_force(tmp_path) == ["view", "accepted"]
    segment_path(folder, 1).write_bytes(b"PYGJ")  # the process was killed when it began the next segment
    assert ending_of(folder).whole
    assert in_force(tmp_path) == ["view", "accepted"]


@pytest.mark.parametrize("at", ["header", "counts", "other"])
def test_a_damaged_end_is_a_loss(tmp_path: Path, at: str) -> None:
    folder = written(tmp_path, IN_VIEW, ACCEPTED, DELIVER, DELIVER)
    file = segment_path(folder, 0)
    data = bytearray(file.read_bytes())
    words = {"header": b"orders", "counts": b"accepted", "other": b"deliver"}
    data[data.index(words[at])] ^= 1
    file.write_bytes(data)
    assert not ending_of(folder).whole


def test_lost_records_are_a_loss_until_a_new_segment_repeats_what_counts(tmp_path: Path) -> None:
    journal = opened(tmp_path, segment_bytes=1)
    journal.write([IN_VIEW], 1, 1)
    journal._segment_bytes = 1 << 20
    journal.write([("drop", None, {"reason": "too many"})], 2, 2)
    assert ending_of(journal.folder).whole
    journal.write([("drop", None, {"reason": "journal lost"})], 3, 3)
    assert not ending_of(journal.folder).whole
    journal._segment_bytes = 1
    journal.write([DELIVER], 4, 4)
    assert ending_of(journal.folder).whole
    journal.close()


def test_a_journal_that_is_only_looked_at_stays_as_it_is(tmp_path: Path) -> None:
    folder = written(tmp_path, IN_VIEW)
    before = segment_path(folder, 0).read_bytes()
    journal = opened(tmp_path, later=True)
    assert [path.name for path in folder.glob("*.journal")] == ["000000.journal"]
    assert segment_path(folder, 0).read_bytes() == before
    journal.write([ACCEPTED], 20, 20)
    journal.close()
    assert sorted(path.name for path in folder.glob("*.journal")) == ["000000.journal", "000001.journal"]
    assert ending_of(folder).next_index == 2
