"""Two names under one key: a table of names in which a key stands for two is refused, as its rows mean nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pygroups.pipeline.ingest import Table, ingest
from pygroups.pipeline.recorded import NamesCollide, distinct_names
from tests.pipeline.planted import closed, opened


@pytest.mark.parametrize(("kind", "one"), [("life", "B@420"), ("view", "1:A@410")])
def test_two_names_under_one_key_are_refused_by_both_names(tmp_path: Path, kind: str, one: str) -> None:
    closed(opened("g")).save(tmp_path / "journals")
    ingest([tmp_path / "journals"], tmp_path / "table")
    table = Table(tmp_path / "table")
    assert distinct_names(table).num_rows == 6, "four lives and two views"
    (file,) = table.names_files
    rows = pq.read_table(file)
    forged = [row | {"name": "Z@999"} for row in rows.to_pylist() if (row["kind"], row["name"]) == (kind, one)]
    pq.write_table(type(rows).from_pylist(rows.to_pylist() + forged, rows.schema), file)
    with pytest.raises(NamesCollide, match=f"the names {one} and Z@999 of group g have the same 64-bit key"):
        distinct_names(Table(tmp_path / "table"))


def test_one_name_in_two_groups_has_two_keys(tmp_path: Path) -> None:
    for group in ("g", "h"):
        closed(opened(group)).save(tmp_path / "journals")
    ingest([tmp_path / "journals"], tmp_path / "table")
    assert distinct_names(Table(tmp_path / "table")).num_rows == 12
