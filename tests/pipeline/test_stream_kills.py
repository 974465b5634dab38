"""The command is killed at random moments, and goes on: its tables are those of one that nobody disturbed."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pygroups.pipeline.timings import processes_below, seconds_of
from tests.pipeline import streamed
from tests.pipeline.catalog import all_planted
from tests.pipeline.test_stream import CHOSEN, grown

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]
KILLS = 10


def command(journal: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "pygroups", "stream", str(journal), "--out", str(out), "--once"]


def cpu_of(process: subprocess.Popen[bytes]) -> float:
    """The CPU seconds of a process and of all below it: a clock that is deaf to the load of the machine."""
    return sum(map(seconds_of, [process.pid, *processes_below(process.pid)]))


def played(command: list[str], until: float = math.inf) -> tuple[int | None, float]:
    """Run a command, and kill it when it has used `until` CPU seconds.  Its exit code, or None, and what it used."""
    used = 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            used = max(used, cpu_of(process))
            if used >= until:
                process.kill()  # Spark's JVM ends when its parent is gone
                process.wait()
                return None, used
            time.sleep(0.2)  # a look at all processes takes some milliseconds
    return process.returncode, used


def test_ten_kills_leave_the_tables_of_an_undisturbed_stream(tmp_path: Path) -> None:
    whole, journal, out = tmp_path / "whole", tmp_path / "journal", tmp_path / "out"
    groups = [planted for planted in all_planted() if CHOSEN.fullmatch(planted.group)]
    for planted in groups:
        planted.make(planted.group).save(whole)
    names = [planted.group for planted in groups]
    code, cost = played(command(whole, tmp_path / "undisturbed"))
    assert code == 1
    drawn, killed, times = random.Random(33), 0, 0
    while killed < KILLS and times < 4 * KILLS:
        times += 1
        grown(whole, names, journal, 1 - 0.9**times)  # each time there is something new
        code, _ = played(command(journal, out), drawn.uniform(0.1, 0.7) * cost)
        killed += code is None
    assert killed == KILLS
    grown(whole, names, journal, 1)
    code, _ = played(command(journal, out))
    assert code == 1
    for of in (streamed.witnesses, streamed.counts, streamed.minutes):
        assert of(out) == of(tmp_path / "undisturbed")
