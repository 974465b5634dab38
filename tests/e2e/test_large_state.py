"""A state of many windows reaches a new member while messages flow: short runs of bench/state.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.patience import patience

HOME: Final = Path(__file__).resolve().parents[2]
SIZE: Final = 96 << 20
MEMORY_MIB: Final = 64  # less than the state; the member keeps 16 MiB of it in memory

pytestmark = pytest.mark.slow

PLAY: Final = """
import asyncio, json, sys, pathlib
sys.path.insert(0, "bench")
import state
print(json.dumps(asyncio.run(state.play(pathlib.Path(sys.argv[1]), int(sys.argv[2]), 500, sys.argv[3], "tcp"))))
"""


@pytest.mark.parametrize("profile", ["total", pytest.param("fifo", marks=pytest.mark.long)])
def test_a_large_state_arrives_in_bounded_memory(tmp_path: Path, profile: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(HOME / "src")}
    command = [sys.executable, "-c", PLAY, str(tmp_path), str(SIZE), profile]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=HOME, env=environment, timeout=patience(280), check=True
    )
    measured: dict[str, Any] = json.loads(done.stdout)
    assert measured["equal"]
    assert measured["messages"] > 0
    assert all(0 < peak < MEMORY_MIB for peak in measured["memory_mib"].values()), measured
