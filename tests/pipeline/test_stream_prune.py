"""The table of a stream: what stays when views have closed, without Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from pygroups.pipeline.ingest import Table, ingest
from pygroups.pipeline.stream.known import Known, known_in
from pygroups.pipeline.stream.prune import delivered_in, kept_of, prune
from tests.pipeline.histories import History


def story(root: Path) -> History:
    """Three views; D joins in the second, C crashes before the third; A has sent a run that nobody has delivered."""
    history = History("g", "total", "ABC")
    history.view("ABC")
    history.multicast("ABC", count=10)
    history.start("D")
    history.view("ABCD")
    history.multicast("ABCD", count=10)
    history.crash("C")
    history.view("ABD")
    history.multicast("ABD", count=10)
    history.send("A")
    history.save(root)
    return history


def numbers_of(known: Known) -> dict[str, list[int]]:
    return {
        life["address"]: [known.views[view].number for view in known.views_of(key)] for key, life in known.lives.items()
    }


def test_a_closed_view_stays_until_the_views_behind_it_are_closed(tmp_path: Path) -> None:
    story(tmp_path / "journal")
    ingest([tmp_path / "journal"], tmp_path / "table")
    table = Table(tmp_path / "table")
    known = known_in(table)
    closed = known.closed(lambda life: False)
    assert sorted(known.views[view].number for view in closed) == [1, 2], "the third is open"
    kept = kept_of(known, closed)
    assert sorted(known.views[view].number for view in kept.views) == [2, 3]
    marks: dict[int, int] = {}
    prune(table, known, kept, tmp_path / "pruned", marks)
    left = Table(tmp_path / "pruned")
    left.check()
    again = known_in(left)
    assert numbers_of(again) == {
        "A@410": [1, 2, 3],
        "B@420": [1, 2, 3],
        "C@430": [1, 2],
        "D@440": [2, 3],
    }, "the view before stays as an event, so that ids of views can be compared"
    kinds = Counter(
        (row["kind"], row["view"] in kept.views) for file in left.runs_files for row in pq.read_table(file).to_pylist()
    )
    assert kinds == {(0, True): 4 + 3 + 1, (1, True): 16 + 9}
    delivered = delivered_in(tmp_path / "pruned").to_pylist()
    assert {(row["first"], row["count"]) for row in delivered} == {(1, 10)} and len(delivered) == 9
    assert set(marks.values()) == {10}


def test_a_pruned_table_takes_the_journals_where_the_whole_one_stopped(tmp_path: Path) -> None:
    history = story(tmp_path / "journal")
    ingest([tmp_path / "journal"], tmp_path / "table")
    known = known_in(Table(tmp_path / "table"))
    prune(Table(tmp_path / "table"), known, kept_of(known, known.closed(lambda life: False)), tmp_path / "pruned", {})
    history.multicast("BD", count=5)
    history.settle()
    longer = tmp_path / "longer"
    history.save(longer)
    for file in (longer / "g").rglob("*.journal"):
        (tmp_path / "journal" / file.relative_to(longer)).write_bytes(file.read_bytes())
    done = ingest([tmp_path / "journal"], tmp_path / "pruned")
    assert done.rows == 2 + 6 + 9, "two sends, six deliveries, three marks at three members"
    runs = [row for file in Table(tmp_path / "pruned").runs_files for row in pq.read_table(file).to_pylist()]
    assert all(row["first"] == row["expected"] for row in runs if row["kind"] == 1)
    found = known_in(Table(tmp_path / "pruned"))
    assert found.closed(lambda life: False) == set(found.views), "all have reached quiet or crashed"
    assert kept_of(found, set(found.views)).views == frozenset()
