"""Records for tests of measures: a few rows, with only the columns that matter, as the tables of a history."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pygroups.pipeline.history import History
from pygroups.pipeline.ingest.keys import history_key, life_key, view_key
from pygroups.pipeline.ingest.layout import EVENTS, MANIFEST, NAMES, RUN_KINDS, RUNS, VOTE_KINDS, VOTES
from pygroups.pipeline.schemas import RECORDS
from pygroups.pipeline.writers import writers_of

Row = dict[str, object]
MS = 1_000
SECOND = 1_000_000
WALL = 1_700_000_000 * SECOND  # the wall clock when the monotonic clocks of these tests stand at 0


class Diary:
    """What one member writes: `diary("send", 10 * MS, first=1)` adds a record at 10 ms."""

    def __init__(self, name: str, incarnation: str | None = None, *, host: str = "h1", group: str = "g") -> None:
        self.name = name
        self.incarnation = incarnation or f"{name.lower()}1"
        self.group = group
        self.host = host
        self.wall_ahead_us = 0
        self.rows: list[Row] = []
        self._view: tuple[int, str] | None = None

    @property
    def address(self) -> str:
        return f"{self.name}@{self.incarnation}"

    def __call__(self, kind: str, at_us: int, **fields: object) -> None:
        row: Row = {"kind": kind, "index": len(self.rows)}
        row |= {"time_us": WALL + at_us + self.wall_ahead_us, "mono_us": at_us}
        if self._view:
            row |= {"view_number": self._view[0], "view_creator": self._view[1]}
        self.rows.append({**row, **fields})

    def view(self, at_us: int, number: int, members: "Iterable[Diary]", **fields: object) -> None:
        addresses = [member.address for member in members]
        self._view = (number, addresses[0])
        row: Row = {"view_number": number, "view_creator": addresses[0], "members": addresses, "primary": True}
        self("view", at_us, **{**row, **fields})

    def send(self, at_us: int, first: int, count: int = 1, size: int = 100, **fields: object) -> None:
        row: Row = {"origin": self.name, "origin_incarnation": self.incarnation, "first": first, "count": count}
        kind = "unicast_send" if "peer" in fields else "send"
        self(kind, at_us, **{**row, "bytes": size, **fields})

    def deliver(
        self, at_us: int, origin: "Diary", first: int, count: int = 1, size: int = 100, **fields: object
    ) -> None:
        row: Row = {"origin": origin.name, "origin_incarnation": origin.incarnation, "first": first, "count": count}
        kind = "unicast_deliver" if "peer" in fields else "deliver"
        self(kind, at_us, **{**row, "bytes": size, **fields})


class _Tables:
    """Rows of diaries on their way into tables; a name that is used becomes a key and is noted."""

    def __init__(self, diaries: Sequence[Diary]) -> None:
        self.rows: dict[str, list[Row]] = {"runs": [], "events": [], "votes": [], "manifest": []}
        self.names: dict[tuple[object, ...], None] = {}
        for diary in diaries:
            for row in diary.rows:
                self._take(diary, row)
            if diary.rows:
                self.rows["manifest"].append(self._range_of(diary))

    def _take(self, diary: Diary, row: Row) -> None:
        assert row.keys() <= set(RECORDS.names), "a field that no journal has"
        kind, group = row["kind"], diary.group
        where = "runs" if kind in RUN_KINDS else "votes" if kind in VOTE_KINDS else "events"
        keys: Row = {"life": self._life(group, diary.address), "group": group}
        if "view_number" in row:
            number, creator = int(str(row["view_number"])), str(row["view_creator"])
            keys["view"] = view_key(group, number, creator)
            self.names[group, "view", keys["view"], f"{number}:{creator}", number, creator] = None
        if "history" in row:
            keys["history"] = history_key(str(row["history"]))
        if "origin" in row:
            keys["sender"] = self._life(group, f"{row['origin']}@{row['origin_incarnation']}")
        if where == "runs":
            keys |= {name: self._life(group, str(row[name])) for name in ("peer", "stream") if name in row}
            keys["kind"] = RUN_KINDS[str(kind)]
        self.rows[where].append({**row, **keys})

    def _life(self, group: str, address: str) -> int:
        key = life_key(group, address)
        self.names[group, "life", key, address, None, None] = None
        return key

    def _range_of(self, diary: Diary) -> Row:
        times = {name: [int(str(row[name])) for row in diary.rows] for name in ("time_us", "mono_us")}
        return {
            **{name: getattr(diary, name) for name in ("group", "incarnation", "host", "address")},
            "member": diary.name,
            "profile": "total",
            "life": self._life(diary.group, diary.address),
            "first_us": min(times["time_us"]),
            "last_us": max(times["time_us"]),
            "last_mono_us": max(times["mono_us"]),
            "rows": len(diary.rows),
            "kinds": sorted({str(row["kind"]) for row in diary.rows}),
        }


def table(spark: SparkSession, *diaries: Diary) -> History:
    """The tables that ingest makes of such journals, with what the measures read filled in."""
    told = _Tables(diaries)
    names: list[Row] = [dict(zip(NAMES.names, name, strict=True)) for name in told.names]
    group = pa.field("group", pa.string())

    def frame(schema: pa.Schema, rows: list[Row]) -> DataFrame:
        return spark.createDataFrame(pa.Table.from_pylist(rows, schema))

    return History(
        runs=frame(RUNS.append(group), told.rows["runs"]),
        events=frame(EVENTS.append(group), told.rows["events"]),
        votes=frame(VOTES.append(group), told.rows["votes"]),
        names=frame(NAMES, names),
        writers=spark.createDataFrame(writers_of(pa.Table.from_pylist(told.rows["manifest"], MANIFEST))),
    )


def rows_of(frame: DataFrame, *columns: str) -> list[tuple[object, ...]]:
    """All rows as tuples of these columns, sorted; None sorts first."""
    found: Iterator[tuple[object, ...]] = (tuple(row[name] for name in columns) for row in frame.collect())
    return sorted(found, key=lambda row: [(value is not None, value) for value in row])
