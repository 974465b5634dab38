"""A compacted table: few files, the same rows, and whatever happens in between."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pygroups.cli import main as cli
from pygroups.pipeline.ingest import NotATable, Table, compact, ingest
from pygroups.pipeline.ingest.commits import locked
from pygroups.pipeline.recorded import facts_of
from tests.pipeline.ingested import NOON_US, drawn, life_of, names_of, put, rows_of, run, stages


class Killed(BaseException):
    """The process of a compaction ends here."""


def grown(tmp_path: Path, table: Path, count: int) -> Callable[[], None]:
    """A table after all but one of `count` ingests of journals that grew; the call makes the last one.

    The table `once` beside it has one ingest of all.
    """
    journals = tmp_path / "journals"
    drawn(journals, 5, "uniform")
    ingest([journals], tmp_path / "once")
    *before, last = stages(journals, 5, count)
    for file in journals.glob("*/*@*/*.journal"):
        file.unlink()
    for files in before:
        put(files)
        ingest([journals], table)

    def go_on() -> None:
        put(last)
        ingest([journals], table)

    return go_on


def ranges_of(table: Path) -> list[dict[str, Any]]:
    rows = Table(table).manifest().drop_columns(["commit", "files"]).to_pylist()
    return sorted(rows, key=lambda row: (row["file"], row["begin"]))


def same(table: Path, once: Path) -> bool:
    """Whether a table has the rows, the names and the facts of another one."""
    lives = [facts_of(Table(one)).lives.sort_by("life") for one in (table, once)]
    return rows_of(table) == rows_of(once) and names_of(table) == names_of(once) and lives[0] == lives[1]


def test_a_compacted_table_is_that_of_one_ingest_and_grows_on(tmp_path: Path) -> None:
    table, once = tmp_path / "table", tmp_path / "once"
    go_on = grown(tmp_path, table, 8)
    before = rows_of(table)
    done = compact(table)
    assert rows_of(table) == before and done.files_before > 30 > done.files_after
    go_on()
    assert same(table, once) and len(Table(table).commits) == 2
    done = compact(table)
    assert same(table, once) and ranges_of(table) == ranges_of(once)
    folders = {file.parent for name in ("runs", "events", "votes") for file in (table / name).rglob("*.parquet")}
    assert done.files_after == len(folders) + len(("names", "carried", "manifest"))
    assert len([*table.rglob("*.parquet")]) == done.files_after
    again = compact(table)
    assert again.files_before == again.files_after == done.files_after
    assert ingest([tmp_path / "journals"], table).commit is None


def killed(monkeypatch: pytest.MonkeyPatch, table: Path, moment: int) -> bool:
    """Compact the table, and end at the rename or removal of this number; whether it was reached."""
    left = moment

    def counted(real: Callable[..., None]) -> Callable[..., None]:
        def call(*given: Any) -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                raise Killed
            real(*given)

        return call

    with monkeypatch.context() as patched:
        for name in ("replace", "unlink"):
            patched.setattr(os, name, counted(getattr(os, name)))
        try:
            compact(table)
        except Killed:
            return True
    return False


def test_a_kill_at_any_moment_leaves_the_table_and_the_next_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(tmp_path, tmp_path / "before", 3)()
    reused, moment = set[int](), 1
    while True:
        table = tmp_path / f"table-{moment}"
        shutil.copytree(tmp_path / "before", table)
        reached = killed(monkeypatch, table, moment)
        begun = {file: file.stat().st_ino for file in table.rglob("[0-9]*-0.parquet")}
        if reached:
            assert rows_of(table) == rows_of(tmp_path / "once")
        done = compact(table)
        assert same(table, tmp_path / "once") and len([*table.rglob("*.parquet*")]) == done.files_after
        reused.add(sum(file.exists() and file.stat().st_ino == number for file, number in begun.items()))
        if not reached:
            break
        moment += 4
    assert moment > 20 and len(reused) > 2  # an early kill leaves less to go on with than a late one


def test_files_with_many_rows_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "table"
    grown(tmp_path, table, 6)()
    monkeypatch.setattr("pygroups.pipeline.ingest.compaction.ROWS_MAX", 30)
    done = compact(table)
    counts = [pq.read_metadata(file).num_rows for file in Table(table).runs_files]
    assert same(table, tmp_path / "once") and max(counts) > 30 and len(counts) < done.files_after < done.files_before
    assert {Path(file).name[-9:] for file in Table(table).runs_files} >= {"0.parquet", "1.parquet"}
    compact(table)
    assert same(table, tmp_path / "once")


def test_the_command_says_what_it_did_and_what_it_cannot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal, table = life_of(tmp_path / "j"), tmp_path / "t"
    here = ["ingest", "--out", str(table), "--compact"]
    assert cli.main(here) == 2
    assert "t is no table of journals" in capsys.readouterr().err
    assert not table.exists()
    for first in (1, 2):
        journal.write([("send", None, run("A", first))], NOON_US, first)
        ingest([tmp_path / "j"], table)
    assert cli.main([*here, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["compacted"]["files_before"], told["compacted"]["files_after"]) == (0, 8, 4)
    assert cli.main(here) == 0
    assert capsys.readouterr().out == f"nothing to compact in {table}: 4 files\n"
    journal.write([("send", None, run("A", 3))], NOON_US, 3)
    assert cli.main([*here, str(tmp_path / "j")]) == 0
    added, merged = capsys.readouterr().out.splitlines()
    assert added.startswith(f"added to {table}: 1 file,") and merged.startswith(
        f"compacted {table}: 8 files before, 4 "
    )
    (runs,) = Table(table).runs_files
    with locked(table):
        assert cli.main(here) == 2
    assert "another ingest writes to the table" in capsys.readouterr().err
    journal.write([("send", None, run("A", 4))], NOON_US, 4)
    ingest([tmp_path / "j"], table)
    Path(runs).write_bytes(b"")
    with pytest.raises(NotATable, match="is damaged"):
        compact(table)
    assert len(Table(table).commits) == 2
