"""The data source for Spark's users: tables, paths, pruning, filters, ranges, refusals."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.captured import AnalysisException as SparkRefusal
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, Not, StringStartsWith
from pyspark.sql.types import StructType
from pyspark.testing import assertDataFrameEqual

from pygroups.journal import frames
from pygroups.journal.frames import frame_of, segment_beginning
from pygroups.journal.ranges import header_of
from pygroups.journal.reader import find_segments
from pygroups.journal.schema import services_of_v1
from pygroups.journal.writer import JournalWriter, segment_path
from pygroups.pipeline.ingest import Table, ingest
from pygroups.pipeline.schemas import MESSAGES, QUARANTINE, RECORDS
from pygroups.pipeline.source import GroupsDataSource, read
from pygroups.pipeline.source_reader import JournalsReader
from pygroups.pipeline.source_request import STREAM_ALONE, TABLES, request_of
from tests.patience import patience
from tests.pipeline.planted import clean
from tests.pipeline.spark_session import spark

__all__ = ["spark"]
slow = pytest.mark.slow
RUN: dict[str, Any] = {"origin": "B", "origin_incarnation": "2", "bytes": 1, "stream": "B@2"}


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("journals")
    clean("good").save(root / "one")
    clean("more").save(root / "two")
    return root


def reader_on(*paths: Path, schema: str | StructType = RECORDS, **options: str) -> JournalsReader:
    if isinstance(schema, str):
        table = TABLES[options.get("table", "records")]
        schema = StructType([table[name] for name in schema.split()])
    told = {"paths": str([str(path) for path in paths]).replace("'", '"')} | options
    reader = GroupsDataSource(told).reader(schema)
    assert isinstance(reader, JournalsReader)
    return reader


def rows_of(reader: JournalsReader) -> list[dict[str, Any]]:
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """The frames that were decoded."""
    seen: list[bytes] = []
    decode = frames._decode

    def counted(body: bytes) -> Any:
        seen.append(body)
        return decode(body)

    monkeypatch.setattr(frames, "_decode", counted)
    yield seen


# -- tables


@slow
def test_records_messages_and_damaged_places(spark: SparkSession, tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, "g", "A", "1", "total", host="h", boot_id="b", services=services_of_v1("total"))
    journal.write([("deliver", (1, "A@1"), RUN | {"first": 7, "count": 2, "payload": [b"one", b"two"]})], 5, 5)
    journal.write([("deliver", (1, "A@1"), RUN | {"first": 9, "count": 1, "position": 32})], 6, 6)
    journal.close()
    with segment_path(journal.folder, 0).open("ab") as file:
        file.write(b"\x03\x00\x00\x00\x00\x00\x00\x00abc")
    source = spark.read.format("pygroups")
    records = source.load(str(tmp_path))
    assert records.schema == RECORDS
    seconds = records.where("time > timestamp '1970-01-01'").selectExpr("unix_micros(time)", "date_format(time, 'y')")
    assert [tuple(row) for row in seconds.orderBy("index").collect()] == [(5, "1970"), (6, "1970")]
    messages = source.option("table", "messages").load(str(tmp_path))
    assert messages.schema == MESSAGES
    rows = messages.orderBy("number").select("number", "position", "payload").collect()
    assert [tuple(row) for row in rows] == [(7, None, b"one"), (8, None, b"two"), (9, 32, None)]
    places = source.option("table", "quarantine").load(str(tmp_path))
    assert places.schema == QUARANTINE
    (place,) = places.collect()
    assert (place["group"], place["member"], place["reason"]) == ("g", "A", "bad checksum")


def test_a_record_has_its_time_unless_no_calendar_has_it(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, "g", "A", "1", "total", host="h", boot_id="b", services=services_of_v1("total"))
    noon = datetime(2026, 11, 28, 12, tzinfo=UTC)
    for us in (int(noon.timestamp()) * 1_000_000, (1 << 63) - 1, -(1 << 62)):
        journal.write([("deliver", (1, "A@1"), RUN | {"first": 1, "count": 2})], us, 1)
    journal.close()
    rows = rows_of(reader_on(tmp_path, schema="time member"))
    assert [row["time"] for row in rows] == [noon, None, None]
    rows = rows_of(reader_on(tmp_path, table="messages", schema="number time"))
    assert [(row["number"], row["time"]) for row in rows] == [(n, at) for at in (noon, None, None) for n in (1, 2)]


def test_each_run_becomes_its_messages(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, "g", "A", "1", "total", host="h", boot_id="b", services=services_of_v1("total"))
    runs: list[dict[str, Any]] = [
        {"first": 1, "count": 3, "position": 10},
        {"first": 4, "count": 2, "position": 13, "payload": [b"", b"x"]},
        {"first": 6, "count": 0, "position": 15, "payload": []},
        {"first": 6, "count": 1, "position": 15, "payload": [b"z"]},
        {"first": 7, "count": 99_999, "position": 16},
        {"first": 100_006, "count": 1, "payload": [b"y"]},
    ]
    for run in runs:
        journal.write([("deliver", (1, "A@1"), RUN | run), ("send", (1, "A@1"), {})], 5, 5)
    journal.close()
    rows = rows_of(reader_on(tmp_path, table="messages", schema="payload number position origin"))
    assert [row["number"] for row in rows] == list(range(1, 100_007))
    assert [row["position"] for row in rows] == [*range(10, 100_015), None]
    assert {row["number"]: row["payload"] for row in rows if row["payload"] is not None} == {
        4: b"",
        5: b"x",
        6: b"z",
        100_006: b"y",
    }
    assert {row["origin"] for row in rows} == {"B"}


@slow
@pytest.mark.parametrize("table", ["runs", "events", "votes", "names", "manifest"])
def test_the_tables_of_a_history_are_those_that_ingest_writes(
    spark: SparkSession, journals: Path, tmp_path: Path, table: str
) -> None:
    ingest([journals / "one", journals / "two"], tmp_path / "table")
    made = Table(tmp_path / "table")
    schema = TABLES[table]
    if table == "manifest":
        wanted = spark.createDataFrame(made.manifest()).drop("commit", "files")
    else:
        files = getattr(made, f"{table}_files")
        folder = str(tmp_path / "table" / table)
        wanted = spark.read.schema(schema).option("basePath", folder).parquet(*files)
    found = spark.read.format("pygroups").option("table", table).load([str(journals / "one"), str(journals / "two")])
    assert found.schema == schema
    if table == "manifest":
        found = found.drop("commit", "files")
    assert found.count() > 0
    assertDataFrameEqual(_comparable(found).distinct(), _comparable(wanted).distinct())


def _comparable(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("to_json(struct(*), map('ignoreNullFields', 'false')) as row")


# -- paths


@slow
def test_one_path_several_paths_and_patterns(spark: SparkSession, journals: Path) -> None:
    def groups(*arguments: Any) -> dict[str, int]:
        frame = spark.read.format("pygroups").schema("`group` string").load(*arguments)
        return {row["group"]: row["count"] for row in frame.groupBy("group").count().collect()}

    assert groups(str(journals / "one")) == {"good": 131}
    assert groups([str(journals / "one")]) == {"good": 131}
    assert groups([str(journals / "one"), str(journals / "two")]) == {"good": 131, "more": 131}
    assert groups(str(journals / "t*")) == {"more": 131}
    assert groups([str(journals / "[ot]*"), str(journals / "one")]) == {"good": 131, "more": 131}  # each file once
    assert groups(f"file://{journals}/one") == {"good": 131}


def test_a_name_that_looks_like_a_pattern_is_a_name_if_it_exists(tmp_path: Path) -> None:
    clean("good").save(tmp_path / "run[1]")
    assert len(reader_on(tmp_path / "run[1]").segments) == 5


# -- what is not asked for


@slow
def test_a_schema_of_some_columns_is_what_is_read(spark: SparkSession, journals: Path) -> None:
    source = spark.read.format("pygroups")
    frame = source.schema("position bigint, kind string, digest map<string,bigint>").load(str(journals / "one"))
    full = source.schema(RECORDS).load(str(journals / "one")).select("position", "kind", "digest")
    assert frame.columns == ["position", "kind", "digest"]
    assertDataFrameEqual(_comparable(frame), _comparable(full))


@pytest.mark.parametrize("table", [name for name in TABLES if name != STREAM_ALONE])
def test_only_the_asked_columns_are_handed_over(journals: Path, table: str) -> None:
    names = TABLES[table].names
    asked = [names[-1], names[2]]
    reader = reader_on(journals / "one", table=table, schema=" ".join(asked))
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert bool(batches) == (table != "quarantine")
    assert all(batch.schema.names == asked for batch in batches)


def test_columns_that_are_not_asked_for_are_not_made(journals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: set[str] = set()
    array = pa.array
    monkeypatch.setattr(pa, "array", lambda values, *more: made.add(str(more)) or array(values, *more))
    rows_of(reader_on(journals / "one", schema="kind index"))
    assert made == {str((pa.int64(),))}


PUSHED: list[tuple[Filter, Callable[[dict[str, Any]], bool]]] = [
    (EqualTo(("kind",), "view"), lambda row: row["kind"] == "view"),
    (In(("kind",), ("view", "leave")), lambda row: row["kind"] in ("view", "leave")),
    (Not(EqualTo(("kind",), "deliver")), lambda row: row["kind"] != "deliver"),
    (StringStartsWith(("kind",), "un"), lambda row: row["kind"].startswith("un")),
    (EqualTo(("member",), "A"), lambda row: row["member"] == "A"),
    (Not(In(("member",), ("A", "B"))), lambda row: row["member"] not in ("A", "B")),
    (EqualTo(("group",), "more"), lambda row: row["group"] == "more"),
    (EqualTo(("group",), "none"), lambda row: False),
]


@pytest.mark.parametrize(("condition", "holds"), PUSHED)
def test_filters_on_kind_group_and_member_are_done_here(
    journals: Path, condition: Filter, holds: Callable[[dict[str, Any]], bool]
) -> None:
    paths = (journals / "one", journals / "two")
    reader = reader_on(*paths)
    other = GreaterThan(("index",), 3)
    assert reader.pushFilters([condition, other]) == [other]
    found = rows_of(reader)
    assert sorted(map(repr, found)) == sorted(repr(row) for row in rows_of(reader_on(*paths)) if holds(row))


def test_filters_are_a_conjunction(journals: Path) -> None:
    reader = reader_on(journals / "one")
    assert reader.pushFilters([EqualTo(("kind",), kind) for kind in ("view", "deliver", "leave")]) == []
    assert rows_of(reader) == []


def test_a_comparison_with_null_is_left_to_spark(journals: Path) -> None:
    odd: list[Filter] = [Not(In(("kind",), ("view", None))), EqualTo(("kind",), None)]
    assert reader_on(journals / "one").pushFilters(odd) == odd


def test_kinds_that_are_not_asked_for_are_not_decoded(journals: Path, decoded: list[bytes]) -> None:
    rows_of(reader_on(journals / "one"))
    everything = len(decoded)
    decoded.clear()
    reader = reader_on(journals / "one", schema="kind index")
    reader.pushFilters([EqualTo(("kind",), "leave")])
    rows = rows_of(reader)
    headers = len(find_segments([journals / "one"]))
    assert len(decoded) == headers + len(rows) < everything / 5


def test_a_life_that_is_not_asked_for_is_in_no_task(journals: Path) -> None:
    reader = reader_on(journals / "one", journals / "two")
    reader.pushFilters([EqualTo(("group",), "more"), EqualTo(("member",), "B")])
    (share,) = reader.partitions()
    assert [(place.segment.group, place.segment.member) for place in share.ranges] == [("more", "B")]


def test_a_folder_that_was_renamed_hides_nothing(tmp_path: Path) -> None:
    clean("good").save(tmp_path)
    (tmp_path / "good").rename(tmp_path / "copy")
    reader = reader_on(tmp_path, schema="group")
    reader.pushFilters([EqualTo(("group",), "good")])
    assert len(rows_of(reader)) == 131


def test_damaged_places_go_by_the_names_of_folders(tmp_path: Path) -> None:
    clean("good").save(tmp_path)
    broken = segment_path(next((tmp_path / "good").glob("A@*")), 0)
    broken.write_bytes(b"PYGJRNL\x09")
    reader = reader_on(tmp_path, table="quarantine", schema="member reason")
    assert reader.pushFilters([EqualTo(("member",), "A")]) == []
    assert [row["member"] for row in rows_of(reader)] == ["A"]


@slow
def test_spark_pushes_filters_down_if_it_is_told_to_and_else_judges_them(spark: SparkSession, journals: Path) -> None:
    setting = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(setting)
    answers = []
    try:
        for value in ("false", "true"):
            spark.conf.set(setting, value)
            frame = spark.read.format("pygroups").load(str(journals / "one"))
            few = frame.where("kind = 'view' and member in ('A', 'B') and index > 0")
            answers.append(sorted(tuple(row) for row in few.select("member", "index", "kind").collect()))
            plan = few._jdf.queryExecution().toString()
            (left,) = re.findall(r"\+- Filter (.+)", plan.partition("== Physical Plan ==")[2])
            judged = [name for name in ("kind", "member", "index") if name in left]
            assert judged == (["index"] if value == "true" else ["kind", "member", "index"])
    finally:
        spark.conf.set(setting, before)
    assert answers[0] == answers[1] != []


# -- ranges


def large_segment(root: Path, size: int) -> int:
    """One life whose only segment has at least `size` bytes; gives the number of its records."""
    journal = JournalWriter(root, "g", "A", "1", "total", host="h", boot_id="b", services=services_of_v1("total"))
    journal.close()
    path = segment_path(journal.folder, 0)
    header = header_of(find_segments([root])[0])
    assert header is not None
    index, per_frame = 0, 500
    with path.open("wb") as file:
        file.write(segment_beginning(header))
        while file.tell() < size:
            rows = [
                ["deliver", at, at, at, (1, "A@1"), "B", "2", at + 1, 1, 9, 7, "B@2", at, at, None, None]
                for at in range(index, index + per_frame)
            ]
            file.write(frame_of(rows))
            index += per_frame
    return index


@slow
def test_a_full_segment_is_read_by_several_tasks(spark: SparkSession, tmp_path: Path) -> None:
    records = large_segment(tmp_path, 64 << 20)
    source = spark.read.format("pygroups").schema("index bigint, `group` string")
    assert source.load(str(tmp_path)).rdd.getNumPartitions() == max(2 * (os.cpu_count() or 1), 2)
    frame = source.option("partitions", "9").load(str(tmp_path))
    assert frame.rdd.getNumPartitions() == 9
    (row,) = frame.selectExpr("count(*)", "sum(index)", "count(distinct index)", "max(`group`)").collect()
    assert tuple(row) == (records, records * (records - 1) // 2, records, "g")


def test_shares_are_even_and_hold_each_byte_once(tmp_path: Path) -> None:
    large_segment(tmp_path, 9 << 20)
    clean("small").save(tmp_path)
    reader = reader_on(tmp_path, partitions="4")
    sizes = [sum(place.end - place.begin for place in share.ranges) for share in reader.partitions()]
    total = sum(segment.size for segment in find_segments([tmp_path]))
    assert sum(sizes) == total
    assert len(sizes) == 4 and max(sizes) < 1.5 * total / 4
    lives = reader_on(tmp_path, table="runs", schema=TABLES["runs"], partitions="4").partitions()
    assert sorted(len({place.segment.path for place in share.ranges}) for share in lives) == [1, 1, 2, 2]
    assert all(place.begin == 0 and place.end == place.segment.size for share in lives for place in share.ranges)


# -- refusals


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(AnalysisException) as caught:
        call()
    return str(caught.value)


REFUSALS = [
    ({"table": "feelings"}, None, "there is no table 'feelings': use records, messages,"),
    ({"partitions": "many"}, None, "option 'partitions' must be a whole number of tasks, and not 'many'"),
    ({"path": "{tmp}/nothing"}, None, "/nothing is not a folder: give a folder of journals"),
    ({"path": "{tmp}/nothing*"}, None, "no folder matches the pattern {tmp}/nothing*"),
    ({"path": "s3://there/here"}, None, "s3://there/here is no folder of this machine"),
    ({"path": "{tmp}"}, None, "{tmp} has no journal"),
    ({"tabel": "runs"}, None, "option 'tabel' is not known: did you mean 'table'? the options are path, table and"),
    (
        {"recursiveFileLookup": "true"},
        None,
        "option 'recursivefilelookup' is not known: the options are path, table and",
    ),
    ({}, "a int", "table 'records' has no column 'a'; the columns are group, member, incarnation"),
    ({}, "kind int", "column 'kind' of table 'records' has the type string, not int: give the type string"),
    ({}, "kind string NOT NULL", "column 'kind' can be null: leave NOT NULL out"),
    (
        {"table": "quarantine"},
        "kind string",
        "'kind'; the columns are group, member, incarnation, file, offset, reason",
    ),
]


@slow
@pytest.mark.parametrize(("options", "schema", "sentence"), REFUSALS)
def test_a_refusal_is_one_line_before_a_query_starts(
    spark: SparkSession,
    journals: Path,
    tmp_path: Path,
    options: dict[str, str],
    schema: str | None,
    sentence: str,
) -> None:
    told = {name: value.format(tmp=tmp_path) for name, value in ({"path": str(journals / "one")} | options).items()}
    source = spark.read.format("pygroups").options(**told)
    jobs = set(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    with pytest.raises(SparkRefusal) as caught:
        if schema:
            source.schema(schema).load().collect()
        else:
            source.load()
    assert set(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == jobs
    text = str(caught.value).strip()
    assert sentence.format(tmp=tmp_path) in text and "Traceback" not in text
    assert re.fullmatch(r"\[PYTHON_DATA_SOURCE_ERROR\] [^\n]+AnalysisException: [^\n]+\n SQLSTATE: 38000", text)


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "file:///{}"])
def test_a_path_may_be_an_address_of_a_file(journals: Path, form: str) -> None:
    """Spark itself writes one slash, two or three."""
    assert len(request_of({"path": form.format(journals / "one")}).segments()) == len(find_segments([journals / "one"]))


@slow
def test_a_table_of_the_catalog_is_refused_and_a_view_is_read(spark: SparkSession, journals: Path) -> None:
    folder = journals / "one"
    with pytest.raises(SparkRefusal, match="CREATE TEMPORARY VIEW name USING pygroups OPTIONS"):
        spark.sql(f"CREATE TABLE lost USING pygroups OPTIONS (path '{folder}')")
    spark.sql(f"CREATE TEMPORARY VIEW seen USING pygroups OPTIONS (path 'file:{folder}', table 'manifest')")
    try:
        assert spark.table("seen").count() == len(find_segments([folder]))
    finally:
        spark.catalog.dropTempView("seen")


class WithoutPygroups:
    """Spark whose Python does not have pygroups."""

    def __getattr__(self, name: str) -> Any:
        return self if name == "read" else lambda *_, **__: self

    def load(self, paths: list[str]) -> Any:
        raise RuntimeError(
            "SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find the data source: pygroups."
        )


def test_a_python_without_pygroups_is_named(journals: Path) -> None:
    said = refused(lambda: read(WithoutPygroups(), journals / "one"))  # type: ignore[arg-type]
    assert "does not have pygroups" in said and f"PYSPARK_PYTHON={sys.executable}" in said


def test_without_a_path_it_says_so() -> None:
    assert "give the folder of the journals" in refused(lambda: GroupsDataSource({}).reader(RECORDS))


@slow
def test_read_refuses_in_its_sentence_alone(
    spark: SparkSession, journals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(lambda: read(spark, tmp_path)).startswith(f"{tmp_path} has no journal: ")
    assert refused(lambda: read(spark)).startswith("give the folder of the journals")
    assert refused(lambda: read(spark, journals, table="feelings")).startswith("there is no table 'feelings'")
    assert refused(lambda: read(spark, journals / "one", columns=["a"])).startswith("table 'records' has no column 'a'")
    assert (
        refused(lambda: read(spark, journals / "one", columns=[]))
        == "the request has no column: name at least one column"
    )
    monkeypatch.chdir(journals)
    frame = read(spark, "one", "t*", columns=["kind", "index"], partitions=3)
    assert frame.columns == ["kind", "index"] and frame.count() == 262
    assert frame.rdd.getNumPartitions() == 3
    assert read(spark, journals / "one", table="messages").schema == MESSAGES


# -- found by its name


_FRESH = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local-cluster[1,1,1024]").config("spark.ui.enabled", "false").getOrCreate()
print("rows:", spark.read.format("pygroups").load(sys.argv[1]).count())
"""


