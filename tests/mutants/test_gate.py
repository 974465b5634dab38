"""The gate of planted bugs: every kept bug fits the source, one that does not is named, and the first are noticed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants import gate, made
from tests.mutants.planting import Change, Misfit, changed, plant

BUGS = gate.mutants()
NOTHING = gate.Mutant("unchanged", "nothing is planted", "total", [])
SOURCE = """
class A:
    def f(self, a, b):
        if a and b < 3:  # a comment
            self.x = 1
            return a
        self.g(
            b
        )
        return b + 1
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "src"
    gate.copy_source(folder)
    return folder


def test_each_kept_bug_fits_and_changes_something(source: Path) -> None:
    for mutant in BUGS:
        before = {change.file: (source / change.file).read_text() for change in mutant.changes}
        assert before, mutant.name
        plant(mutant.name, mutant.changes, source)
        for file, text in before.items():
            new = (source / file).read_text()
            assert ast.dump(ast.parse(new)) != ast.dump(ast.parse(text)), mutant.name
            compile(new, file, "exec")
            (source / file).write_text(text)


def test_a_bug_is_planted_whatever_the_layout() -> None:
    for find, planted, expected in (
        ("self.g(b)", "pass", "return a\n        pass\n"),
        ("if a and b < 3: ...", "if b < 3: ...", "if b < 3:\n            self.x = 1\n"),
        ("b < 3", "b <= 3", "if a and (b <= 3):  # a comment"),
    ):
        assert expected in changed(SOURCE, Change("x.py:A.f", find, planted))


@pytest.mark.parametrize(("at", "find"), [("x.py:A.f", "self.h()"), ("x.py:A.g", "self.g(b)"), ("x.py:A.f", "b")])
def test_a_bug_that_does_not_fit_is_named(at: str, find: str) -> None:
    with pytest.raises(Misfit, match=r"is found \d times"):
        changed(SOURCE, Change(at, find, "pass"))


def test_a_bug_that_is_not_there_is_named() -> None:
    with pytest.raises(SystemExit, match="no such bug: M999"):
        gate.mutants("M1,M999")


def test_a_hidden_bug_has_a_pair_and_at_most_two_have_none() -> None:
    names = [mutant.name for mutant in BUGS]
    assert len(set(names)) == len(names)
    hidden = [mutant for mutant in BUGS if mutant.hidden_by]
    assert {mutant.pair for mutant in hidden if mutant.pair} <= set(names)
    assert [mutant.name for mutant in BUGS if mutant.pair and not mutant.hidden_by] == []
    assert len([mutant.name for mutant in hidden if not mutant.pair]) <= gate.UNPAIRED_MAX


def test_the_gate_fails_for_a_bug_that_is_not_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gate, "hunt", lambda mutant, schedules, jobs: gate.Hunt(mutant, schedules, gate.UNNOTICED, ""))
    (bug,) = gate.mutants("M1")
    assert gate.gate([bug], 10, 5, 1) == 1
    assert "M1: NOT NOTICED in 10 schedules" in capsys.readouterr().out
    assert gate.gate([bug._replace(hidden_by="another mechanism")], 10, 5, 1) == 0


def test_the_gate_stops_at_an_alarm_in_the_unchanged_source(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gate, "hunt", lambda mutant, schedules, jobs: gate.Hunt(mutant, 3, "liveness", "stuck"))
    assert gate.gate(gate.mutants("M1"), 10, 5, 1) == 1
    assert capsys.readouterr().out.splitlines() == ["unchanged-total: liveness after 3 schedules: stuck"]


# -- bugs that are made from a change


def test_each_kind_of_bug_is_made_of_a_changed_function() -> None:
    (function,) = made.changed_functions(SOURCE.replace("a and", "b and"), SOURCE)
    bugs = {bug.what: bug.text for bug in made.made_of(Path("pygroups/x.py"), SOURCE, function)}
    assert set(bugs) == {
        "without `self.x = 1`",
        "without `return a`",
        "without `self.g(b)`",
        "`a and b < 3` is True",
        "`a and b < 3` is False",
        "`a and b < 3` without `a`",
        "`a and b < 3` without `b < 3`",
        "`b < 3` becomes `b <= 3`",
        "`b + 1` becomes `b - 1`",
    }
    for text in bugs.values():
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(SOURCE))


def test_a_comment_or_a_docstring_is_no_change() -> None:
    assert made.changed_functions(SOURCE, SOURCE.replace("  # a comment", "")) == []
    assert made.changed_functions(SOURCE, SOURCE.replace("        if a", "        'doc'\n        if a")) == []


def test_a_file_leads_to_the_tests_of_its_layer() -> None:
    assert "tests/layers/test_merge2.py" in made.tests_of(Path("pygroups/layers/merge2/rules.py"))
    assert "tests/layers/test_gms.py" in made.tests_of(Path("pygroups/layers/gms/decisions/decide.py"))


def test_a_file_of_a_room_leads_to_the_tests_that_speak_most_of_it() -> None:
    outbox, *others = made.tests_of(Path("pygroups/channel/sending/outbox.py"))
    assert outbox == "tests/channel/test_outbox.py" and len(others) < made.FILES
    assert 0 < len(made.tests_of(Path("pygroups/channel/waits.py"))) <= made.FILES, "those of a module that imports it"
    assert "tests/wire/test_codec.py" in made.tests_of(Path("pygroups/wire/codec.py"))
    assert made.tests_of(Path("pygroups/_version.py")) == []
    assert all((gate.HOME / test).exists() for test in (outbox, *others))


# -- some hunts


@pytest.mark.slow
@pytest.mark.parametrize("name", ["M1", *(pytest.param(name, marks=pytest.mark.long) for name in ("M4-kept", "M38"))])
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
    plant(bug.name, bug.changes, source)
    found = gate.played(source, bug, scenarios)
    assert found.promise.endswith("::test_members_that_nobody_leads_any_more_call_for_an_attempt"), found.line()
    assert "liveness" in found.detail


@pytest.mark.slow
def test_a_made_bug_is_noticed_by_the_tests_of_its_layer(source: Path) -> None:
    file = Path("pygroups/layers/gms/decisions/decide.py")
    text = (source / file).read_text()
    function = made.functions(text)["electors_of_next"]
    bugs = [bug for bug in made.made_of(file, text, function) if "is False" in bug.what or "without" in bug.what]
    assert bugs and made.noticed(bugs[0], source) in ("tests", "simulator")
    assert (source / file).read_text() == text
