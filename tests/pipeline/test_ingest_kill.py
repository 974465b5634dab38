"""An ingest that is killed leaves a table that can be read, and the next one goes on; two at once are one too many."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pygroups.cli import main as cli
from pygroups.pipeline.ingest import NotATable, Table, ingest
from tests.patience import patience
from tests.pipeline.ingested import NOON_US, drawn, life_of, names_of, put, rows_of, run, stages

KILLED = """
import os, signal, sys
from pathlib import Path
import pyarrow.parquet as pq
from pygroups.pipeline.ingest import ingest

journals, table, moment = sys.argv[1:]
left = int(moment)

def counted(owner, name):
    real = getattr(owner, name)
    def call(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(*arguments, **options)
        return answer
    setattr(owner, name, call)

for owner, name in ((os, "replace"), (pq, "write_table"), (pq.ParquetWriter, "close")):
    counted(owner, name)
ingest([journals], Path(table))
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("new", [True, False], ids=["a new table", "a table that grows"])
def test_a_kill_at_any_moment_loses_nothing_and_doubles_nothing(tmp_path: Path, new: bool) -> None:
    journals = tmp_path / "journals"
    drawn(journals, 5, "uniform")
    ingest([journals], tmp_path / "once")
    first, last = stages(journals, 5, 2)
    states: list[int] = []
    for moment in range(1, 4 if new else 99):
        table = tmp_path / f"table-{moment}"
        for file in journals.glob("*/*@*/*.journal"):
            file.unlink()
        if not new:
            put(first)
            ingest([journals], table)
        put(last)
        command = [sys.executable, "-c", KILLED, str(journals), str(table), str(moment)]
        child = subprocess.run(command, capture_output=True, text=True, timeout=patience(60), check=False)
        ended = child.stdout
        assert child.returncode == (0 if "done" in ended else -signal.SIGKILL), child.stderr
        if (table / "table.json").exists():
            states.append(len(Table(table).commits))
            assert rows_of(table)["runs"] or not states[-1]
        ingest([journals], table)
        assert rows_of(table) == rows_of(tmp_path / "once")
        assert names_of(table) == names_of(tmp_path / "once")
        assert not [file for file in table.rglob("*.parquet*") if commit_of(file) not in Table(table).commits]
        assert ingest([journals], table).commit is None
        if "done" in ended:
            break
    assert states == sorted(states)
    assert new or (moment > 7 and set(states) == {1, 2})


def commit_of(file: Path) -> str:
    return file.name.partition("-")[0].partition(".")[0]


def test_a_second_ingest_at_once_is_refused(tmp_path: Path) -> None:
    journal = life_of(tmp_path / "j")
    journal.write([("send", None, run("A", 1))], NOON_US, 1)
    ingest([tmp_path / "j"], tmp_path / "t")
    with (tmp_path / "t" / "lock").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)  # even a reader of the lock is one too many
        with pytest.raises(NotATable, match="another ingest writes to the table"):
            ingest([tmp_path / "j"], tmp_path / "t")
    assert ingest([tmp_path / "j"], tmp_path / "t").skipped == 1


def test_what_a_killed_ingest_left_behind_is_removed_and_not_read(tmp_path: Path) -> None:
    journal = life_of(tmp_path / "j")
    journal.write([("send", None, run("A", 1))], NOON_US, 1)
    ingest([tmp_path / "j"], tmp_path / "t")
    (file,) = Table(tmp_path / "t").runs_files
    left = [Path(file).with_name("0000000000000001-0.parquet"), tmp_path / "t" / "manifest" / ".9999.parquet"]
    for path in left:
        pq.write_table(pq.read_table(file, partitioning=None), path)
    assert Table(tmp_path / "t").runs_files == [file]
    assert len(Table(tmp_path / "t").commits) == 1
    ingest([tmp_path / "j"], tmp_path / "t")
    assert [path.exists() for path in left] == [False, False]


def test_the_command_appends_and_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = life_of(tmp_path / "j")
    journal.write([("send", None, run("A", 1)), ("send", None, run("A", 2))], NOON_US, 1)
    call = ["ingest", str(tmp_path / "j"), "--out", str(tmp_path / "t")]
    assert cli.main(call) == 0
    told = capsys.readouterr()
    assert told.out.startswith(f"added to {tmp_path / 't'}: 1 file, 0.0 MB, 2 records, ")
    assert told.err == ""
    assert cli.main([*call, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [answer[name] for name in ("commit", "files", "rows", "skipped", "damaged")] == [None, 1, 0, 1, []]
    path = tmp_path / "j" / "orders" / "A@3f2c" / "000000.journal"
    data = path.read_bytes()
    journal.write([("send", None, run("A", 3))], NOON_US, 1)
    with path.open("r+b") as file:
        file.seek(len(data) + 12)
        file.write(b"?")
    assert cli.main(call) == 0
    told = capsys.readouterr()
    assert told.err == f"warning: {path} at byte {len(data)}: bad checksum\n"
    assert "1 range known already, 1 damaged place" in told.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "t"], "give the folder of the journals"),
        (["j"], "give the folder of the table"),
        (["nothing", "--out", "t"], "is not a folder"),
        (["j", "--out", "file"], "nor a table of journals"),
        (["j", "--out", "t", "--jobs", "0"], "must be 1 or more"),
        (["j", "--out", "file/t"], "file"),
    ],
)
def test_a_wrong_call_is_one_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    life_of(tmp_path / "j").write([("send", None, run("A", 1))], NOON_US, 1)
    (tmp_path / "file").write_text("x")
    assert cli.main(["ingest", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("pygroups: ") and told.err.count("\n") == 1
    assert sentence in told.err
    assert not (tmp_path / "t").exists()