@pytest.mark.long
def test_spark_finds_the_source_by_itself_also_on_executors(journals: Path) -> None:
    src = str(Path(sys.modules["pygroups"].__file__ or "").parents[1])
    environment = os.environ | {"PYTHONPATH": src, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", _FRESH, "one"],
        cwd=journals,
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience(240),
        check=False,
    )
    assert "rows: 131" in done.stdout, done.stderr[-2000:]


# -- the guide

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "spark.md").read_text()


@slow
def test_the_examples_of_the_guide_run_and_say_what_it_says(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean("orders").save(tmp_path / "journal")
    clean("older").save(tmp_path / "archive" / "week")
    place = str(tmp_path)  # Spark's workers keep the folder in which Spark was started, so the examples' paths get it
    setting = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(setting)
    names: dict[str, Any] = {"spark": spark}
    try:
        for example in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL):
            if '.option("group"' in example or "async " in example or '"ordered"' in example:
                continue  # they need a group, or archives: test_sink.py and test_source_ordered.py do that
            exec(re.sub(r'"(journal|archive)', f'"{place}/\\1', example), names)
    finally:
        spark.conf.set(setting, before)
    (said,) = re.findall(r"```text\n(.*?)\n```", GUIDE, re.DOTALL)
    assert said in capsys.readouterr().out
    assert names["both"].select("group").distinct().count() == 2
    assert {row["kind"] for row in names["views"].collect()} == {"view"}
    assert names["few"].columns == ["kind", "position"]


def test_the_guide_names_every_table() -> None:
    (listed,) = re.findall(r"\| table \| one row per \|\n\|---\|---\|\n((?:\|.*\n)+)", GUIDE)
    named = [name for line in listed.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert named == list(TABLES)
