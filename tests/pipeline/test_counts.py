"""For which rules a history is suspect: an exact step runs where something may be wrong, and not because of a kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline import recorded
from pygroups.pipeline.audit import with_occasion
from pygroups.pipeline.ingest import Table, ingest
from pygroups.pipeline.prepare import prepare
from pygroups.pipeline.promises import RULES
from pygroups.pipeline.recorded import open_table
from pygroups.pipeline.store import Store
from pygroups.pipeline.verdicts import count
from tests.pipeline.catalog import all_planted
from tests.pipeline.merges import merged
from tests.pipeline.planted import Planted
from tests.pipeline.spark_session import spark
from tests.pipeline.stories import gap_over_own, given_state, left_with_half, left_without_report

__all__ = ["spark"]


def suspects(spark: SparkSession, folder: Path, *asked: str) -> dict[str, set[str]]:
    """The groups that these rules suspect, of the journals in `folder`."""
    ingest([folder / "journals"], folder / "table")
    history = open_table(spark, Table(folder / "table"), small=True)
    rules = [rule for rule in with_occasion(history, RULES) if rule.promise in asked]
    tables = prepare(history, rules, Store(spark, folder / "store", small=True))
    return count(tables, rules).suspects()


@pytest.mark.slow
def test_a_gap_is_suspect_only_where_no_merge_explains_it(spark: SparkSession, tmp_path: Path) -> None:
    merged("right").save(tmp_path / "journals")
    merged("untold", forgets="C").save(tmp_path / "journals")
    merged("uniform", profile="uniform").save(tmp_path / "journals")
    gap_over_own("own", "C").save(tmp_path / "journals")
    found = suspects(spark, tmp_path, "fifo", "self-delivery")
    assert found == {"fifo": {"untold", "uniform", "own"}, "self-delivery": {"own"}}


@pytest.mark.slow
def test_a_sender_that_leaves_is_suspect_only_if_a_run_is_neither_delivered_nor_listed(
    spark: SparkSession, tmp_path: Path
) -> None:
    left_without_report("listed", listed=True).save(tmp_path / "journals")
    left_without_report("unlisted", listed=False).save(tmp_path / "journals")
    left_with_half("half", "C").save(tmp_path / "journals")
    assert suspects(spark, tmp_path, "multicast-reported") == {"multicast-reported": {"unlisted", "half"}}


@pytest.mark.parametrize(
    "planted", [one for one in all_planted() if "confirmed" in one.breaks], ids=lambda one: one.group
)
def test_each_planted_loss_with_a_state_has_a_later_state(planted: Planted, tmp_path: Path) -> None:
    """Without one `confirmed` is not planned."""
    planted.make(planted.group).save(tmp_path / "journals")
    assert has_later_state(tmp_path)


def test_a_joiner_with_a_state_is_no_occasion_for_a_later_state(tmp_path: Path) -> None:
    given_state("good", "right").save(tmp_path / "journals")
    assert not has_later_state(tmp_path)


def has_later_state(folder: Path) -> bool:
    ingest([folder / "journals"], folder / "table")
    table = Table(folder / "table")
    return any(life["later_state"] for life in recorded.lives_of(table.manifest().to_pylist(), recorded._told(table)))
