"""The gate of planted bugs: every patch fits the source, one that does not is told, and the first bugs are noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import gate


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the files that the patches change."""
    for mutant in gate.mutants():
        for change in mutant.changes:
            file = tmp_path / change["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text((gate.SOURCE / change["file"]).read_text())
    return tmp_path


@pytest.mark.parametrize("mutant", gate.mutants(), ids=lambda mutant: mutant.name)
def test_a_patch_fits_and_changes_something(mutant: gate.Mutant, source: Path) -> None:
    before = {change["file"]: (source / change["file"]).read_text() for change in mutant.changes}
    gate.plant(mutant, source)
    for file, text in before.items():
        changed = (source / file).read_text()
        assert changed != text
        compile(changed, file, "exec")


def test_a_patch_that_does_not_fit_is_told(source: Path) -> None:
    mutant = gate.mutants("M1")[0]
    gate.plant(mutant, source)
    with pytest.raises(gate.Misfit, match="M1: its lines are found 0 times"):
        gate.plant(mutant, source)


def test_a_bug_that_is_not_there_is_told() -> None:
    with pytest.raises(SystemExit, match="no such bug: M999"):
        gate.mutants("M1,M999")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["M1", "M4", "M38"])
def test_the_simulator_notices_it_within_a_thousand_schedules(name: str) -> None:
    found = gate.hunt(gate.mutants(name)[0], schedules=1_000, jobs=2)
    assert found.noticed, found.line()


@pytest.mark.slow
def test_the_unchanged_source_gives_no_alarm() -> None:
    nothing = gate.Mutant("canary", "nothing is planted", "total", [], None, None)
    found = gate.hunt(nothing, schedules=60, jobs=2)
    assert not found.noticed, found.line()
