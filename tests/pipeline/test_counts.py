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
from tests.pipeline.spark_session import spark
from tests.pipeline.stories import gap_over_own, merged

__all__ = ["spark"]
ASKED = ("fifo", "self-delivery")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_gap_is_suspect_only_where_no_merge_explains_it(spark: SparkSession, tmp_path: Path) -> None:
    merged("right").save(tmp_path / "journals")
    merged("untold", forgets="C").save(tmp_path / "journals")
    merged("uniform", profile="uniform").save(tmp_path / "journals")
    gap_over_own("own", "C").save(tmp_path / "journals")
    ingest([tmp_path / "journals"], tmp_path / "table")
    recorded = open_table(spark, Table(tmp_path / "table"), small=True)
    rules = [rule for rule in with_occasion(recorded, RULES) if rule.promise in ASKED]
    tables = prepare(recorded, rules, Store(spark, tmp_path / "store", small=True))
    assert count(tables, rules).suspects() == {"fifo": {"untold", "uniform", "own"}, "self-delivery": {"own"}}
