"""Spark Connect: the same tables as on this machine and on a standalone cluster, with a client that reads no file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pygroups.cli.main import main
from pygroups.core.errors import UsageError
from pygroups.journal.reader import NotAJournal
from pygroups.pipeline import remote
from pygroups.pipeline.ingest import Table, ingest
from pygroups.pipeline.recorded import facts_of
from pygroups.pipeline.session import NoSpark
from tests.patience import patience
from tests.pipeline.catalog import all_planted
from tests.pipeline.connect_server import connect_server, free_port, standalone
from tests.pipeline.test_stream import CHOSEN


def saved(folder: Path) -> Path:
    """Journals of groups with planted violations, and of right ones."""
    for planted in all_planted():
        if CHOSEN.fullmatch(planted.group):
            planted.make(planted.group).save(folder)
    return folder


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pygroups", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=patience(600), check=False)


def verdicts(answer: subprocess.CompletedProcess[str]) -> dict[str, object]:
    """What an audit says, without the time that it took."""
    assert answer.returncode == 1, answer.stderr
    told = json.loads(answer.stdout)
    told.pop("work")
    return dict(told)


def rows_of(folder: Path) -> Counter[str]:
    """The rows of a table in any order, with the columns that stand in the names of its folders."""
    return Counter(json.dumps(row, default=str, sort_keys=True) for row in pq.read_table(folder).to_pylist())


# ---- without a server: what is asked and answered


def answered(question: remote.Question, *arguments: object, version: str = remote.__version__) -> remote.Answer:
    """What a task of Spark answers."""
    (batch,) = remote._answered(version, question, arguments, iter([None]))
    return {row["name"]: row["content"] for row in batch.to_pylist()}


def test_what_is_known_of_a_table_comes_back_as_it_is_there(tmp_path: Path) -> None:
    journals, here = saved(tmp_path / "journal"), tmp_path / "here"
    done = ingest([journals], here)
    answer = answered(remote._history, [str(journals)], str(tmp_path / "there"))
    facts, told = remote._facts_of(answer), remote._result_of(answer["result"])
    assert (told.rows, told.files, told.damaged, told.left_out) == (done.rows, done.files, done.damaged, done.left_out)
    known = facts_of(Table(here))
    assert facts.path == str(tmp_path / "there") and len(facts.files) == len(known.files)
    assert (facts.kinds, facts.names, facts.lives) == (known.kinds, known.names, known.lives)
    again = remote._facts_of(answered(remote._history, [str(tmp_path / "there")], "nowhere"))
    assert again == facts


@pytest.mark.parametrize(
    ("error", "kind"),
    [(NotAJournal("no journal"), NotAJournal), (UsageError("wrong"), UsageError), (NoSpark("none"), NoSpark)],
)
def test_an_error_that_a_user_can_correct_comes_back_as_itself(error: Exception, kind: type[Exception]) -> None:
    def question() -> remote.Answer:
        raise error

    found = remote._error_of(json.loads(answered(question)["error"]))
    assert type(found) is kind and str(found) == str(error)


def test_a_file_that_cannot_be_read_there_is_named(tmp_path: Path) -> None:
    def question() -> remote.Answer:
        return {"content": (tmp_path / "nothing").read_bytes()}

    found = remote._error_of(json.loads(answered(question)["error"]))
    assert isinstance(found, FileNotFoundError) and found.filename == str(tmp_path / "nothing")


def test_another_version_of_pygroups_is_refused() -> None:
    (sentence,) = answered(dict, version="0.0").values()
    assert "and this one 0.0: install one version" in sentence.decode()


@pytest.mark.parametrize("command", ["audit", "ingest", "sweep"])
def test_a_client_names_paths_of_the_server(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    what = ["--seeds", "0:1"] if command == "sweep" else ["/journal"]
    assert main([command, *what, "--out", "out", "--remote", "sc://127.0.0.1:1"]) == 2
    said = "pygroups: out is a path of this machine: with --remote give absolute paths of the server\n"
    assert capsys.readouterr() == ("", said)


def test_a_server_that_is_not_there_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    place = f"sc://127.0.0.1:{free_port()}"
    assert main(["ingest", "/journal", "--out", "/out", "--remote", place]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"pygroups: no server of Spark Connect answers at {place}: ") and said.count("\n") == 1


def test_two_places_for_spark_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "/journal", "--out", "/out", "--remote", "sc://a", "--master", "local"]) == 2
    assert "give one of them" in capsys.readouterr().err


# ---- with a server


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A standalone cluster, and a server of Connect on it."""
    folder = tmp_path_factory.mktemp("spark")
    with standalone(folder) as master, connect_server(folder, master) as place:
        yield master, place


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_here_a_cluster_and_connect_give_the_same_tables(tmp_path: Path, cluster: tuple[str, str]) -> None:
    master, place = cluster
    journals = saved(tmp_path / "journal")
    on = {"here": [], "cluster": ["--master", master], "connect": ["--remote", place]}
    said = {
        name: verdicts(
            run("audit", journals, "--out", tmp_path / name, "--json", *options, "--report", tmp_path / f"{name}.html")
        )
        for name, options in on.items()
    }
    assert said["connect"] == said["cluster"] == said["here"]
    tables = sorted(str(folder.relative_to(tmp_path / "here")) for folder in (tmp_path / "here").glob("[gs]*/*"))
    assert "gold/violations" in tables and "silver/blocks" in tables
    for table in tables:
        assert rows_of(tmp_path / "connect" / table) == rows_of(tmp_path / "cluster" / table), table
    assert rows_of(tmp_path / "connect/gold/violations") == rows_of(tmp_path / "here/gold/violations")
    again = run("audit", tmp_path / "connect", "--out", tmp_path / "again", "--json", "--remote", place)
    assert verdicts(again)["promises"] == said["here"]["promises"]


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_ingest_and_sweep_with_a_server(tmp_path: Path, cluster: tuple[str, str]) -> None:
    journals, out = saved(tmp_path / "journal"), tmp_path / "table"
    added = run("ingest", journals, "--out", out, "--remote", cluster[1], "--json")
    assert added.returncode == 0 and json.loads(added.stdout)["rows"] == ingest([journals], tmp_path / "here").rows
    assert Table(out).manifest().num_rows > 0
    refused = run("ingest", journals, "--out", out / "manifest", "--remote", cluster[1])
    assert refused.returncode == 2 and "give --out a table or a new folder" in refused.stderr
    played = [
        run(
            "sweep",
            "--seeds",
            seeds,
            "--profile",
            "fifo",
            "--out",
            tmp_path / "sweep",
            "--remote",
            cluster[1],
            "--json",
        )
        for seeds in ("0:3", "1:5")
    ]
    assert [json.loads(one.stdout)["played"] for one in played] == [3, 2], [one.stderr for one in played]
