"""The tables that are drawn for measuring are those that ingest makes of the journals of the same history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from bench.histories import Shape
from bench.written import write_journals, write_tables
from pygroups.pipeline.ingest import ingest

TIMES = ("time_us", "mono_us")  # a journal has one time for each frame


def rows_of(folder: Path) -> list[dict[str, Any]]:
    rows = ds.dataset(folder, partitioning="hive").to_table().drop_columns(TIMES).to_pylist()
    for row in rows:
        for name in ("digest", "gauges"):
            row[name] = sorted(row.get(name) or [])
    return sorted(rows, key=lambda row: (row["group"], row["life"], row["index"]))


@pytest.mark.parametrize("skip", [False, True])
def test_a_drawn_table_is_what_ingest_makes_of_the_same_history(tmp_path: Path, skip: bool) -> None:
    shape = Shape(records=40_000, groups=2, views=7, skip=skip)
    drawn = write_tables(shape, tmp_path / "drawn")
    assert drawn == write_journals(shape, tmp_path / "journals")
    ingest([tmp_path / "journals"], tmp_path / "ingested")
    for table in ("runs", "events", "votes"):
        assert rows_of(tmp_path / "drawn" / table) == rows_of(tmp_path / "ingested" / table)
    names = [
        {tuple(row.values()) for row in ds.dataset(tmp_path / which / "names").to_table().to_pylist()}
        for which in ("drawn", "ingested")
    ]
    assert names[0] == names[1]
