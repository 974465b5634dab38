"""DuckDB judges the same tables by the statements of the promises, and comes to the same verdicts.

The SQL was written from the statements and shares nothing with the audit.  Where the two differ one of them is wrong:
the difference is looked into, and what was learnt becomes a planted history.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pygroups.pipeline import block_scan
from pygroups.pipeline.ingest import ingest
from pygroups.pipeline.promises import RULES
from pygroups.pipeline.verdict import AuditResult
from tests.pipeline import compared, second_opinion
from tests.pipeline.catalog import all_planted
from tests.pipeline.drawn import PROFILES, SCHEDULES, UNIFORM
from tests.pipeline.faulty import EACH, FAULTS
from tests.pipeline.planted import Planted
from tests.pipeline.second_opinion import PROMISES
from tests.pipeline.second_opinion import second_opinion as opinion_on

Verdicts = dict[tuple[str, str], str]
SHOWN = 0.7  # of the faults: some break nothing, as the last delivery of one that dies then


@pytest.fixture(scope="module")
def opinion(whole_table: Path, planted_with_holes: Path, tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    """On the table that the audit judges, and on the planted histories in which a journal has a hole."""
    table = tmp_path_factory.mktemp("table")
    ingest([planted_with_holes], table)
    return opinion_on(whole_table) | opinion_on(table)


def test_it_shares_nothing_with_the_audit_but_the_tables() -> None:
    tree = ast.parse(Path(second_opinion.__file__).read_text())
    imports = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imports if name and name.startswith("pygroups")} == {"pygroups.pipeline.ingest"}


def test_the_planted_histories_know_the_blocks_of_the_audit() -> None:
    assert compared.BLOCK == block_scan.BLOCK


def test_it_judges_every_promise_that_the_audit_judges() -> None:
    assert sorted(rule.promise for rule in RULES) == PROMISES


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("history", all_planted(), ids=lambda planted: planted.group)
def test_a_planted_fault_breaks_what_it_breaks_and_nothing_else(history: Planted, opinion: Verdicts) -> None:
    group, breaks = history.group, history.breaks
    assert {promise for (promise, of), word in opinion.items() if of == group and word == "broken"} == breaks


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_fault_in_a_drawn_schedule_is_seen_and_the_rest_is_not_accused(faulty_root: Path, opinion: Verdicts) -> None:
    groups = {path.name for path in faulty_root.iterdir()}
    seeds = {group for _, group in drawn_ones(opinion)}
    broken = {group for (_, group), word in drawn_ones(opinion).items() if word == "broken"}
    assert len(groups) == EACH * len(FAULTS) * len(PROFILES)
    assert len(seeds) == len(groups) + SCHEDULES * (len(PROFILES) + len(UNIFORM) + 1)  # and those without a group
    assert broken <= groups
    assert len(broken) >= SHOWN * len(groups)


def words_of(*audits: AuditResult) -> Verdicts:
    """Of each promise and group one word for all its histories, as the SQL, which does not part them, has it: broken
    if one is, else held if one is."""
    words = ["not judged", "held", "broken"]
    found: Verdicts = {}
    for verdict in [verdict for audited in audits for verdict in audited.verdicts]:
        key = verdict.promise, verdict.group
        found[key] = max(found.get(key, "not judged"), verdict.verdict, key=words.index)
    return found


def drawn_ones(verdicts: Verdicts) -> Verdicts:
    return {key: word for key, word in verdicts.items() if key[1].startswith("seed-")}


def differences(audited: Verdicts, opinion: Verdicts) -> dict[tuple[str, str], tuple[str, str | None]]:
    return {key: (word, opinion.get(key)) for key, word in audited.items() if opinion.get(key) != word}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_audit_says_the_same_of_planted_histories(
    judged_whole: AuditResult, judged_with_holes: AuditResult, opinion: Verdicts
) -> None:
    audited = words_of(judged_whole, judged_with_holes)
    known = {key: word for key, word in audited.items() if not key[1].startswith("seed-")}
    assert differences(known, opinion) == {}
    assert known.keys() == opinion.keys() - drawn_ones(opinion).keys()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_audit_says_the_same_of_drawn_schedules_with_a_fault_and_without(
    judged_whole: AuditResult, opinion: Verdicts
) -> None:
    """One table, two judges."""
    audited = drawn_ones(words_of(judged_whole))
    assert differences(audited, opinion) == {} and audited.keys() == drawn_ones(opinion).keys()
