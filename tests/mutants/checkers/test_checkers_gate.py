"""Blind checks: every patch fits, the planted histories show each blind running check, and a few of the blind rules."""

from __future__ import annotations

import pytest

from tests.mutants import gate as bugs
from tests.mutants.checkers import gate

RUNNING, RULES = gate.blind_checks("sim"), gate.blind_checks("pipeline")


@pytest.mark.parametrize("blind", [*RUNNING, *RULES], ids=lambda blind: blind.name)
def test_a_patch_fits_and_changes_something(blind: gate.Blind) -> None:
    for file, text in gate.patched(blind):
        assert text != (bugs.SOURCE / file).read_text()
        compile(text, file, "exec")


def test_a_patch_that_does_not_fit_is_told() -> None:
    change = {"file": "pygroups/sim/promises/views.py", "expected": "no such line", "planted": ""}
    with pytest.raises(bugs.Misfit, match="none: its lines are found 0 times"):
        list(gate.patched(gate.Blind("none", "", [change])))


def test_every_promise_has_a_blind_check_in_both_rooms() -> None:
    from pygroups.pipeline import promises
    from pygroups.sim.promises.checks import checks_of
    from pygroups.sim.promises.judge import Judge

    running = set(Judge(checks_of("total", majority=True)).promises)
    audited = {rule.promise for rule in promises.RULES}
    for room, wanted in ((RUNNING, running), (RULES, audited)):
        named = {promise for blind in room for promise in gate.promises_of(blind)}
        assert named == wanted


@pytest.mark.slow
def test_a_check_that_sees_everything_is_not_noticed() -> None:
    ((_, shown_by),) = gate.hunt_running([gate.Blind("unchanged", "", [])])
    assert shown_by is None


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_each_blind_running_check_is_noticed() -> None:
    hidden = [blind.name for blind, shown_by in gate.hunt_running(RUNNING) if shown_by is None]
    assert hidden == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_few_blind_rules_are_noticed() -> None:
    from pygroups.pipeline.session import make_session
    from tests.mutants.checkers.audited import hunt_rules

    few = [blind for blind in RULES if blind.name in ("pipeline-fifo-late", "pipeline-view-agreement-set")]
    session = make_session(master="local[2]", small=True)
    hunted = list(hunt_rules(few, session, unchanged=False))
    assert len(hunted) == 2 and all(shown_by is not None for _, shown_by in hunted), hunted
