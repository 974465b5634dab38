"""DuckDB judges the same tables by the statements of the promises, and comes to the same verdicts.

The SQL was written from the statements and shares nothing with the audit.  Where the two differ one of them is wrong:
the difference is looked into, and what was learnt becomes a planted history.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline import scan
from pygroups.pipeline.audit import audit
from pygroups.pipeline.ingest import ingest
from pygroups.pipeline.promises import RULES
from pygroups.pipeline.verdict import AuditResult
from tests.pipeline import compared, drawn, second_opinion
from tests.pipeline.catalog import all_planted
from tests.pipeline.faulty import FAULTS, plant
from tests.pipeline.planted import Planted
from tests.pipeline.second_opinion import PROMISES
from tests.pipeline.second_opinion import second_opinion as opinion_on

Verdicts = dict[tuple[str, str], str]
SCHEDULES = 3 * len(FAULTS)  # of each profile, each with one fault
SHOWN = 0.7  # of the faults: some break nothing, as the last delivery of one that dies then


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn schedules, each with one fault planted at a place that was drawn too."""
    root = tmp_path_factory.mktemp("faulty")
    drawn.play_drawn(root, SCHEDULES)
    groups = sorted(root.iterdir(), key=lambda path: int(path.name.partition("-")[2]))
    for number, group in enumerate(groups):
        assert plant(group, list(FAULTS)[number % len(FAULTS)], random.Random(number)) is not None
    return root


@pytest.fixture(scope="module")
def opinion(planted_whole: Path, planted_with_holes: Path, tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    return opinion_of(tmp_path_factory.mktemp("table"), planted_whole, planted_with_holes)


def opinion_of(table: Path, *journals: Path) -> Verdicts:
    ingest(journals, table)
    return opinion_on(table)


def test_it_shares_nothing_with_the_audit_but_the_tables() -> None:
    tree = ast.parse(Path(second_opinion.__file__).read_text())
    imports = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imports if name and name.startswith("pygroups")} == {"pygroups.pipeline.ingest"}


def test_the_planted_histories_know_the_blocks_of_the_audit() -> None:
    assert compared.BLOCK == scan.BLOCK


def test_it_judges_every_promise_that_the_audit_judges() -> None:
    assert sorted(rule.promise for rule in RULES) == PROMISES


@pytest.mark.parametrize("history", all_planted(), ids=lambda planted: planted.group)
def test_a_planted_fault_breaks_what_it_breaks_and_nothing_else(history: Planted, opinion: Verdicts) -> None:
    group, breaks = history.group, history.breaks
    assert {promise for (promise, of), word in opinion.items() if of == group and word == "broken"} == breaks


def test_a_fault_in_a_drawn_schedule_is_seen_and_the_rest_is_not_accused(
    faulty: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = opinion_of(tmp_path_factory.mktemp("table"), faulty)
    broken = Counter(group for (_, group), word in found.items() if word == "broken")
    groups = {group for _, group in found}
    assert len(groups) == SCHEDULES * len(drawn.PROFILES)
    assert len(broken) >= SHOWN * len(groups)


def words_of(*audits: AuditResult) -> Verdicts:
    """Of each promise and group the worst word of all its histories."""
    words = ["held", "not judged", "broken"]
    found: Verdicts = {}
    for verdict in [verdict for audited in audits for verdict in audited.verdicts]:
        key = verdict.promise, verdict.group
        found[key] = max(found.get(key, "held"), verdict.verdict, key=words.index)
    return found


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
    assert known.keys() == opinion.keys()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_audit_says_the_same_of_drawn_schedules(
    judged_whole: AuditResult, drawn_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    audited = {key: word for key, word in words_of(judged_whole).items() if key[1].startswith("seed-")}
    found = opinion_of(tmp_path_factory.mktemp("table"), drawn_root)
    assert differences(audited, found) == {} and audited.keys() == found.keys()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_audit_says_the_same_of_drawn_schedules_with_a_fault(
    spark: SparkSession, faulty: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    audited = words_of(audit([faulty], master="local[2]"))
    found = opinion_of(tmp_path_factory.mktemp("table"), faulty)
    assert differences(audited, found) == {} and audited.keys() == found.keys()
