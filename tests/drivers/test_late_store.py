"""The messages of a late-join handler on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from pygroups.core.address import Address
from pygroups.core.run import Run, pack
from pygroups.drivers import late_store
from pygroups.drivers.late_store import BEGINNING, HEAD, LateStore
from tests.disks import fill, full_disk

A, B = Address("A", "0" * 16), Address("B", "1" * 16)
WALL = 1_000_000_000


def run(first: int, count: int = 1, origin: Address = A, size: int = 10) -> Run:
    return Run(origin, None, (), origin, first, 0, count, pack([bytes(size)] * count), origin, first)


def opened(folder: Path, warnings: list[str] | None = None, now: int = WALL) -> LateStore:
    return LateStore(folder, now, ([] if warnings is None else warnings).append)


def had(store: LateStore) -> list[tuple[Address | None, int, int]]:
    return [(one.origin, one.first, one.count) for one, _ in store.stored]


def test_the_next_process_has_the_messages_and_their_ages(tmp_path: Path) -> None:
    first = opened(tmp_path / "made")
    assert had(first) == []
    first.write([run(1, 3), run(1, origin=B)], WALL)
    first.write([run(4)], WALL + 5)
    first.close()
    second = opened(tmp_path / "made", now=WALL + 7)
    assert had(second) == [(A, 1, 3), (B, 1, 1), (A, 4, 1)]
    assert [age for _, age in second.stored] == [7, 7, 2]
    assert second.stored[0][0].body == run(1, 3).body
    second.write([run(5)], WALL)
    second.close()
    assert had(opened(tmp_path / "made"))[-1] == (A, 5, 1)


def damaged(folder: Path, data: bytes) -> list[tuple[Address | None, int, int]]:
    store = opened(folder)
    store.write([run(1), run(2)], WALL)
    store.close()
    path = next(folder.glob("*.late"))
    path.write_bytes(path.read_bytes() + data)
    again = opened(folder)
    again.close()
    return had(again)


def record(*fields: object) -> bytes:
    body = late_store._encode(fields)
    return HEAD.pack(len(body), late_store.xxh32_intdigest(body)) + body


@pytest.mark.parametrize(
    "data",
    [
        b"\x01",
        HEAD.pack(1 << 31, 0) + b"x",
        HEAD.pack(3, 0) + b"abc",
        record(0, A, 3, 1, pack([b"x"]))[:-1],
        record(0, A, 3, 1),
        record(0, A, 3, 1, b"no array"),
        record(0, A, 3, 2, pack([b"x"])),
        record(0, A, 0, 1, pack([b"x"])),
        record(-1, A, 3, 1, pack([b"x"])),
        record(0, "A", 3, 1, pack([b"x"])),
        record(0, A, 2, 1, pack([b"x"])),
        record(0, ("", ""), 3, 1, pack([b"x"])),
        record(0, ("\udcff".encode("utf-8", "surrogatepass"), "0"), 3, 1, pack([b"x"])),
    ],
)
def test_nothing_is_used_that_is_damaged(tmp_path: Path, data: bytes) -> None:
    assert damaged(tmp_path, data) == [(A, 1, 1), (A, 2, 1)]


def test_a_record_of_the_right_form_is_used(tmp_path: Path) -> None:
    assert damaged(tmp_path, record(0, A, 3, 1, pack([b"x"])))[-1] == (A, 3, 1)


def test_a_foreign_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "00000001.late").write_bytes(b"something else" + record(0, A, 1, 1, pack([b"x"])))
    (tmp_path / "x.late").write_bytes(BEGINNING + record(0, A, 1, 1, pack([b"x"])))
    assert had(opened(tmp_path)) == []


def test_the_oldest_messages_leave_above_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_store, "SEGMENT", 4_000)
    monkeypatch.setattr(late_store, "DISK", 16_000)
    store = opened(tmp_path)
    for number in range(1, 101):
        store.write([run(number, size=500)], WALL)
        assert sum([path.stat().st_size for path in tmp_path.glob("*.late")]) <= 16_000
    store.close()
    numbers = [first for _, first, _ in had(opened(tmp_path))]
    assert numbers == list(range(numbers[0], 101)) and 15 < len(numbers) < 32


def test_many_starts_leave_few_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_store, "SEGMENTS_MAX", 5)
    for _ in range(20):
        opened(tmp_path).close()
    assert len([*tmp_path.glob("*.late")]) <= 5


def test_a_full_disk_is_told_once(tmp_path: Path) -> None:
    warnings: list[str] = []
    with full_disk(tmp_path / "disk") as disk:
        store = opened(disk, warnings)
        fill(disk)
        for number in range(1, 50):
            store.write([run(number, size=1_000)], WALL)
        store.close()
    assert len(warnings) == 1 and "in memory alone" in warnings[0] and "No space left" in warnings[0]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    warnings: list[str] = []
    (tmp_path / "file").touch()
    store = opened(tmp_path / "file", warnings)
    store.write([run(1)], WALL)
    store.close()
    assert had(store) == [] and len(warnings) == 1 and "File exists" in warnings[0]


def test_one_process_at_a_time_uses_a_folder(tmp_path: Path) -> None:
    warnings: list[str] = []
    first = opened(tmp_path)
    first.write([run(1)], WALL)
    assert had(opened(tmp_path, warnings)) == [] and "another process uses the folder" in warnings[0]
    first.close()
    assert had(opened(tmp_path)) == [(A, 1, 1)]
