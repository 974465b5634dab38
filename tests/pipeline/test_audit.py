"""The command: what a user sees in the shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession

from pygroups.cli.audit import in_words, some_of
from pygroups.cli.main import main
from pygroups.journal.writer import segment_path
from pygroups.pipeline import audit as audits
from pygroups.pipeline import session as sessions
from pygroups.pipeline.ingest import Table, ingest
from pygroups.pipeline.store import Store
from pygroups.pipeline.verdict import Verdict, Violation, summarize
from tests.patience import patience
from tests.pipeline.planted import clean, closed, opened, repeated
from tests.pipeline.spark_session import SHORT_LIVED, spark

__all__ = ["spark"]
slow = pytest.mark.slow


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("journals")
    clean("good").save(root)
    history = opened("bad")
    repeated(history, "C")
    closed(history).save(root)
    return root


@slow
def test_json_tables_and_exit_code_of_a_broken_promise(
    spark: SparkSession, journals: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    damaged = segment_path(next((journals / "good").glob("A@*")), 0)
    before = damaged.read_bytes()
    damaged.write_bytes(before[:-40] + b"\xc1" + before[-39:])
    try:
        code = main(["audit", str(journals), "--json", "--out", str(tmp_path / "out"), "--master", "local[2]"])
    finally:
        damaged.write_bytes(before)
    answer = capfd.readouterr()
    assert code == 1
    told = json.loads(answer.out)
    assert list(told) == ["promises", "unjudged", "groups", "files", "rows", "quarantined", "holes", "left_out", "work"]
    assert told["unjudged"] == ["causal"]
    assert (told["files"], told["quarantined"]) == (9, 1)
    assert answer.err.startswith(f"warning: {damaged} at byte ") and answer.err.count("\n") == 1
    promises = {promise["name"]: promise for promise in told["promises"]}
    assert {name for name, promise in promises.items() if promise["verdict"] == "broken"} == {"fifo", "no-duplication"}
    assert (promises["fifo"]["broken"], promises["fifo"]["broken_groups"]) == (1, ["bad"])
    (violation,) = promises["no-duplication"]["violations"]
    assert violation == {
        "promise": "no-duplication",
        "group": "bad",
        "view": "1:A@410",
        "member": "C@430",
        "other": None,
        "origin": "B@420",
        "first": 5,
        "position": 18,
        "detail": "delivered a second time",
    }
    views = spark.read.parquet(str(tmp_path / "out" / "silver" / "views"))
    assert {"group", "day"} <= set(views.columns)
    assert (tmp_path / "out" / "events" / "group=good" / "day=2023-11-14").is_dir()
    assert spark.read.parquet(str(tmp_path / "out" / "gold" / "violations")).where("`group` = 'bad'").count() == 2


@slow
def test_a_clean_history_ends_with_0_and_a_table(
    spark: SparkSession, journals: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(journals / "good"), "--strict", "--master", "local[2]"]) == 0
    answer = capfd.readouterr()
    assert answer.err == ""
    lines = [line.split() for line in answer.out.splitlines()]
    assert ["total-order", "held", "33,703", "0"] in lines
    assert "not judged, because no rule is built yet: causal\n" in answer.out
    assert re.search(r"\n1 group, 5 files, 131 records; [\d.]+ s, [\d.]+ CPU s\n$", answer.out)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "give the folder of the journals"),
        (["{tmp}/nothing"], "is not a folder"),
        (["{tmp}"], "has no journal"),
        (
            ["{tmp}", "--master", "spark://x:7077"],
            "needs --out DIR: a folder for the tables, which all its machines mount",
        ),
        (["{tmp}", "--out", "/dev/null"], "is a file: --out names a folder"),
    ],
)
def test_a_wrong_call_is_one_line_and_code_2(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", *(argument.format(tmp=tmp_path) for argument in arguments)]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1 and sentence in told.err


def test_what_a_table_holds_of_other_journals_counts_for_the_size(journals: Path, tmp_path: Path) -> None:
    ingest([journals / "bad"], tmp_path / "t")
    sizes = {
        group: sum(file.stat().st_size for file in journals.glob(f"{group}/*/*.journal")) for group in ("good", "bad")
    }
    for asked in (["good"], ["good", "bad"]):
        folders = [str(journals / group) for group in asked]
        assert audits._size(folders, tmp_path / "t") == sum(sizes.values())
    assert audits._size([str(journals / "good")], tmp_path / "new") == sizes["good"]


def test_a_copy_of_a_segment_is_not_counted_as_another_file(journals: Path, tmp_path: Path) -> None:
    """One that is copied while it grows, and goes on in the copy."""
    life = next((journals / "good").glob("A@*"))
    whole = segment_path(life, 0).read_bytes()
    for place, size in (("first", len(whole) // 2), ("second", len(whole))):
        copy = segment_path(tmp_path / place / "good" / life.name, 0)
        copy.parent.mkdir(parents=True)
        copy.write_bytes(whole[:size])
        ingest([tmp_path / place], tmp_path / "t")
    manifest = Table(tmp_path / "t").manifest()
    assert len(set(manifest["file"].to_pylist())) == 2
    assert len(audits._segments(manifest)) == 1


@slow
def test_a_damaged_file_is_named_in_one_sentence(
    spark: SparkSession, journals: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bit is flipped in the numbers of messages: the file can be opened, and a page of it is not what was written."""
    ingest([journals / "bad"], tmp_path / "t [1]")
    (file,) = map(Path, Table(tmp_path / "t [1]").runs_files)
    metadata = pq.ParquetFile(file).metadata.row_group(0)
    first = next(
        metadata.column(at) for at in range(metadata.num_columns) if metadata.column(at).path_in_schema == "first"
    )
    data = bytearray(file.read_bytes())
    data[first.data_page_offset + first.total_compressed_size - 1] ^= 1
    file.write_bytes(data)
    assert main(["audit", str(tmp_path / "t [1]"), "--master", "local[2]"]) == 2
    assert capsys.readouterr().err == f"pygroups: {file} is damaged: ingest the journals into a new table\n"


