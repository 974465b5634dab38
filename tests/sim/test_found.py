"""Schedules that once broke a promise, or that a check took for such, made small: they must not again.

Those of OPEN still do, and are to be mended.

A file here was written by `pygroups simulate --shrink SEED --schedule FILE`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pygroups.sim.runner import play
from pygroups.sim.schedule import from_json

FOUND = sorted(Path(__file__).with_name("found").glob("*.json"))
OPEN: dict[str, str] = {}  # by name, and why it still does


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=file.stem, marks=pytest.mark.xfail(reason=OPEN[file.stem]) if file.stem in OPEN else ())
        for file in FOUND
    ],
)
def test_it_does_not_happen_again(file: Path) -> None:
    outcome = play(from_json(file.read_bytes()))
    assert outcome.witness is None, f"{outcome.witness}\n{outcome.trace}"
