"""What Spark is given to do: a clean history's audit stays within a budget, no Python runs in it, nothing is hinted.

The figures are those of Spark's event log: SQL executions, stages that ran, and the JSON of the largest plan.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.audit import audit
from tests.pipeline.planted import clean

SOURCE: Final = Path(__file__).parents[2] / "src" / "pygroups" / "pipeline"
EXECUTIONS, STAGES, PLAN_BYTES = 12, 60, 150_000
_PYTHON: Final = re.compile(r"Python|Pandas|InArrow|ArrowEval|BatchScan")
_TO_THE_DRIVER: Final = re.compile(r"\.(collect|toArrow|toPandas|toLocalIterator|take|head|first)\(\)")


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The events of one audit in the session that tests share, in the form of Spark's event log."""
    root = tmp_path_factory.mktemp("audit")
    (root / "log").mkdir()
    clean("good").save(root / "journals")
    with _logged(spark, root / "log"):
        result = audit([root / "journals"], master="local[2]")
    assert not result.broken and not result.doubtful
    (log,) = (root / "log").iterdir()
    return [json.loads(line) for line in log.read_text().splitlines()]


@contextmanager
def _logged(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Spark's own listener writes the events of the block below `folder`."""
    jvm, context = spark._jvm, spark._jsc.sc()
    settings = context.conf().clone()
    for name, value in {"compress": "false", "rolling.enabled": "false"}.items():
        settings.set(f"spark.eventLog.{name}", value)
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "audit", jvm.scala.Option.empty(), jvm.java.net.URI(f"file:{folder}"), settings, context.hadoopConfiguration()
    )
    listener.start()
    context.addSparkListener(listener)
    try:
        yield
        context.listenerBus().waitUntilEmpty()
    finally:
        context.removeSparkListener(listener)
        listener.stop()


@pytest.mark.slow
def test_the_audit_of_a_clean_history_stays_within_its_budget(events: list[dict[str, Any]]) -> None:
    starts = [event for event in events if event["Event"].endswith("SQLExecutionStart")]
    stages = [event for event in events if event["Event"] == "SparkListenerStageCompleted"]
    plans = [json.dumps(event["sparkPlanInfo"], separators=(",", ":")) for event in starts]
    assert 0 < len(starts) <= EXECUTIONS
    assert 0 < len(stages) <= STAGES
    assert 0 < max(map(len, plans)) <= PLAN_BYTES, "the one query that counts for all rules"


@pytest.mark.slow
def test_no_python_runs_in_the_audit_of_a_clean_history(events: list[dict[str, Any]]) -> None:
    plans = [event["physicalPlanDescription"] for event in events if "physicalPlanDescription" in event]
    assert plans and not [plan for plan in plans if _PYTHON.search(plan)]


def test_no_join_is_hinted() -> None:
    """A hint overrides what Spark knows of sizes: one on a table that grows with a history ends in the driver."""
    assert _found(re.compile(r"broadcast\(|\.hint\(")) == set()


def test_rows_come_to_this_process_for_verdicts_and_report_alone() -> None:
    found = _found(_TO_THE_DRIVER) - {"promises/epsilon.py", "sweep.py"}  # a few sums; a sweep is no audit
    found -= {"remote.py"}  # the manifest and the names of a table that only the machines of a server see
    found -= {"stream/query.py", "stream/outputs.py"}  # the files of a batch, and sums of its violations
    assert {name.partition("/")[0] for name in found} == {"report", "verdicts.py"}


def _found(pattern: re.Pattern[str]) -> set[str]:
    files = [file for file in SOURCE.rglob("*.py") if pattern.search(file.read_text())]
    return {str(file.relative_to(SOURCE)) for file in files}
