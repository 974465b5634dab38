"""The audit of a profile that is one entry, and of a layer that no rule knows: journals say what it gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.audit import audit
from pygroups.sim.batches.simulations import play, schedule_of
from tests.sim.test_made_up_profile import NAME, entry

__all__ = ["entry"]


@pytest.mark.slow
def test_its_journals_are_audited(spark: SparkSession, tmp_path: Path) -> None:
    outcome = play(schedule_of(1, profile=NAME, members=3, faults=("crash",)), journals=tmp_path)
    assert outcome.witness is None
    verdicts = {verdict.promise: verdict.verdict for verdict in audit([tmp_path], master="local[2]").verdicts}
    assert {verdicts[promise] for promise in ("total-order", "virtual-synchrony", "fifo", "integrity")} == {"held"}
    assert verdicts["primary-chain"] == "not judged"
    assert "broken" not in verdicts.values()
