"""The writer: one write per call, nothing lost by a kill, rotation, a full disk, a life gone on with."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pygroups.journal import writer as writing
from pygroups.journal.errors import JournalError
from pygroups.journal.frames import Damage, Frame, Header, Record, walk
from pygroups.journal.schema import FIELDS, PREFIX, services_of_v1
from pygroups.journal.writer import RETRY_US, JournalWriter, MemoryJournal, segment_path
from tests.patience import patience

VIEW = (4, "A@3f2c91d000000001")
DELIVER: Record = ("deliver", VIEW, {"origin": "B", "origin_incarnation": "77", "first": 1, "count": 2})


def opened(root: Path, profile: str = "total", **options: int) -> JournalWriter:
    more = {"host": "here", "boot_id": "boot", "services": services_of_v1(profile)}
    return JournalWriter(root, "orders", "A", "3f2c", profile, **more, **options)  # type: ignore[arg-type]


def records_in(folder: Path) -> list[list[object]]:
    parts = [part for path in sorted(folder.glob("*.journal")) for part in walk(path.read_bytes())]
    assert not [part for part in parts if isinstance(part, Damage)]
    return [record for part in parts if isinstance(part, Frame) for record in part.records]


def test_records_stand_in_one_frame_in_the_order_of_their_fields(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.write([DELIVER, ("leave", VIEW, {"reason": "asked"})], time_us=17, mono_us=5)
    journal.close()
    path = tmp_path / "orders" / "A@3f2c" / "000000.journal"
    header, frame = walk(path.read_bytes())
    assert isinstance(header, Header) and isinstance(frame, Frame)
    assert (header.group, header.member, header.incarnation, header.profile) == ("orders", "A", "3f2c", "total")
    deliver, leave = frame.records
    assert deliver[:5] == ["deliver", 0, 17, 5, list(VIEW)]
    assert dict(zip(FIELDS["deliver"], deliver[len(PREFIX) :], strict=True))["count"] == 2
    assert leave == ["leave", 1, 17, 5, list(VIEW), "asked", None]


def test_each_call_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = opened(tmp_path)
    sizes = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: sizes.append(len(data)) or write(file, data))
    journal.write([DELIVER] * 3, 1, 1)
    journal.write([], 2, 2)
    assert len(sizes) == 1
    assert journal.next_index == 3


def test_a_write_that_takes_a_part_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = opened(tmp_path)
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    journal.write([DELIVER], 1, 1)
    assert [record[1] for record in records_in(journal.folder)] == [0]


def test_kill_loses_nothing_that_was_written(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from pygroups.journal.writer import JournalWriter\n"
        "journal = JournalWriter(Path(sys.argv[1]), 'orders', 'A', '3f2c', 'total', host='h', boot_id='b')\n"
        "for n in range(100):\n"
        "    journal.write([('stable', None, {'digest': {'x': n}})], n, n)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    source = str(Path(writing.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], env={**os.environ, "PYTHONPATH": source}, timeout=patience(30)
    )
    assert done.returncode == -signal.SIGKILL
    assert [record[1] for record in records_in(tmp_path / "orders" / "A@3f2c")] == list(range(100))


def test_segments_rotate_by_size_and_the_index_goes_on(tmp_path: Path) -> None:
    journal = opened(tmp_path, segment_bytes=200)
    for _ in range(10):
        journal.write([DELIVER], 1, 1)
    journal.close()
    assert len(list(journal.folder.glob("*.journal"))) > 3
    assert [record[1] for record in records_in(journal.folder)] == list(range(10))


def test_uniform_repeats_what_is_in_force_at_a_rotation(tmp_path: Path) -> None:
    journal = opened(tmp_path, profile="uniform", segment_bytes=1)
    journal.write([("view", VIEW, {"members": [VIEW[1]], "history": "h1"})], 1, 1)
    journal.write([("flush", VIEW, {"stage": "collect", "ballot_number": 5})], 2, 2)
    journal.write([("flush", VIEW, {"stage": "accepted", "ballot_number": 5})], 3, 3)
    journal.write([DELIVER], 4, 4)
    header = next(iter(walk(segment_path(journal.folder, 4).read_bytes())))
    assert isinstance(header, Header)
    assert [(record[0], record[1]) for record in header.in_force] == [("view", 0), ("flush", 1), ("flush", 2)]


def test_a_full_disk_is_told_once_and_uses_up_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = opened(tmp_path)
    journal.write([DELIVER], 1, 1)
    write = os.write

    def full(file: int, data: bytes) -> int:
        write(file, data[:5])  # a part still fits
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JournalError, match="No space left on device"):
        journal.write([DELIVER, DELIVER], 2, 2)
    journal.write([DELIVER], 3, 3)
    assert journal.lost == 3
    monkeypatch.setattr(os, "write", write)
    journal.write([DELIVER], 4, 4 + RETRY_US)
    assert [record[1] for record in records_in(journal.folder)] == [0, 4]


def test_during_an_outage_the_disk_is_tried_once_a_second_and_the_end_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    journal = opened(tmp_path)
    tries = []

    def full(file: int, data: bytes) -> int:
        tries.append(file)
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JournalError, match="Disk quota exceeded"):
        journal.write([DELIVER], 0, 0)
    for tenth in range(1, 25):
        journal.write([DELIVER], 0, tenth * RETRY_US // 10)
    assert len(tries) == 5  # at 0 (the record, and twice the one that tells of the loss), 1 and 2 seconds
    monkeypatch.undo()
    journal.write([DELIVER], 0, 29 * RETRY_US // 10)  # the disk has room again, and nobody looks before 3 seconds
    journal.write([DELIVER], 0, 3 * RETRY_US)
    assert (journal.lost, journal.next_index) == (26, 27)
    assert [record[1] for record in records_in(journal.folder)] == [26]
    (line,) = caplog.messages
    assert "is written again; 26 records are missing" in line
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JournalError):  # the next outage is told again
        journal.write([DELIVER], 0, 4 * RETRY_US)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_removed_file_is_an_outage_although_the_system_takes_the_bytes(tmp_path: Path, what: str) -> None:
    journal = opened(tmp_path)
    journal.write([DELIVER], 0, 0)
    if what == "file":
        segment_path(journal.folder, 0).unlink()
    else:
        shutil.rmtree(tmp_path / "orders")
    with pytest.raises(JournalError, match=r"000000\.journal was removed"):
        journal.write([DELIVER], 0, 1)
    journal.write([DELIVER], 0, RETRY_US + 1)
    if what == "folder":
        assert journal.lost == 2 and not journal.folder.exists()
        journal.folder.mkdir(parents=True)
        journal.write([DELIVER], 0, 3 * RETRY_US)
    assert [record[1] for record in records_in(journal.folder)] == [journal.next_index - 1]
    journal.close()


def test_a_half_that_stays_is_behind_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes half a frame and lets nobody cut it off: the next record begins a new segment."""
    journal = opened(tmp_path)
    journal.write([DELIVER], 0, 0)
    write = os.write

    def half(file: int, data: bytes) -> int:
        write(file, data[: len(data) // 2])
        raise OSError(errno.EIO, "Input/output error")

    def refuse(file: int, size: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "write", half)
    monkeypatch.setattr(os, "ftruncate", refuse)
    with pytest.raises(JournalError, match="Input/output error"):
        journal.write([DELIVER], 0, 1)
    monkeypatch.undo()
    journal.write([DELIVER], 0, 2 * RETRY_US)
    first, second = (list(walk(segment_path(journal.folder, n).read_bytes())) for n in (0, 1))
    assert isinstance(first[-1], Damage) and first[-1].torn
    assert isinstance(second[-1], Frame) and second[-1].records[0][1] == 2


def test_a_new_segment_that_cannot_begin_leaves_nothing_and_loses_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(tmp_path, segment_bytes=1)
    write = os.write

    def full(file: int, data: bytes) -> int:
        write(file, data[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    journal.write([DELIVER], 0, 0)
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JournalError):
        journal.write([DELIVER], 0, 1)
    assert [path.name for path in sorted(journal.folder.glob("*.journal"))] == ["000000.journal", "000001.journal"]
    monkeypatch.undo()
    journal.write([DELIVER], 0, 2 * RETRY_US)
    assert [record[1] for record in records_in(journal.folder)] == [0, 2]


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_the_oldest_segments_go_and_so_many_stay(tmp_path: Path, keep: int) -> None:
    journal = opened(tmp_path, segment_bytes=1, keep=keep)
    for number in range(10):
        journal.write([DELIVER], 0, number)
        assert len(list(journal.folder.glob("*.journal"))) == min(keep, number + 2)  # the first has only its header
    assert [record[1] for record in records_in(journal.folder)] == list(range(10 - keep, 10))
    journal.close()
    later = opened(tmp_path, keep=keep)  # a journal that is gone on with keeps as many
    later.write([DELIVER], 0, 11)
    assert [record[1] for record in records_in(later.folder)] == list(range(11 - keep, 11))


def test_an_old_segment_that_cannot_be_removed_is_a_warning_and_goes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    journal = opened(tmp_path, segment_bytes=1, keep=1)

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "unlink", refuse)
    journal.write([DELIVER], 0, 0)
    journal.write([DELIVER], 0, 1)
    assert "000000.journal of a journal cannot be removed: Operation not permitted" in caplog.text
    assert journal.lost == 0
    monkeypatch.undo()
    journal.write([DELIVER], 0, 2)
    assert [path.name for path in journal.folder.glob("*.journal")] == ["000003.journal"]


def test_the_numbers_of_segments_have_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "SEGMENTS_MAX", 3)
    journal = opened(tmp_path, segment_bytes=1, keep=1)
    for number in range(2):
        journal.write([DELIVER], 0, number)
    with pytest.raises(JournalError, match="the journal has used all 3 segment numbers"):
        journal.write([DELIVER], 0, 3)


def test_one_process_at_a_time_writes_a_life(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    with pytest.raises(JournalError, match="another process writes this journal"):
        opened(tmp_path)
    journal.close()
    opened(tmp_path).close()


def test_a_life_is_gone_on_with_in_a_new_segment(tmp_path: Path) -> None:
    first = opened(tmp_path, profile="uniform")
    first.write([("view", VIEW, {"members": [VIEW[1]]}), DELIVER], 1, 1)
    first.close()
    torn = segment_path(first.folder, 0)
    torn.write_bytes(torn.read_bytes() + b"\x40\x00\x00")
    later = opened(tmp_path, profile="uniform")
    assert later.next_index == 2
    later.write([("flush", VIEW, {"stage": "accepted"})], 2, 2)
    header, frame = walk(segment_path(later.folder, 1).read_bytes())
    assert isinstance(header, Header) and [record[0] for record in header.in_force] == ["view"]
    assert isinstance(frame, Frame) and frame.records[0][1] == 2


def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "orders").write_text("in the way")
    with pytest.raises(JournalError, match=r"^the journal in .* cannot be opened: "):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("record", "sentence"),
    [(("deliver", None, {"colour": 1}), "no field 'colour'"), (("dance", None, {}), "'dance' is no kind")],
)
def test_a_record_that_does_not_fit_is_refused(tmp_path: Path, record: Record, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        opened(tmp_path).write([record], 1, 1)


def test_in_memory_it_is_the_same_bytes(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    memory = MemoryJournal(
        "orders", "A", "3f2c", "total", host="here", boot_id="boot", services=services_of_v1("total")
    )
    for time in range(3):
        journal.write([DELIVER], time, time)
        memory.write([DELIVER], time, time)
    assert segment_path(journal.folder, 0).read_bytes() == memory.getvalue()
    saved = memory.save(tmp_path / "other")
    assert saved == tmp_path / "other" / "orders" / "A@3f2c"
    assert segment_path(saved, 0).read_bytes() == memory.getvalue()
