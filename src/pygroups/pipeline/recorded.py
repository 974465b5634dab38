"""A table of histories, as `ingest` wrote it, opened in Spark."""

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DateType, StringType

from pygroups.pipeline.history import History
from pygroups.pipeline.ingest import Table
from pygroups.pipeline.ingest.layout import EVENTS, NAMES, RUNS, VOTES
from pygroups.pipeline.linked import linked_of
from pygroups.pipeline.tables import Recorded
from pygroups.pipeline.writers import writers_of

_LIVES: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("group", "profile", "host", "address")),
        *((name, pa.int64()) for name in ("life", "end", "linked")),
        ("whole", pa.bool_()),
        ("unknown", pa.list_(pa.string())),
    ]
)


class NamesCollide(ValueError):
    """Two names have one key; the text is one sentence that names both."""


def open_table(session: SparkSession, table: Table, *, small: bool) -> Recorded:
    """The tables of a history. Lives and names come by way of this process: they are few.

    With `small` each table is one partition, so that nothing has to be exchanged. Raises NamesCollide.
    """
    names = distinct_names(table)
    lives = lives_of_manifest(table)

    def gathered(frame: DataFrame) -> DataFrame:
        return frame.coalesce(1) if small else frame

    def local(rows: pa.Table) -> DataFrame:
        return gathered(session.createDataFrame(rows))

    def parquet(folder: str, files: list[str], schema: pa.Schema) -> DataFrame:
        columns = from_arrow_schema(schema).add("group", StringType()).add("day", DateType())
        if not files:
            return session.createDataFrame([], columns)
        frame = session.read.schema(columns).option("basePath", str(table.path / folder)).parquet(*files)
        return gathered(frame)

    history = History(
        runs=parquet("runs", table.runs_files, RUNS),
        events=parquet("events", table.events_files, EVENTS),
        votes=parquet("votes", table.votes_files, VOTES),
        names=local(names),
        writers=local(writers_of(table.manifest())),
    )
    ids = names.filter(pc.equal(names["kind"], "history"))
    return Recorded(
        history=history,
        lives=local(pa.Table.from_pylist(lives, _LIVES)),
        histories=dict(zip(ids["key"].to_pylist(), ids["name"].to_pylist(), strict=True)),
        kinds=frozenset(kind for kinds in table.manifest()["kinds"].to_pylist() for kind in kinds or ()),
        profiles=frozenset(life["profile"] for life in lives),
        whole=all(life["whole"] for life in lives),
        gathered=gathered,
    )


def lives_of_manifest(table: Table) -> list[dict[str, Any]]:
    """One row per life: how far its journal can be trusted, a number for all lives that views link with it (`linked`),
    and which of those have no whole journal (`unknown`, addresses)."""
    lives: dict[int, dict[str, Any]] = {}
    for row in table.manifest().to_pylist():
        life = lives.setdefault(
            row["life"],
            {name: row[name] for name in ("group", "life", "address", "profile", "host")}
            | {"end": 0, "hole": None, "whole": True},
        )
        life["profile"], life["host"] = life["profile"] or row["profile"], life["host"] or row["host"]
        if row["last_index"] is not None:
            life["end"] = max(life["end"], row["last_index"] + 1)
        if row["wrong_index"] is not None:
            life["hole"] = min(row["wrong_index"], row["wrong_index"] if life["hole"] is None else life["hole"])
        life["whole"] = life["whole"] and row["wrong_index"] is None and row["damage"] is None
    lives = {key: life for key, life in lives.items() if life["profile"] is not None}
    for life in lives.values():
        hole = life.pop("hole")
        life["end"] = life["end"] if hole is None else hole
    linked = linked_of(_memberships(table, lives))
    whole = {(life["group"], life["address"]) for life in lives.values() if life["whole"]}
    unknown: dict[int, list[str]] = {}
    for node in linked.keys() - whole:
        unknown.setdefault(linked[node], []).append(node[1])
    for number, life in enumerate(lives.values()):
        life["linked"] = linked.get((life["group"], life["address"]), -1 - number)
        life["unknown"] = sorted(unknown.get(life["linked"], ()))
    return list(lives.values())


def _memberships(table: Table, lives: dict[int, dict[str, Any]]) -> list[tuple[str, str, list[str] | None]]:
    """Of every view that a journal can be trusted for: group, address of the member, and the members it names."""
    if not table.events_files:
        return []
    views = ds.dataset(table.events_files, schema=EVENTS, format="parquet").to_table(
        columns=["life", "index", "members"], filter=pc.field("kind") == "view"
    )
    columns = (views[name].to_pylist() for name in ("life", "index", "members"))
    return [
        (lives[life]["group"], lives[life]["address"], members)
        for life, index, members in zip(*columns, strict=True)
        if life in lives and index < lives[life]["end"]
    ]


def distinct_names(table: Table) -> pa.Table:
    """Each key with its name. Raises NamesCollide if a key has two."""
    if not table.names_files:
        return NAMES.empty_table()
    rows = ds.dataset(table.names_files, schema=NAMES, format="parquet").to_table()
    key = ["group", "kind", "key"]
    found = rows.group_by(key).aggregate(
        [(name, how) for name in ("name", "number", "creator") for how in ("min", "max")]
    )
    for row in found.filter(pc.not_equal(found["name_min"], found["name_max"])).slice(0, 1).to_pylist():
        raise NamesCollide(
            f"the names {row['name_min']} and {row['name_max']} of group {row['group']} have one key: rename one of "
            "them, or audit their journals apart"
        )
    names = found.select([*key, "name_min", "number_min", "creator_min"])
    return names.rename_columns(NAMES.names)
