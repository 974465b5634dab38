"""The audit over journals of drawn schedules in which a majority decides: it accuses nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pygroups.journal.writer import MemoryJournal
from pygroups.pipeline.audit import audit
from pygroups.sim.world import world
from tests.majority import drawn
from tests.pipeline.spark_session import spark

__all__ = ["spark"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SEEDS = {"total": range(20), "fifo": range(100, 120)}
KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"expected": True},  # all processes take part in the birth of the group
    {"folders": 0.7},  # a process that starts again answers for its former life, if the folder of its journal is kept
    {"expected": True, "folders": 0.7},
)
JUDGED = {"primary-chain", "liveness", "virtual-synchrony", "total-order", "state-cut", "stability-safety"}
WITHOUT_UNIFORM = {"uniform-agreement", "total-order-global"}  # the layer UNIFORM is not built


def of_uniform(group: str, name: str, incarnation: str, profile: str) -> MemoryJournal:
    """The journal of a member whose profile promises the chain: no built-in profile does yet."""
    return MemoryJournal(group, name, incarnation, {"total": "uniform", "fifo": "uniform-fifo"}[profile])


def test_drawn_schedules_break_no_promise(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "MemoryJournal", of_uniform)
    schedules = [(profile, seed) for profile, seeds in SEEDS.items() for seed in seeds]
    failed = [one for one in schedules if drawn(one[1], one[0], journals=tmp_path, **KINDS[one[1] % 4]).witness]
    assert failed == []
    found = [one for one in audit([tmp_path], master="local[2]").verdicts if one.promise not in WITHOUT_UNIFORM]
    broken = {(one.promise, one.group): one.violations[:2] for one in found if one.broken}
    assert broken == {}
    chain = [verdict for verdict in found if verdict.promise == "primary-chain"]
    assert {verdict.group for verdict in chain} == {f"seed-{seed}" for _, seed in schedules}
    judged, skipped = sum(verdict.judged for verdict in chain), sum(verdict.skipped for verdict in chain)
    assert judged > 10 * len(schedules)
    assert skipped < judged / 10
    assert {one.promise for one in found if one.judged} >= JUDGED
