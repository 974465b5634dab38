"""Writes rows to the Parquet files of one commit, by table, group and day."""

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pygroups.pipeline.ingest.layout import ROWS

ROW_GROUP: Final = 1 << 18
"""Rows that are written together; minima and maxima of each column stand with them."""
_DAY_US: Final = 86_400_000_000
_FIRST_DAY: Final = (date(1, 1, 1) - date(1970, 1, 1)).days
_LAST_DAY: Final = (date(9999, 12, 31) - date(1970, 1, 1)).days
NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED: Final = frozenset([*map(chr, range(1, 32)), *"\"#%'*/:=?\\\x7f{[]^"])
_DICTIONARIES: Final = ("life", "view", "history", "sender", "stream", "peer", "kind", "view_creator")
_RISING: Final = ("index", "time_us", "mono_us", "first", "seq", "position", "order", "expected")
"""Columns whose values are near those of the row before: as differences they take half the bytes and no more time."""


def escaped(value: str) -> str:
    """A partition's value as Spark writes it into the name of a folder."""
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in value) or NO_VALUE


@dataclass
class _Open:
    name: str
    writer: pq.ParquetWriter
    parts: list[pa.Table]
    rows: int = 0


class Sink:
    """The data files `<commit>-<number>.parquet` of one worker, one for each table, group and day."""

    def __init__(self, out: Path, commit: str, number: int) -> None:
        self._out = out
        self._file = f"{commit}-{number}.parquet"
        self._open: dict[tuple[str, int | None], _Open] = {}
        self._group: str | None = None

    def add(self, group: str, tables: dict[str, pa.Table]) -> set[str]:
        """Append rows; returns the names of the files, below the table, that hold them. One group after the other."""
        if group != self._group:
            self.close()
            self._group = group
        names = set()
        for table, rows in tables.items():
            for day, part in _by_day(rows):
                names.add(self._append(table, day, part))
        return names

    def _append(self, table: str, day: int | None, rows: pa.Table) -> str:
        file = self._open.get((table, day))
        if file is None:
            file = self._open[table, day] = self._begin(table, day)
        file.parts.append(rows)
        file.rows += rows.num_rows
        if file.rows >= ROW_GROUP:
            _flush(file)
        return file.name

    def _begin(self, table: str, day: int | None) -> _Open:
        assert self._group is not None  # add() sets it
        text = NO_VALUE if day is None else (date(1970, 1, 1) + timedelta(day)).isoformat()
        name = f"{table}/group={escaped(self._group)}/day={text}/{self._file}"
        path = self._out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return _Open(name, writer_of(path, ROWS[table]), [])

    def close(self) -> None:
        """Write the buffered rows, and end all files. Afterwards rows of another group can be added."""
        for file in self._open.values():
            _flush(file)
            file.writer.close()
        self._open.clear()


def writer_of(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of rows with keys: each page has a checksum, and columns that rise are written as differences."""
    return pq.ParquetWriter(
        path,
        schema,
        compression="snappy",
        write_page_checksum=True,
        use_dictionary=[column for column in _DICTIONARIES if column in schema.names],
        column_encoding={column: "DELTA_BINARY_PACKED" for column in _RISING if column in schema.names},
    )


def _flush(file: _Open) -> None:
    if file.parts:
        file.writer.write_table(pa.concat_tables(file.parts), row_group_size=ROW_GROUP)
    file.parts, file.rows = [], 0


def _by_day(rows: pa.Table) -> list[tuple[int | None, pa.Table]]:
    """The rows by the UTC day of their wall clock, counted from 1970; None for a time that no calendar has."""
    times = rows["time_us"]
    days = np.floor_divide(times.fill_null(-(1 << 63)).to_numpy(), _DAY_US)
    low, high = int(days.min()), int(days.max())
    if low == high:
        return [(_day(low), rows)]
    parts: dict[int | None, list[int]] = {}
    for day in np.unique(days).tolist():
        parts.setdefault(_day(day), []).append(day)
    return [(day, rows.filter(pa.array(np.isin(days, same)))) for day, same in parts.items()]


def _day(day: int) -> int | None:
    return day if _FIRST_DAY <= day <= _LAST_DAY else None
