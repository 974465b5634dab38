"""Ingest while the writer begins new segments and removes old ones: each record once, and a hole where it came late."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pygroups.journal.reader import find_segments
from pygroups.journal.schema import services_of_v1
from pygroups.journal.writer import JournalWriter
from pygroups.pipeline.ingest import Table, ingest
from pygroups.pipeline.ingest import plan as planning
from pygroups.pipeline.ingest import work as working
from tests.pipeline.ingested import NOON_US, rows_of, run


def kept(root: Path, keep: int) -> JournalWriter:
    """A journal with one turn in each segment, of which `keep` stay."""
    return JournalWriter(
        root,
        "g",
        "A",
        "3f2c",
        "total",
        host="h",
        boot_id="b",
        services=services_of_v1("total"),
        segment_bytes=1,
        keep=keep,
    )


def turn(journal: JournalWriter, number: int) -> None:
    journal.write([("send", None, run("A", number)), ("stable", None, {"digest": {"A": number}})], NOON_US, number)


def indices(table: Path) -> list[int]:
    return sorted(row["index"] for rows in rows_of(table).values() for row in rows)


def wrong(table: Path) -> list[int]:
    return [row["wrong_index"] for row in Table(table).manifest().to_pylist() if row["wrong_index"] is not None]


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_an_ingest_in_time_loses_nothing_of_a_journal_that_keeps_little(tmp_path: Path, keep: int) -> None:
    journal = kept(tmp_path / "j", keep)
    for number in range(20):
        turn(journal, number)
        if number % keep == 0:
            result = ingest([tmp_path / "j"], tmp_path / "t")
            assert result.damaged == []
    ingest([tmp_path / "j"], tmp_path / "t")
    assert indices(tmp_path / "t") == list(range(40))
    assert wrong(tmp_path / "t") == []
    assert len(find_segments([tmp_path / "j"])) == keep


def test_an_ingest_that_comes_late_tells_of_the_loss_and_of_no_damage(tmp_path: Path) -> None:
    journal = kept(tmp_path / "j", keep=2)
    for number in range(5):
        turn(journal, number)
    assert ingest([tmp_path / "j"], tmp_path / "t").damaged == []
    assert indices(tmp_path / "t") == [6, 7, 8, 9]
    assert wrong(tmp_path / "t") == [0]  # from here on nothing is trusted
    for number in range(5, 10):
        turn(journal, number)
    assert ingest([tmp_path / "j"], tmp_path / "t").damaged == []
    assert indices(tmp_path / "t") == [6, 7, 8, 9, 16, 17, 18, 19]
    assert wrong(tmp_path / "t") == [0, 10]


def removing(call: Callable[..., Any], path: str, *, after: bool) -> Callable[..., Any]:
    """`call`, around which the writer removes a segment."""

    def done(*arguments: Any, **named: Any) -> Any:
        if not after and os.path.exists(path):
            os.unlink(path)
        result = call(*arguments, **named)
        if after and os.path.exists(path):
            os.unlink(path)
        return result

    return done


@pytest.mark.parametrize(
    ("where", "name", "read"),
    [
        (planning, "_identified", False),
        (working, "read_columns", False),
        (working, "fingerprint", True),
    ],
)
def test_a_segment_that_goes_while_it_is_ingested_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, read: bool
) -> None:
    journal = kept(tmp_path / "j", keep=3)
    for number in range(3):
        turn(journal, number)
    oldest = find_segments([tmp_path / "j"])[0].path
    with monkeypatch.context() as patch:
        patch.setattr(where, name, removing(getattr(where, name), oldest, after=False))
        assert ingest([tmp_path / "j"], tmp_path / "t").damaged == []
    assert indices(tmp_path / "t") == list(range(0 if read else 2, 6))
    assert wrong(tmp_path / "t") == ([] if read else [0])
    for number in range(3, 5):
        turn(journal, number)
    assert ingest([tmp_path / "j"], tmp_path / "t").rows == 4
    assert indices(tmp_path / "t") == list(range(0 if read else 2, 10))


def test_a_segment_that_goes_while_segments_are_listed_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = kept(tmp_path / "j", keep=3)
    for number in range(3):
        turn(journal, number)
    paths = [segment.path for segment in find_segments([tmp_path / "j"])]
    monkeypatch.setattr(Path, "stat", removing(Path.stat, paths[0], after=False))
    found = find_segments([tmp_path / "j"])
    assert [segment.path for segment in found] == paths[1:]
    assert [segment.following for segment in found] == [paths[2], None]
