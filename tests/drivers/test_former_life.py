"""The former life of a process: which one its folder shows, who answers for it, and where the answers are written."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pygroups.core.address import Address
from pygroups.core.errors import JournalFailed
from pygroups.core.layer import Record
from pygroups.core.view import Ballot, ViewId
from pygroups.drivers.former_life import Former, former_life
from pygroups.journal.reader import find_segments, read_segments
from pygroups.journal.schema import services_of_v1
from pygroups.journal.writer import JournalWriter, segment_path

ME, FIRST, SECOND = (Address("A", digits * 8) for digits in ("99", "11", "22"))
OTHER = Address("B", "1" * 16)
VIEW = ViewId(4, OTHER)
COLLECT: dict[str, Any] = {"stage": "collect", "ballot_number": 5, "ballot_leader": str(OTHER)}
ACCEPTED = {**COLLECT, "stage": "accepted", "detail": "a proposal"}


def journal_of(root: Path, life: Address, profile: str = "uniform", *, later: bool = False) -> JournalWriter:
    services = services_of_v1(profile)
    return JournalWriter(root, "g", *life, profile, host="here", boot_id="boot", services=services, later=later)


def lived(
    root: Path, life: Address, *changes: dict[str, Any], begun: int = 1, profile: str = "uniform"
) -> JournalWriter:
    """The open journal of a life that was in a view, with these flush records."""
    journal = journal_of(root, life, profile)
    id, view = (VIEW.number, str(VIEW.leader)), {"members": [str(OTHER), str(life)], "history": "h1"}
    journal.write([("start", None, {})], begun, 0)
    journal.write([("view", id, view)], begun, 0)
    for fields in changes:
        journal.write([("flush", id, fields)], begun, 0)
    return journal


def found(root: Path, profile: str = "uniform") -> Former | None:
    return former_life(root, "g", ME, profile, lambda life: journal_of(root, life, profile, later=True))


def shown(root: Path) -> Former:
    former = found(root)
    assert former is not None
    return former


def test_the_journal_shows_the_view_the_ballot_and_the_proposal(tmp_path: Path) -> None:
    lived(tmp_path, FIRST, COLLECT, ACCEPTED).close()
    former = shown(tmp_path)
    life = former.life
    former.close()
    assert (life.address, life.ended, life.accepted) == (FIRST, (FIRST,), "a proposal")
    assert life.bound == Ballot(5, OTHER)
    assert life.view is not None
    assert (life.view.id, life.view.members, life.view.history) == (VIEW, (OTHER, FIRST), "h1")


def test_a_folder_without_a_former_life_shows_none(tmp_path: Path) -> None:
    assert found(tmp_path / "no folder") is None
    (tmp_path / "g").mkdir()
    assert found(tmp_path) is None
    lived(tmp_path, ME).close()
    lived(tmp_path, Address("AB", "1" * 16)).close()
    assert found(tmp_path) is None
    (tmp_path / "g" / "A@no-incarnation").mkdir()
    assert found(tmp_path) is None
    shutil.rmtree(tmp_path / "g")
    (tmp_path / "g" / str(FIRST)).mkdir(parents=True)  # of a process that ended before its first record
    assert silent(tmp_path) == (FIRST,)


def silent(root: Path) -> tuple[Address, ...]:
    """The lives that have ended, if nobody answers for any of them."""
    former = shown(root)
    assert former.journal is None
    former.close()
    return former.life.ended


def test_lives_without_a_view_or_with_another_profile_have_ended_and_answer_nothing(tmp_path: Path) -> None:
    journal = journal_of(tmp_path, FIRST)
    journal.write([("start", None, {})], 1, 1)
    journal.close()
    assert silent(tmp_path) == (FIRST,)
    lived(tmp_path, SECOND, begun=2, profile="total").close()
    assert silent(tmp_path) == (FIRST, SECOND)


def test_a_life_that_runs_is_left_alone(tmp_path: Path) -> None:
    running = lived(tmp_path, FIRST)
    assert found(tmp_path) is None
    running.close()
    shown(tmp_path).close()


def test_one_process_at_a_time_answers_for_a_life(tmp_path: Path) -> None:
    lived(tmp_path, FIRST).close()
    former = shown(tmp_path)
    assert found(tmp_path) is None
    former.close()
    former.close()
    shown(tmp_path).close()


def test_the_last_life_counts_and_all_have_ended(tmp_path: Path) -> None:
    third = Address("A", "33" * 8)
    for begun, life in enumerate((SECOND, FIRST), 1):
        lived(tmp_path, life, begun=begun).close()
    late = journal_of(tmp_path, third)  # it had no view
    late.write([("start", None, {})], 3, 3)
    late.close()
    former = shown(tmp_path)
    assert (former.life.address, former.life.ended) == (FIRST, (SECOND, FIRST, third))
    assert former.journal is not None and former.journal.folder.name == str(FIRST)
    with_view = journal_of(tmp_path, SECOND, later=True)  # of the others the lock is free again
    with_view.close()
    former.close()


@pytest.mark.parametrize("damage", ["bit", "loss", "nonsense"])
def test_nobody_answers_for_a_life_whose_journal_lacks_records(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    lived(tmp_path, SECOND, begun=1).close()
    journal = lived(tmp_path, FIRST, COLLECT, begun=2)
    if damage == "loss":
        journal.write([("drop", None, {"reason": "journal lost"})], 3, 3)
    elif damage == "nonsense":
        journal.write([("view", (5, "nobody"), {"members": ["nobody"], "history": "h1"})], 3, 3)
    journal.close()
    if damage == "bit":
        file = segment_path(journal.folder, 0)
        data = bytearray(file.read_bytes())
        data[data.index(b"collect")] ^= 1
        file.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        former = shown(tmp_path)
    former.close()
    assert (former.life.address, former.life.ended) == (SECOND, (SECOND, FIRST))
    assert str(FIRST) in caplog.text


def test_a_folder_that_cannot_be_opened_may_belong_to_a_living_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / str(SECOND)).write_text("in the way")
    with caplog.at_level(logging.WARNING):
        assert found(tmp_path) is None
    assert f"this process cannot check whether {SECOND} has ended" in caplog.text
    lived(tmp_path, FIRST).close()
    former = shown(tmp_path)
    former.close()
    assert former.life.ended == (FIRST,)


def test_answers_are_written_into_the_journal_of_the_former_life(tmp_path: Path) -> None:
    lived(tmp_path, FIRST, COLLECT).close()
    former = shown(tmp_path)
    mine: Record = ("start", None, {})
    accepted = {"stage": "accepted", "ballot_number": 6, "ballot_leader": OTHER, "life": FIRST}
    assert former.write([mine, ("flush", VIEW, accepted)], 9, 9) == [mine]
    assert former.write([mine], 10, 10) == [mine]
    former.close()
    segments = find_segments([tmp_path])
    rows = [row for part in read_segments(segments) for row in part.to_pylist()]  # type: ignore[union-attr]
    assert [(row["member"], row["incarnation"], row["index"], row["stage"]) for row in rows] == [
        (*FIRST, 0, None),
        (*FIRST, 1, None),
        (*FIRST, 2, "collect"),
        (*FIRST, 3, "accepted"),
    ]
    assert {row["history"] for row in rows[1:]} == {"h1"}
    again = shown(tmp_path)
    again.close()
    assert again.life.bound == Ballot(6, OTHER)


def test_an_answer_that_cannot_be_written_must_not_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lived(tmp_path, FIRST).close()
    former = shown(tmp_path)

    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JournalFailed, match=f"cannot answer for {FIRST}: .* No space left on device"):
        former.write(
            [("flush", VIEW, {"stage": "collect", "ballot_number": 6, "ballot_leader": OTHER, "life": FIRST})], 9, 9
        )
    former.close()
