"""The files of a small table as one: in each scan Spark spends milliseconds on a file, and hardly any on its rows."""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from pygroups.pipeline.ingest.sink import NO_VALUE, ROW_GROUP
from pygroups.pipeline.ingest.table import read_batches

MANY_FILES: Final = 32
"""From this number on files are merged: a group has at least three."""


def merge(files: Sequence[str], schema: pa.Schema, into: Path) -> None:
    """Write the rows of `files` into one file, with the columns `group` and `day` that stand in the names of folders.

    Raises NotATable for a damaged file, OSError for one that cannot be read or written.
    """
    whole = schema.append(pa.field("group", pa.string())).append(pa.field("day", pa.date32()))
    into.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(into, whole, compression="snappy") as writer:
        held: list[pa.Table] = []
        for file in files:
            held += _rows_of(file, whole)
            if sum(part.num_rows for part in held) >= ROW_GROUP:
                writer.write_table(pa.concat_tables(held))
                held.clear()
        if held:
            writer.write_table(pa.concat_tables(held))


def _rows_of(file: str, schema: pa.Schema) -> Iterator[pa.Table]:
    group, day = (_value(part) for part in Path(file).parts[-3:-1])
    values = {"group": group, "day": None if day is None else date.fromisoformat(day)}
    for batch in read_batches(file, schema.names[: -len(values)]):
        places = [pa.repeat(pa.scalar(value, schema.field(name).type), len(batch)) for name, value in values.items()]
        yield pa.Table.from_arrays([*batch.columns, *places], schema=schema)


def _value(folder: str) -> str | None:
    """The value of a partition, from the name of its folder."""
    value = unquote(folder.partition("=")[2])
    return None if value == NO_VALUE else value
