"""The stream of the examples: two members send, Spark computes, and each hour counts once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.spark_stream import CITIES, temperatures
from tests.patience import patience
from tests.pipeline.spark_session import SHORT_LIVED

ROOT = Path(__file__).parents[2]
DAYS = 3


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_day_has_its_hottest_hour() -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    command = [sys.executable, str(ROOT / "examples" / "spark_stream.py"), "--days", str(DAYS)]
    done = subprocess.run(
        command,
        env=os.environ | SHORT_LIVED | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=patience(300),
    )
    assert done.returncode == 0, done.stderr
    found = {match[1]: float(match[2]) for match in re.finditer(r"(?m)^(.* 2010-01-\d\d): ([-\d.]+) F at", done.stdout)}
    expected: dict[str, float] = {}
    for city in CITIES:
        for row in temperatures(city, 24 * DAYS):
            day = f"{city} {str(row['hour'])[:10]}"
            expected[day] = max(expected.get(day, -1e9), float(str(row["degrees"])))
    assert found == expected
