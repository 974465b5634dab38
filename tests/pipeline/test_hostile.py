"""Hostile journals: each is one line, and everything else is ingested and judged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pygroups.cli.main import main
from pygroups.journal.schema import PREAMBLE
from pygroups.journal.writer import segment_path
from pygroups.pipeline.audit import _holes
from pygroups.pipeline.ingest import Table, ingest
from tests.pipeline.ingested import NOON_US, life_of, rows_of
from tests.pipeline.planted import clean


def written(root: Path, name: str, segments: int = 1) -> Path:
    """A journal with a record in each of its segments."""
    journal = life_of(root, name, segment=1)
    for _ in range(segments):
        journal.write([("stats", None, {"gauges": {}})], NOON_US, 1)
    journal.close()
    segment_path(journal.folder, 0).unlink()  # it has a header alone
    for number in range(segments):
        segment_path(journal.folder, number + 1).rename(segment_path(journal.folder, number))
    return Path(journal.folder)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def zeros_alone(path: Path) -> None:
    path.write_bytes(bytes(100_000))


@pytest.mark.parametrize("make", [a_folder, a_pipe, a_link_to_itself, zeros_alone])
@pytest.mark.parametrize("last", [False, True])
def test_a_segment_that_cannot_be_read_is_a_damaged_place_and_the_rest_is_ingested(
    tmp_path: Path, make: Any, last: bool
) -> None:
    written(tmp_path / "j", "A")
    folder = written(tmp_path / "j", "B", 3)
    make(segment_path(folder, 2 if last else 1))
    result = ingest([tmp_path / "j"], tmp_path / "t")
    assert (result.rows, [place.file for place in result.damaged]) == (3, [str(segment_path(folder, 2 if last else 1))])
    assert ingest([tmp_path / "j"], tmp_path / "t").commit is None
    holes = [(hole.member, hole.index) for hole in _holes(Table(tmp_path / "t").manifest())]
    assert holes == ([] if last else [("B@3f2c", 1)])


def test_a_file_without_permission_is_a_damaged_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "j", "A")
    closed = segment_path(written(tmp_path / "j", "B"), 0)
    opened = Path.open

    def opening(path: Path, *mode: Any, **more: Any) -> Any:
        if path == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *mode, **more)

    monkeypatch.setattr(Path, "open", opening)
    result = ingest([tmp_path / "j"], tmp_path / "t")
    assert (result.rows, [place.reason for place in result.damaged]) == (1, ["cannot be read: Permission denied"])


def test_a_segment_that_was_read_and_is_a_pipe_now_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "j", "A")
    ingest([tmp_path / "j"], tmp_path / "t")
    a_pipe(segment_path(folder, 0))
    with pytest.raises(ValueError, match="is not a regular file, and was read before: ingest this member into a new"):
        ingest([tmp_path / "j"], tmp_path / "t")


def test_zeros_behind_the_records_are_told_once_and_cost_no_record(tmp_path: Path) -> None:
    folder = written(tmp_path / "j", "A", 2)
    for number in (0, 1):
        with segment_path(folder, number).open("ab") as file:
            file.write(bytes(100_000))
    first = ingest([tmp_path / "j"], tmp_path / "t")
    assert [(Path(place.file).name, place.reason) for place in first.damaged] == [
        ("000001.journal", "the segment ends in zeros, as after a loss of power")
    ]
    assert ingest([tmp_path / "j"], tmp_path / "t").commit is None
    assert len(rows_of(tmp_path / "t")["events"]) == 2


def test_a_segment_again_under_the_next_number_is_a_hole_with_a_name(tmp_path: Path) -> None:
    folder = written(tmp_path / "j", "A", 2)
    again = segment_path(folder, 2)
    again.write_bytes(segment_path(folder, 0).read_bytes())
    ingest([tmp_path / "j"], tmp_path / "t")
    (hole,) = _holes(Table(tmp_path / "t").manifest())
    assert (hole.file, hole.group, hole.member, hole.index) == (str(again), "orders", "A@3f2c", 0)


@pytest.mark.slow
def test_the_command_names_each_and_judges_the_rest(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "journal"
    clean("orders").save(root)
    a, b = sorted((root / "orders").iterdir())[:2]
    (a / "notes.journal").write_text("buy milk")
    os.mkfifo(segment_path(a, 1))
    data = segment_path(b, 0).read_bytes()
    segment_path(b, 1).write_bytes(data)
    with segment_path(b, 1).open("ab") as file:
        file.write(bytes(5000))
    (root / "orders" / "C@430").rename(root / "C@430")
    (root / "old").mkdir()
    (root / "old" / "A.bak").mkdir()
    (root / "old" / "A.bak" / "000000.journal").write_bytes(PREAMBLE)
    assert main(["audit", str(root), "--json", "--master", "local[2]"]) == 0
    told = capfd.readouterr()
    found = json.loads(told.out)
    assert {Path(one["path"]).name for one in found["left_out"]} == {"notes.journal", "A.bak"}
    assert [(Path(hole["file"]).parent.name, hole["member"], hole["index"]) for hole in found["holes"]] == [
        (b.name, b.name, 0)
    ]
    assert (found["quarantined"], found["files"], told.err.count("\n")) == (2, 7, 5)
    assert all(line.startswith("warning: ") for line in told.err.splitlines())
    assert {one["verdict"] for one in found["promises"]} == {"held", "not judged"}
