"""The rule primary-chain over journals of drawn schedules in which a majority decides: it accuses nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pygroups.journal.writer import MemoryJournal
from pygroups.pipeline.audit import audit
from pygroups.sim.world import world
from tests.majority import drawn
from tests.pipeline.spark_session import spark

__all__ = ["spark"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SCHEDULES = 60  # in every second one all processes take part in the birth of the group


def of_uniform(group: str, name: str, incarnation: str, profile: str) -> MemoryJournal:
    """The journal of a member whose profile promises the chain: no built-in profile does yet."""
    return MemoryJournal(group, name, incarnation, "uniform")


def test_drawn_schedules_break_no_chain(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "MemoryJournal", of_uniform)
    failed = [seed for seed in range(SCHEDULES) if drawn(seed, expected=seed % 2 == 1, journals=tmp_path).witness]
    assert failed == []
    found = [verdict for verdict in audit([tmp_path], master="local[2]").verdicts if verdict.promise == "primary-chain"]
    assert {verdict.group for verdict in found} == {f"seed-{seed}" for seed in range(SCHEDULES)}
    assert {verdict.group: verdict.violations[:2] for verdict in found if verdict.broken} == {}
    judged, skipped = sum(verdict.judged for verdict in found), sum(verdict.skipped for verdict in found)
    assert judged > 10 * SCHEDULES
    assert skipped < judged / 10
