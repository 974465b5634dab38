"""The stream: the verdicts, witnesses and counts of the audit, however the journals grow and whenever it is killed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pygroups.pipeline.verdict import AuditResult
from tests.pipeline import streamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_planted_histories_have_the_witnesses_of_the_audit(
    spark: SparkSession, planted_whole: Path, tmp_path: Path, judged_whole: AuditResult
) -> None:
    out = tmp_path / "out"
    streamed.stream_once(spark, planted_whole, out)
    groups = {folder.name for folder in planted_whole.iterdir()}
    audit = {one: number for one, number in streamed.witnesses_of(judged_whole).items() if one[1] in groups}
    assert streamed.witnesses(out) == audit
