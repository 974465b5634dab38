"""The audit over journals of drawn schedules, above all of `uniform` and `uniform-fifo`: it accuses nobody, and sees a
fault."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.audit import audit
from pygroups.pipeline.ingest import ingest
from pygroups.pipeline.verdict import AuditResult, Verdict
from tests.pipeline.drawn import SCHEDULES, UNIFORM, played
from tests.pipeline.faulty import FAULTS, plant
from tests.pipeline.second_opinion import second_opinion
from tests.pipeline.spark_session import spark

__all__ = ["spark"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
FIRST = 301_000  # the first seed
MANY = 30  # schedules of each profile
BY_ALL = {"same-view-delivery", "liveness", "virtual-synchrony", "total-order", "state-cut", "stability-safety"}
JUDGED = BY_ALL | {"uniform-agreement", "total-order-global", "primary-chain"}


def test_drawn_schedules_break_no_promise(drawn_uniform: list[dict[str, Any]], judged_whole: AuditResult) -> None:
    assert [answer["failure"] for answer in drawn_uniform] == [None, None]
    groups = {f"seed-{first + at}" for first in UNIFORM.values() for at in range(SCHEDULES)}
    found = [one for one in judged_whole.verdicts if one.group in groups]
    assert {(one.promise, one.group): one.violations[:2] for one in found if one.broken} == {}
    assert {one.promise for one in found if one.verdict == "held"} >= JUDGED
    _judges_the_chain(found, groups)


@pytest.mark.long
@pytest.mark.parametrize(
    ("profiles", "judged"),
    [(("uniform", "uniform-fifo"), JUDGED), (("fifo", "total"), BY_ALL)],
    ids=["uniform", "total"],
)
def test_more_schedules_some_with_a_fault(
    spark: SparkSession, tmp_path: Path, profiles: Sequence[str], judged: set[str]
) -> None:
    """The first of each profile get a fault each, at a place that is drawn too.  Another judge says the same of all."""
    journals, table = tmp_path / "journals", tmp_path / "table"
    answers = [played(journals, one, FIRST + at * MANY, MANY) for at, one in enumerate(profiles)]
    assert [answer["failure"] for answer in answers] == [None, None]
    faulty = []
    for at in range(len(profiles)):
        for number, fault in enumerate([*FAULTS][at :: len(profiles)], FIRST + at * MANY):
            faulty.append(f"seed-{number}")
            assert plant(journals / faulty[-1], fault, random.Random(number)) is not None
    ingest([journals], table)
    found, groups = audit([table], master="local[2]").verdicts, {path.name for path in journals.iterdir()}
    assert {verdict.group for verdict in found} == groups and len(groups) == len(profiles) * MANY
    wrong = {(one.promise, one.group) for one in found if one.broken}
    assert {group for _, group in wrong} <= {*faulty}
    assert len({group for _, group in wrong}) > len(faulty) / 2
    opinion = second_opinion(table)
    assert wrong == {key for key, word in opinion.items() if word == "broken"}
    held = {(one.promise, one.group) for one in found if one.verdict == "held"} - wrong
    assert held == {key for key, word in opinion.items() if word == "held"}
    assert {promise for promise, _ in held} >= judged
    if "primary-chain" in judged:
        _judges_the_chain(found, groups)


def _judges_the_chain(found: Sequence[Verdict], groups: Collection[str]) -> None:
    chain = [verdict for verdict in found if verdict.promise == "primary-chain"]
    judged, skipped = sum(verdict.judged for verdict in chain), sum(verdict.skipped for verdict in chain)
    assert judged > 10 * len(groups)
    assert skipped < judged / 10
