"""Runs that digests clear are runs without a suspect: on parts made by hand, and on histories with planted faults."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import DataFrame, SparkSession

from pygroups.pipeline.block_scan import BLOCK
from pygroups.pipeline.findings import Count
from pygroups.pipeline.ingest import Table, ingest
from pygroups.pipeline.prepare import prepare, trusted
from pygroups.pipeline.promises import RULES
from pygroups.pipeline.recorded import open_table
from pygroups.pipeline.runs import RUN, runs_of, sample_of
from pygroups.pipeline.store import Store
from pygroups.pipeline.stretches import doubtful, within
from tests.pipeline.scanned import NO_OWN_LAST, NONE_OPEN
from tests.pipeline.spark_session import spark

__all__ = ["spark"]
pytestmark = pytest.mark.slow

COUNTS: Final[list[Count]] = [one for rule in RULES for one in rule.counts if one.table == "runs"]
NEEDED: Final = " or ".join(f"coalesce({one.suspect}, false)" for one in COUNTS) + " or not origin_whole"
_SAMPLE = (
    "kind int, life bigint, history bigint, sender bigint, first bigint, count int, bytes bigint, checksum bigint,"
    " peer bigint, in_view bigint, part bigint"
)
_LIVES = "life bigint, `group` string, profile string, whole boolean"

# "s" is a send, "d" and "e" are deliveries of two parts; then [first, end), a body, and a view if it is not 7.
CLEAR = {
    "delivered": "s1-3 s3-4 d1-3 d3-4",
    "in another order": "s1-3 s3-4 d3-4 d1-3",
    "two members": "s1-3 s3-4 d1-3 d3-4 e3-4 e1-3",
    "each in a view": "s1-3 s3-4 d1-3 d3-4@8 e1-3 e3-4@8",
    "over two stretches": f"s1-{BLOCK} s{BLOCK}-{BLOCK + 9} d1-{BLOCK} d{BLOCK}-{BLOCK + 9}",
    "a hole between two stretches": f"s1-3 s{BLOCK}-{BLOCK + 9} d1-3 d{BLOCK}-{BLOCK + 9}",
    "not delivered": "s1-3 s3-4",
    "no journal": "d1-3 d3-4 e1-3 e3-4",
}
DOUBTFUL = {
    "another body": "s1-3 s3-4 d1-3 d3-4!",
    "another body at one": "s1-3 d1-3 e1-3!",
    "another length": "s1-3 s3-4 d1-4",
    "never sent": "s1-3 d1-3 d3-4",
    "nothing sent": "d1-3",
    "two views at two": "s1-3 s3-4 d1-3 d3-4 e1-3 e3-4@8",
    "two bodies each": "s1-3 s1-3! d1-3 d1-3!",
    "two views three times": "s1-3 s1-3 s1-3 d1-3 d1-3 d1-3@8",
    "two views and a hole": "s1-2 s1-2 s3-4 d1-2 d1-2@8 d3-4",
    "two views without a length": "s1-1 s1-1 s1-2 d1-1 d1-1@8 d1-2",
    "two bodies and no journal": "d1-3 d1-3!",
    "another body at the end of a stretch": f"s1-3 s3-{BLOCK} s{BLOCK}-{BLOCK + 9} d1-3 d3-{BLOCK}! "
    f"d{BLOCK}-{BLOCK + 9}",
    "another body in the second stretch": f"s1-{BLOCK} s{BLOCK}-{BLOCK + 9} d1-{BLOCK} d{BLOCK}-{BLOCK + 9}!",
    "two views behind a hole": f"s1-3 s{BLOCK}-{BLOCK + 9} d1-3 e1-3 d{BLOCK}-{BLOCK + 9} e{BLOCK}-{BLOCK + 9}@8",
    "a sender that ends early": "s1-3 d1-3",
}
CLEAR_STRETCHES = {
    "another body at the end of a stretch": BLOCK,
    "another body in the second stretch": 1,
    "two views behind a hole": 1,
}
"""The first run of the clear stretch beside a doubtful one."""


def _row(sender: int, word: str) -> tuple[int | None, ...]:
    run, _, view = word.partition("@")
    first, end = map(int, run[1:].rstrip("!").split("-"))
    sent, count, body = run[0] == "s", end - first, -first if run.endswith("!") else first
    life = sender if sent else sender + "de".index(run[0]) + 1
    place = None if sent else int(view or 7)
    return int(not sent), life, None, sender, first, count, count, body, 0, place, life if run[0] == "e" else 0


def test_a_stretch_is_clear_if_no_run_of_it_is_suspect(spark: SparkSession) -> None:
    lines = CLEAR | DOUBTFUL
    keys = {name: 1000 * at << 32 for at, name in enumerate(lines, 1)}
    rows = [_row(keys[name], word) for name, line in lines.items() for word in line.split()]
    known = [(key, "g", "total", "early" not in name) for name, key in keys.items() if "no journal" not in name]
    sample = spark.createDataFrame(rows, _SAMPLE).coalesce(1)
    lives = spark.createDataFrame(known, _LIVES).selectExpr("*", NONE_OPEN, NO_OWN_LAST).coalesce(1)
    few = _firsts(runs_of(within(sample, doubtful(sample, lives)), lives))
    suspects = _firsts(runs_of(sample, lives).where(NEEDED))
    names = {key: name for name, key in keys.items()}
    assert {names[sender] for sender, _ in few} == set(DOUBTFUL)
    assert {names[sender] for sender, _ in suspects} == set(DOUBTFUL), "the cases are those that the rules ask for"
    assert suspects <= few
    clear = {(keys[name], first) for name, first in CLEAR_STRETCHES.items()}
    assert not clear & few, "the other stretch of the same sender is clear"


def _firsts(runs: DataFrame) -> set[tuple[int, int]]:
    return {(row["sender"], row["first"]) for row in runs.select("sender", "first").collect()}


@pytest.mark.parametrize("holes", [pytest.param(False, marks=pytest.mark.long), True])
def test_no_suspect_of_a_history_with_faults_is_cleared(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path: Path, holes: bool
) -> None:
    if holes:
        ingest([request.getfixturevalue("planted_with_holes")], tmp_path / "table")
    folder = tmp_path / "table" if holes else request.getfixturevalue("whole_table")
    recorded = open_table(spark, Table(folder), small=True)
    store = Store(spark, tmp_path / "kept", small=True)
    tables = prepare(recorded, RULES, store)
    said = recorded.gathered(trusted(recorded.history.runs, tables.lives)).where("kind <= 3")
    sample = sample_of(said, tables.blocks, tables.lives, whole=recorded.whole)
    everything = store.keep("all", tables.all_runs)
    few = store.keep("few", runs_of(within(sample, doubtful(sample, tables.lives)), tables.lives))
    needed = everything.where(NEEDED)
    assert needed.count() > 0
    assert needed.join(few, list(RUN), "left_anti").count() == 0
    assert few.exceptAll(everything).count() == 0
    assert few.count() < everything.count()
