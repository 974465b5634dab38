"""Blind checks: each fits the source, and planted histories show one of each promise; `make long` has the rest."""

from __future__ import annotations

import ast

import pytest

from tests.mutants import gate as bugs
from tests.mutants.checkers import gate

RUNNING, RULES = gate.blind_checks("sim"), gate.blind_checks("pipeline")
FIRST = list({min(gate.promises_of(blind)): blind for blind in reversed(RUNNING)}.values())
"""A blind check of each promise."""


def test_each_blind_check_fits_and_changes_something() -> None:
    for blind in [*RUNNING, *RULES]:
        for file, text in gate.patched(blind):
            assert ast.dump(ast.parse(text)) != ast.dump(ast.parse((bugs.SOURCE / file).read_text())), blind.name


def test_every_promise_has_a_blind_check_in_both_rooms() -> None:
    from pygroups.layers.profiles import PROFILES
    from pygroups.pipeline import promises
    from pygroups.sim.promises.checks import checks_of
    from pygroups.sim.promises.judge import Judge

    running = set(Judge(checks_of(PROFILES["uniform"].services | {"MERGING"})).promises)
    running.update(Judge(checks_of(PROFILES["gossip"].services)).promises)
    audited = {rule.promise for rule in promises.RULES}
    for room, wanted in ((RUNNING, running), (RULES, audited)):
        named = {promise for blind in room for promise in gate.promises_of(blind)}
        assert named == wanted


@pytest.mark.long  # the tests of the checks judge the same histories
def test_a_check_that_sees_everything_is_not_noticed() -> None:
    ((_, shown_by),) = gate.hunt_running([gate.Blind("unchanged", "fifo: nothing", [])])
    assert shown_by is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "blind",
    [
        pytest.param(blind, id=blind.name, marks=() if blind in FIRST else pytest.mark.long)  # `make long` has the rest
        for blind in RUNNING
    ],
)
def test_a_blind_running_check_is_noticed(blind: gate.Blind) -> None:
    ((_, shown_by),) = gate.hunt_running([blind])
    assert shown_by is not None


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_few_blind_rules_are_noticed() -> None:
    from pygroups.pipeline.session import make_session
    from tests.mutants.checkers.audited import hunt_rules

    few = [blind for blind in RULES if blind.name in ("pipeline-fifo-late", "pipeline-view-agreement-set")]
    session = make_session(master="local[2]", small=True)
    hunted = list(hunt_rules(few, session, unchanged=False))
    assert len(hunted) == 2 and all(shown_by is not None for _, shown_by in hunted), hunted
