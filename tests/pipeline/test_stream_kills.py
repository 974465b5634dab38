"""The command is killed at random moments, and goes on: its tables are those of one that nobody disturbed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import patience
from tests.pipeline import streamed
from tests.pipeline.catalog import all_planted
from tests.pipeline.test_stream import CHOSEN, grown

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]
KILLS = 10


def command(journal: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "pygroups", "stream", str(journal), "--out", str(out), "--once"]


def test_ten_kills_leave_the_tables_of_an_undisturbed_stream(tmp_path: Path) -> None:
    whole, journal, out = tmp_path / "whole", tmp_path / "journal", tmp_path / "out"
    groups = [planted for planted in all_planted() if CHOSEN.fullmatch(planted.group)]
    for planted in groups:
        planted.make(planted.group).save(whole)
    names = [planted.group for planted in groups]
    began = time.monotonic()
    undisturbed = subprocess.run(command(whole, tmp_path / "undisturbed"), capture_output=True, timeout=patience(600))
    seconds = time.monotonic() - began
    assert undisturbed.returncode == 1, undisturbed.stderr
    drawn, killed = random.Random(33), 0
    for step in range(KILLS):
        grown(whole, names, journal, (step + 1) / KILLS)
        process = subprocess.Popen(command(journal, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(drawn.uniform(0.2, 1) * seconds)
        except subprocess.TimeoutExpired:
            killed += 1
        process.kill()  # Spark's JVM ends when its parent is gone
        process.wait()
    done = subprocess.run(command(journal, out), capture_output=True, timeout=patience(600))
    assert done.returncode == 1 and killed >= KILLS // 2, (done.stderr, killed)
    for of in (streamed.witnesses, streamed.counts, streamed.minutes):
        assert of(out) == of(tmp_path / "undisturbed")
