"""A second opinion: DuckDB judges the promises over the same tables, in SQL that was written from their statements.

It shares nothing with the audit but the tables.  Every file `<promise>.sql` answers with one row for each fact that it
looked at: the group (`grp`) and an `outcome`, `kept`, `broken` or `skipped`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from pygroups.pipeline.ingest import Table, layout

HERE: Final = Path(__file__).parent
VIRTUAL_SYNCHRONY: Final = ("fifo", "total", "total1999", "uniform", "uniform-fifo")
ORDERED: Final = ("total", "total1999", "uniform")
MERGED: Final = ("fifo", "total", "total1999")
UNIFORM: Final = ("uniform", "uniform-fifo")
GROUPS: Final = (*VIRTUAL_SYNCHRONY, "gossip")  # what has views; a pair that only sends to each other has none
PROFILES: Final = {
    **dict.fromkeys(
        ("self-inclusion", "view-monotonic", "view-agreement", "initial-view", "view-accuracy", "liveness"), GROUPS
    ),
    **dict.fromkeys(("total-order", "gap-free-prefix"), ORDERED),
    **dict.fromkeys(("merge-agreement", "merge-announced"), MERGED),
    **dict.fromkeys(("primary-chain", "uniform-agreement"), UNIFORM),
    "total-order-global": ("uniform",),
    **dict.fromkeys(("gap-announced", "epsilon"), ("gossip",)),
    **dict.fromkeys(
        (
            *("transitional-set", "self-delivery", "multicast-reported", "same-view-delivery", "virtual-synchrony"),
            *("agreement", "stability-safety", "buffers-drain", "state-cut", "confirmed"),
        ),
        VIRTUAL_SYNCHRONY,
    ),
}
"""Which profiles make a promise; what is not named is promised by all."""
PROMISES: Final = sorted(file.stem for file in HERE.glob("*.sql") if file.stem != "tables")


def second_opinion(table: Path) -> dict[tuple[str, str], str]:
    """The verdict on each (promise, group): broken if one fact is; else held if one was judged; else not judged."""
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    connection = prepared(table)
    profiles = dict(connection.sql("SELECT grp, profile FROM profile").fetchall())
    for promise in PROMISES:
        for group, outcome, count in facts(connection, promise):
            found[promise, group][outcome] += count
    return {
        (promise, group): verdict_of(found[promise, group])
        if profile in PROFILES.get(promise, (profile,))
        else "not judged"
        for promise in PROMISES
        for group, profile in profiles.items()
    }


def verdict_of(outcomes: Counter[str]) -> str:
    """What the facts come to."""
    assert outcomes.keys() <= {"kept", "broken", "skipped"}, outcomes
    return "broken" if outcomes["broken"] else "held" if outcomes["kept"] else "not judged"


def facts(connection: duckdb.DuckDBPyConnection, promise: str) -> list[tuple[str, str, int]]:
    """How often a promise came out how in which group."""
    *before, query = statements((HERE / f"{promise}.sql").read_text())
    for statement in before:
        connection.execute(statement)
    return connection.execute(f"SELECT grp, outcome, count(*) FROM ({query}) GROUP BY ALL").fetchall()


def statements(text: str) -> list[str]:
    """The statements of a file; a semicolon at the end of a line ends one."""
    return [one for one in (part.strip() for part in f"{text}\n".split(";\n")) if one]


def prepared(path: Path) -> duckdb.DuckDBPyConnection:
    """A database in memory with the tables of a history and what is derived from them."""
    connection, table = duckdb.connect(), Table(path)
    connection.execute("SET threads TO 1")
    for name, files, schema in (
        ("runs", table.runs_files, layout.RUNS),
        ("events", table.events_files, layout.EVENTS),
        ("votes", table.votes_files, layout.VOTES),
    ):
        if files:
            listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
            partitions = "hive_partitioning = true, hive_types = {'group': VARCHAR, 'day': DATE}"
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}], {partitions})")
        else:
            empty = pa.schema([*schema, ("group", pa.string()), ("day", pa.date32())]).empty_table()
            connection.register(name, empty)
    connection.read_parquet(table.names_files).create_view("names")
    connection.register("manifest", table.manifest())
    for statement in statements((HERE / "tables.sql").read_text()):
        connection.execute(statement)
    return connection
