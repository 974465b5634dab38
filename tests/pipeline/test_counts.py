"""For which rules a history is suspect: an exact step runs where something may be wrong, and not because of a kind."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.audit import with_occasion
from pygroups.pipeline.ingest import Table, ingest
from pygroups.pipeline.prepare import prepare
from pygroups.pipeline.promises import RULES
from pygroups.pipeline.recorded import open_table
from pygroups.pipeline.store import Store
from pygroups.pipeline.verdicts import count
from tests.pipeline.merges import merged
from tests.pipeline.spark_session import spark
from tests.pipeline.stories import gap_over_own, left_with_half, left_without_report

__all__ = ["spark"]


def suspects(spark: SparkSession, folder: Path, *asked: str) -> dict[str, set[str]]:
    """The groups that these rules suspect, of the journals in `folder`."""
    ingest([folder / "journals"], folder / "table")
    recorded = open_table(spark, Table(folder / "table"), small=True)
    rules = [rule for rule in with_occasion(recorded, RULES) if rule.promise in asked]
    tables = prepare(recorded, rules, Store(spark, folder / "store", small=True))
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
