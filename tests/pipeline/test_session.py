"""What a session sets, and what the user has set already: the user's settings count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.session import java_options, sets_memory
from pygroups.pipeline.timings import processes_below, seconds_of

WANTED = "-XX:+UseParallelGC -XX:MetaspaceSize=256m -XX:TieredStopAtLevel=1"


@pytest.mark.parametrize(
    ("name", "theirs", "left"),
    [
        ("PATH", "-XX:+UseG1GC", WANTED),
        ("JAVA_TOOL_OPTIONS", "-Xss4m -XX:+UseG1GC", "-XX:MetaspaceSize=256m -XX:TieredStopAtLevel=1"),
        ("JDK_JAVA_OPTIONS", "-XX:-UseParallelGC", "-XX:MetaspaceSize=256m -XX:TieredStopAtLevel=1"),
        ("JAVA_TOOL_OPTIONS", "-XX:MetaspaceSize=64m", "-XX:+UseParallelGC -XX:TieredStopAtLevel=1"),
    ],
)
def test_an_option_that_the_user_sets_is_left_to_the_user(name: str, theirs: str, left: str) -> None:
    assert java_options(WANTED, {name: theirs}) == left.split()


@pytest.mark.parametrize(
    ("line", "set_there"),
    [
        ("spark.driver.memory 4g", True),
        ("spark.ui.enabled false\n  spark.driver.memory=4g\n", True),
        ("# spark.driver.memory 4g", False),
        ("spark.driver.memoryOverhead 1g", False),
    ],
)
def test_the_memory_in_sparks_own_file_counts(tmp_path: Path, line: str, set_there: bool) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(line)
    assert sets_memory({}, str(tmp_path)) is set_there
    assert sets_memory({"SPARK_HOME": str(tmp_path)}, "/nowhere") is set_there
    assert sets_memory({"SPARK_CONF_DIR": str(tmp_path / "conf")}, "/nowhere") is set_there


def test_the_memory_in_the_environment_counts(tmp_path: Path) -> None:
    assert sets_memory({"SPARK_DRIVER_MEMORY": "4g"}, str(tmp_path))
    assert not sets_memory({}, str(tmp_path))


def test_the_end_of_the_jvm_prints_no_traceback(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C ends it, and the connection of PySpark's server for accumulators with it."""
    server: Any = spark.sparkContext._accumulatorServer
    try:
        raise EOFError
    except EOFError:
        server.handle_error(None, ("127.0.0.1", 1))
    assert capsys.readouterr() == ("", "")


def test_a_process_that_ends_while_it_is_counted_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers end at any time: between the list of their threads and a look at them, too."""
    monkeypatch.setattr("os.listdir", lambda path: ["0"])  # a thread that is gone
    assert list(processes_below(2**22 + 1)) == [] and seconds_of(2**22 + 1) == 0
