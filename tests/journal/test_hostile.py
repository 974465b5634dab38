"""Files and folders that are no journals, beside journals: each is named, and the rest is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pygroups.journal.frames import encode_frame
from pygroups.journal.reader import NotAJournal, Quarantine, find_journals, read_segments
from pygroups.journal.scan import header_of
from pygroups.journal.schema import PREAMBLE
from pygroups.journal.writer import MemoryJournal, segment_path

POWER_LOSS = "the segment ends in zeros, as after a loss of power"


def journal_of(name: str, count: int = 2, index: int = 0) -> MemoryJournal:
    journal = MemoryJournal("orders", name, "3f2c", "total")
    journal._encoder.index = index
    for number in range(count):
        journal.write([("send", None, {"first": number})], number, number)
    return journal


def read(root: Path) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """The members and numbers of the records, and the files with damage."""
    rows: list[tuple[str, int]] = []
    damage = []
    for part in read_segments(find_journals([root])[0]):
        if isinstance(part, Quarantine):
            damage.append((Path(part.segment.path).name, part.reason))
        else:
            rows += [(row["member"], row["index"]) for row in part.to_pylist()]
    return sorted(rows), damage


def a_folder(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to(path.parent / "nothing")


NOT_REGULAR = {
    a_folder: "is not a regular file",
    a_pipe: "is not a regular file",
    a_link_to_itself: "cannot be read: Too many levels of symbolic links",
    a_link_to_nothing: "is a link to a file that is missing",
}


@pytest.mark.parametrize("make", NOT_REGULAR)
def test_a_segment_that_is_no_file_is_damage_and_the_rest_is_read(tmp_path: Path, make: Any) -> None:
    for name in "AB":
        folder = journal_of(name).save(tmp_path)
    make(segment_path(folder, 1))
    segment_path(folder, 2).write_bytes(journal_of("B", 1, 2).getvalue())
    rows, damage = read(tmp_path)
    assert rows == [("A", 0), ("A", 1), ("B", 0), ("B", 1), ("B", 2)]
    assert damage == [("000001.journal", NOT_REGULAR[make])]


@pytest.mark.parametrize("name", ["notes.journal", "00000a.journal", "0000000.journal", "٠٠٠٠٠٠.journal"])
def test_a_file_under_another_name_is_named_and_not_read(tmp_path: Path, name: str) -> None:
    folder = journal_of("A").save(tmp_path)
    (folder / name).write_text("buy milk")
    segments, left_out = find_journals([tmp_path])
    assert [Path(segment.path).name for segment in segments] == ["000000.journal"]
    assert [(one.path, "six digits" in one.reason) for one in left_out] == [(str(folder / name), True)]


def test_a_member_beside_its_group_does_not_hide_the_group(tmp_path: Path) -> None:
    folder = journal_of("A").save(tmp_path)
    journal_of("B").save(tmp_path)
    folder.rename(tmp_path / "A@3f2c")
    assert {member for member, _ in read(tmp_path)[0]} == {"A", "B"}


def test_a_member_folder_may_be_a_link_under_either_name(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    journal_of("A").save(elsewhere)
    (elsewhere / "orders" / "A@3f2c").rename(elsewhere / "disk")
    root = tmp_path / "journal"
    journal_of("B").save(root)
    (root / "orders" / "A@3f2c").symlink_to(elsewhere / "disk")
    (root / "orders" / "again").symlink_to(root / "orders" / "B@3f2c")
    assert read(root) == ([("A", 0), ("A", 1), ("B", 0), ("B", 1)], [])


def test_a_folder_of_segments_under_another_name_is_named(tmp_path: Path) -> None:
    folder = journal_of("A").save(tmp_path)
    journal_of("B").save(tmp_path)
    folder.rename(folder.parent / "A@3f2c.bak")
    segments, (left,) = find_journals([tmp_path])
    assert [segment.member for segment in segments] == ["B"]
    assert left.path == str(folder.parent / "A@3f2c.bak") and "name is not that of a member" in left.reason
    with pytest.raises(NotAJournal):
        find_journals([folder.parent / "A@3f2c.bak"])


@pytest.mark.parametrize("zeros", [8, 9, 100_000])
@pytest.mark.parametrize(("goes_on_at", "told"), [(2, 0), (3, 1), (None, 1)])
def test_zeros_at_the_end_are_torn_only_if_the_next_segment_goes_on(
    tmp_path: Path, zeros: int, goes_on_at: int | None, told: int
) -> None:
    folder = journal_of("A").save(tmp_path)
    with segment_path(folder, 0).open("ab") as file:
        file.write(bytes(zeros))
    if goes_on_at is not None:
        segment_path(folder, 1).write_bytes(journal_of("A", 1, goes_on_at).getvalue())
    rows, damage = read(tmp_path)
    assert len(rows) == 2 + (goes_on_at is not None)
    assert damage == [("000000.journal", POWER_LOSS)] * told


@pytest.mark.parametrize("begins", [b"", PREAMBLE])
@pytest.mark.parametrize("zeros", [8, 100, 100_000])
def test_a_segment_of_zeros_is_a_loss_of_power(tmp_path: Path, begins: bytes, zeros: int) -> None:
    folder = journal_of("A").save(tmp_path)
    path = segment_path(folder, 1)
    path.write_bytes(begins + bytes(zeros))
    reason = f"header: {POWER_LOSS}" if begins else POWER_LOSS
    assert read(tmp_path)[1] == [("000001.journal", reason)]
    header, _ = header_of(str(path))
    assert (getattr(header, "reason", None), getattr(header, "lossy", None)) == (reason, True)


def test_zeros_before_more_frames_are_damage(tmp_path: Path) -> None:
    journal = journal_of("A")
    folder = journal.save(tmp_path)
    frame = encode_frame([("stop", None, {})], 2, 1, 1)
    segment_path(folder, 0).write_bytes(journal.getvalue() + bytes(64) + frame)
    rows, damage = read(tmp_path)
    assert ([index for _, index in rows], damage) == ([0, 1, 2], [("000000.journal", "bad checksum")])
