"""Schedules that once broke a promise, or that a check took for such, made small: they must not again.

Those of OPEN still do, and are to be mended.  `bugs.toml` has the change that brings back the bug of each:
with it it has to fail (guards.py), or else it guards nothing and goes.

Most files here were written by `pygroups simulate --shrink SEED --schedule FILE`, a few by hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from pygroups.sim.batches.runner import play
from pygroups.sim.schedules.schedule import from_json
from pygroups.sim.world.stacks import builder_of
from tests.mutants import gate
from tests.mutants.planting import plant
from tests.sim.guards import FOUND, HOLDS, bugs, patch_of, stacks_of, with_its_bug

FILES: Final = sorted(FOUND.glob("*.json"))
LONG: Final = {"a-pause-between-merges-outlasts-the-heal", "a-wait-outlasts-the-reservations"}
"""With the bug they last for many times the rest."""
OPEN: dict[str, str] = {}  # by name, and why it still does


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=file.stem, marks=pytest.mark.xfail(reason=OPEN[file.stem]) if file.stem in OPEN else ())
        for file in FILES
    ],
)
def test_it_does_not_happen_again(file: Path) -> None:
    schedule = from_json(file.read_bytes())
    for stack in stacks_of(schedule.profile):
        outcome = play(schedule, build=builder_of(stack))
        assert outcome.witness is None, f"{outcome.witness}\n{outcome.trace}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(file.stem, marks=pytest.mark.long if file.stem in LONG else ()) for file in FILES]
)
def test_with_its_bug_it_fails_again(name: str) -> None:
    assert with_its_bug(name) != HOLDS, f"it guards nothing: find another one for {patch_of(name).bug!r}"


def test_each_has_the_change_that_brings_its_bug_back(tmp_path: Path) -> None:
    assert sorted(bugs()) == [file.stem for file in FILES]
    gate.copy_source(tmp_path / "src")
    for name in bugs():
        before = {change.file: (tmp_path / "src" / change.file).read_text() for change in patch_of(name).changes}
        plant(name, patch_of(name).changes, tmp_path / "src")  # Misfit if it does not fit
        for file, text in before.items():
            (tmp_path / "src" / file).write_text(text)
