"""The gate of planted bugs: every patch fits the source, one that does not is told, and the first bugs are noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.mutants import gate, results

BUGS = gate.mutants()
NOTHING = gate.Mutant("unchanged", "nothing is planted", "total", [])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the files that the patches change."""
    for mutant in BUGS:
        for change in mutant.changes:
            file = tmp_path / change["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text((gate.SOURCE / change["file"]).read_text())
    return tmp_path


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results go to a file of this test."""
    file = tmp_path / "mutants.jsonl"
    monkeypatch.setattr(results, "RESULTS", file)
    return file


# -- the patches


@pytest.mark.parametrize("mutant", BUGS, ids=lambda mutant: mutant.name)
def test_a_patch_fits_and_changes_something(mutant: gate.Mutant, source: Path) -> None:
    before = {change["file"]: (source / change["file"]).read_text() for change in mutant.changes}
    assert before
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


def test_what_is_hidden_has_a_pair_and_at_most_two_have_none() -> None:
    names = {mutant.name for mutant in BUGS}
    hidden = [mutant for mutant in BUGS if mutant.hidden_by]
    assert {mutant.pair for mutant in hidden if mutant.pair} <= names
    assert [mutant.name for mutant in BUGS if mutant.pair and not mutant.hidden_by] == []
    assert len([mutant.name for mutant in hidden if not mutant.pair]) <= gate.UNPAIRED_MAX


def test_no_two_bugs_share_a_number() -> None:
    """But a bug and its kin, whose names begin with its name: M4 and M4-kept."""
    names = sorted([*(mutant.name for mutant in BUGS), *results.not_planted()], key=len)
    first: dict[str, str] = {}
    for name in names:
        assert name.startswith(first.setdefault(name.partition("-")[0], name)), (
            f"{name} and {first[name.partition('-')[0]]}"
        )


# -- the results


def test_a_hunt_goes_on_where_the_last_one_stopped(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = gate.mutants("M1")[0]
    assert results.known(mutant, 100) is None
    results.append(gate.Hunt(mutant, 7, "agreement", "one has it"))
    assert results.known(mutant, 100) == gate.Hunt(mutant, 7, "agreement", "one has it")
    other = mutant._replace(changes=[*mutant.changes, {"file": "a", "expected": "b", "planted": "c"}])
    assert results.known(other, 100) is None
    monkeypatch.setattr(results, "source_digest", lambda mutant: "changed")
    assert results.known(mutant, 100) is None


def test_a_bug_that_nobody_noticed_is_hunted_again_only_for_longer(written: Path) -> None:
    mutant = gate.mutants("M1")[0]
    results.append(gate.Hunt(mutant, 50, gate.UNNOTICED, ""))
    assert results.known(mutant, 50) is not None
    assert results.known(mutant, 51) is None


def test_the_gate_fails_for_what_nobody_notices_and_passes_for_what_is_hidden(
    written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gate, "hunt", lambda mutant, schedules, jobs: gate.Hunt(mutant, schedules, gate.UNNOTICED, ""))
    bug = gate.mutants("M1")[0]
    assert gate.gate([bug], 10, 5, 1, again=False) == 1
    assert "M1: NOT NOTICED in 10 schedules" in capsys.readouterr().out
    assert gate.gate([bug._replace(hidden_by="another mechanism")], 10, 5, 1, again=False) == 0


def test_the_gate_stops_at_an_alarm_in_the_unchanged_source(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "hunt", lambda mutant, schedules, jobs: gate.Hunt(mutant, 3, "liveness", "stuck"))
    assert gate.gate(gate.mutants("M1"), 10, 5, 1, again=False) == 1
    assert [json.loads(line)["mutant"] for line in written.read_text().splitlines()] == ["unchanged-total"]


def test_the_page_lists_each_bug_once_with_its_last_result() -> None:
    page = results.PAGE.read_text()
    for name in [*(mutant.name for mutant in BUGS), *results.not_planted()]:
        assert page.count(f"\n| {name} | ") == 1, f"{name}: make mutants ONLY={name}, then gate.py --table"
    assert page.split(results.BEGIN)[1].split(results.END)[0].strip() == results.page_table()


def test_each_bug_was_noticed_the_last_time_or_is_hidden() -> None:
    last = {line["mutant"]: line["noticed"] for line in results.lines()}
    assert [bug.name for bug in BUGS if not (bug.hidden_by or last.get(bug.name))] == []


# -- some hunts


@pytest.mark.slow
@pytest.mark.parametrize("name", ["M1", "M4-kept", "M38"])
def test_the_simulator_notices_it_within_two_hundred_schedules(name: str) -> None:
    found = gate.hunt(gate.mutants(name)[0], schedules=200, jobs=1)
    assert found.noticed and "::" not in found.promise, found.line()


@pytest.mark.slow
def test_a_scenario_notices_what_the_simulator_seldom_draws(tmp_path: Path) -> None:
    bug = gate.mutants("M52-accuse")[0]
    source = tmp_path / "src"
    gate.copy_source(source)
    scenarios = f"{gate.SCENARIOS}/test_planted_bugs.py"
    assert not gate.played(source, NOTHING, scenarios).noticed
    gate.plant(bug, source)
    found = gate.played(source, bug, scenarios)
    assert found.promise.endswith("::test_members_that_nobody_leads_any_more_call_for_an_attempt"), found.line()
    assert "liveness" in found.detail


@pytest.mark.slow
def test_the_unchanged_source_gives_no_alarm() -> None:
    found = gate.simulated(gate.SOURCE, NOTHING, schedules=10, jobs=1)
    assert not found.noticed, found.line()
