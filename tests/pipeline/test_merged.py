"""The files of many small groups as one: each row is there with the group and the day of its folder."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pygroups.pipeline import merged
from pygroups.pipeline.ingest import NotATable, Table, ingest, layout
from tests.pipeline.planted import clean

GROUPS = ("good", "b=1 100% [x]", "größer")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    for group in GROUPS:
        clean(group).save(tmp_path / "journals")
    ingest([tmp_path / "journals"], tmp_path / "t")
    return Table(tmp_path / "t")


def test_each_row_has_the_group_and_the_day_of_its_folder(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for row_group in (merged.ROW_GROUP, 20):
        monkeypatch.setattr(merged, "ROW_GROUP", row_group)
        for folder, files in (("runs", table.runs_files), ("events", table.events_files), ("votes", table.votes_files)):
            schema = layout.ROWS[folder]
            merged.merge(files, schema, tmp_path / "m" / "one.parquet")
            whole = pq.read_table(tmp_path / "m" / "one.parquet")
            parts = pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])
            assert whole.select(schema.names).equals(parts.select(schema.names))
            assert set(whole["group"].to_pylist()) == set(GROUPS)
            assert set(whole["day"].to_pylist()) == {date(2023, 11, 14)}


def test_a_time_that_no_calendar_has_is_no_day() -> None:
    assert merged._value("day=__HIVE_DEFAULT_PARTITION__") is None


def test_a_damaged_file_is_named(table: Table, tmp_path: Path) -> None:
    file = Path(table.runs_files[1])
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(NotATable, match=f"{file.name} is damaged"):
        merged.merge(table.runs_files, layout.RUNS, tmp_path / "one.parquet")