@slow
def test_processes_of_a_cluster_judge_a_table_and_the_folder_takes_its_journals_afterwards(
    spark: SparkSession, journals: Path, tmp_path: Path
) -> None:
    """Two executors, processes of their own, read the table and write to the folder; nothing else passes between."""
    ingest([journals], tmp_path / "t")
    cluster = ["--master", "local-cluster[2,1,1024]", "--out", str(tmp_path / "out")]
    called = [sys.executable, "-m", "pygroups", "audit", str(tmp_path / "t"), *cluster, "--json"]
    environment = os.environ | SHORT_LIVED
    answer = subprocess.run(called, env=environment, capture_output=True, text=True, timeout=patience(450), check=False)
    assert (answer.returncode, answer.stderr) == (1, "")
    promises = json.loads(answer.stdout)["promises"]
    assert {one["name"] for one in promises if one["verdict"] == "broken"} == {"fifo", "no-duplication"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"silver", "gold"}
    assert spark.read.parquet(str(tmp_path / "out" / "gold" / "violations")).count() == 2
    ingest([journals], tmp_path / "out")
    assert Table(tmp_path / "out").groups == ["bad", "good"]


_IMPATIENT = """
import sys
from pygroups.pipeline import session
session.EXECUTOR_SECONDS = 3
from pygroups.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.long
def test_a_cluster_without_a_free_worker_is_one_line_and_code_2(journals: Path, tmp_path: Path) -> None:
    """A standalone master that no worker has joined: Spark would wait without end."""
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    call = [str(spark_class), "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0"]
    local = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(spark_class.parents[1])}
    with subprocess.Popen([*call, "--webui-port", "0"], stderr=subprocess.PIPE, text=True, env=local) as master:
        try:
            assert master.stderr is not None
            found = (re.search(r"Starting Spark master at (spark://\S+)", line) for line in master.stderr)
            place = next(one[1] for one in found if one)
            asked = ["audit", str(journals / "good"), "--master", place, "--out", str(tmp_path / "out")]
            called = [sys.executable, "-c", _IMPATIENT, *asked]
            answer = subprocess.run(called, capture_output=True, text=True, timeout=patience(450), check=False)
        finally:
            master.kill()
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == (
        f"pygroups: Spark on {place} started no executor within 3 s: check that the cluster has a worker with a free "
        "core and 1g of free memory\n"
    )


def test_a_place_that_cannot_be_written_is_one_line_and_code_2(
    journals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pygroups.pipeline.audit.make_session", lambda **how: None)
    (tmp_path / "file").write_bytes(b"")
    assert main(["audit", str(journals / "good"), "--out", str(tmp_path / "file" / "out")]) == 2
    assert capsys.readouterr().err == f"pygroups: the audit cannot read or write {tmp_path}/file/out: Not a directory\n"


def test_nothing_to_judge_is_not_all_well(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "orders" / "A@3f2c").mkdir(parents=True)
    (tmp_path / "orders" / "A@3f2c" / "000000.journal").write_bytes(b"")  # the member has just begun
    assert main(["audit", str(tmp_path), "--strict", "--master", "local[2]"]) == 2
    assert (
        capsys.readouterr().err
        == "pygroups: the journals have no record yet, so nothing can be judged: run the audit again later\n"
    )


def test_a_path_is_no_pattern(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, tmp_path / "out [1] {a} 19:00")
    assert store.keep("silver/ids", spark.range(3)).count() == 3


def test_a_missing_java_is_one_clear_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clean("good").save(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["audit", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "needs Java 17" in told and "apt-get install" in told


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" x', 21),
        ("", None),
    ],
)
def test_the_version_of_java_is_read(text: str, major: int | None) -> None:
    assert sessions._major_version(text) == major


def test_a_violation_in_words() -> None:
    violation = Violation("fifo", "g", "4:A@1", "C@3", None, "B@2", 17, 40, "delivered message 17\nwhere 16 was next")
    assert in_words(violation) == (
        "fifo broken in group g at C@3 in view 4:A@1 (from B@2, message 17): delivered message 17 where 16 was next"
    )


def test_the_violations_that_are_told_come_from_as_many_groups_as_possible() -> None:
    found = [
        Violation("fifo", group, None, "A@1", None, None, first, None, "") for group in "abc" for first in range(9)
    ]
    assert [(one.group, one.first) for one in some_of(found)] == [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1)]


def test_the_worst_verdict_stands_for_all_groups_but_who_had_no_occasion_does_not_count() -> None:
    held = Verdict("fifo", "a", "held", 5, 1, "1 skipped: x", skips={"x": 1})
    no_occasion = Verdict("fifo", "b", "not judged", 0, 0, "nothing was delivered", excused=True)
    unknown = Verdict("fifo", "c", "not judged", 0, 2, "2 skipped: x", skips={"x": 2})
    broken = Verdict("fifo", "d", "broken", 3, 0, "", broken=1)
    (two,) = summarize([held, no_occasion])
    assert (two.verdict, two.judged, two.reason) == ("held", 5, "1 skipped: x")
    (three,) = summarize([held, no_occasion, unknown])
    assert (three.verdict, three.reason) == ("not judged", "3 skipped: x")
    (four,) = summarize([held, broken, unknown])
    assert (four.verdict, four.group) == ("broken", "d")
    assert summarize([no_occasion])[0].excused
