"""Records for tests of measures: a few rows, with only the columns that matter, as a table of the journal's schema."""

from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame, SparkSession

from pygroups.pipeline.schemas import RECORDS

Row = dict[str, object]
MS = 1_000
SECOND = 1_000_000
WALL = 1_700_000_000 * SECOND  # the wall clock when the monotonic clocks of these tests stand at 0


class Diary:
    """What one member writes: `diary("send", 10 * MS, first=1)` adds a record at 10 ms."""

    def __init__(self, name: str, incarnation: str | None = None, *, host: str = "h1", group: str = "g") -> None:
        self.name = name
        self.incarnation = incarnation or f"{name.lower()}1"
        self.wall_ahead_us = 0
        self.rows: list[Row] = []
        self._common: Row = {"group": group, "member": name, "incarnation": self.incarnation, "host": host}
        self._view: tuple[int, str] | None = None

    @property
    def address(self) -> str:
        return f"{self.name}@{self.incarnation}"

    def __call__(self, kind: str, at_us: int, **fields: object) -> None:
        row: Row = {**self._common, "profile": "total", "kind": kind, "index": len(self.rows)}
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


def table(spark: SparkSession, *diaries: Diary) -> DataFrame:
    rows = [tuple(row.get(name) for name in RECORDS.names) for diary in diaries for row in diary.rows]
    return spark.createDataFrame(rows, RECORDS)


def rows_of(frame: DataFrame, *columns: str) -> list[tuple[object, ...]]:
    """All rows as tuples of these columns, sorted; None sorts first."""
    found: Iterator[tuple[object, ...]] = (tuple(row[name] for name in columns) for row in frame.collect())
    return sorted(found, key=lambda row: [(value is not None, value) for value in row])
