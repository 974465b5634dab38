"""uniform-agreement and total-order-global: what is looked at closely, and places and blocks as journals have them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.audit import judge, with_occasion
from pygroups.pipeline.ingest import Table, ingest
from pygroups.pipeline.prepare import prepare
from pygroups.pipeline.promises import RULES
from pygroups.pipeline.recorded import open_table
from pygroups.pipeline.store import Store
from pygroups.pipeline.verdict import Verdict
from pygroups.pipeline.verdicts import count
from tests.pipeline import uniforms as u
from tests.pipeline.planted import clean
from tests.pipeline.spark_session import spark

__all__ = ["spark"]
pytestmark = pytest.mark.slow

PROFILES = ("uniform", "uniform-fifo")
AGREEMENT, ORDER = "uniform-agreement", "total-order-global"
HISTORIES = [
    *(clean(f"clean-{profile}", profile) for profile in PROFILES),
    *(u.behind_and_dead(f"behind-{at}-{profile}", profile, at) for at in "AC" for profile in PROFILES),
    *(u.alone_and_dead(f"alone-{at}-{profile}", profile, at) for at in "AC" for profile in PROFILES),
    *(u.copied(f"copied-{at}", at) for at in "AC"),
    *(u.blocked_at_quiet(f"blocked-{at}", at) for at in "AC"),
    *(u.left_behind(f"left-{at}", at) for at in "AC"),
    *(u.misplaced(f"misplaced-{at}", at) for at in "AC"),
    *(u.unplaced(f"unplaced-{at}", at) for at in "AC"),
    *(u.an_earlier_view_again(f"earlier-{at}", at) for at in "AC"),
]


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, set[str]], list[Verdict]]:
    """The groups that each of the two rules suspects, and the verdicts."""
    folder = tmp_path_factory.mktemp("uniform")
    for history in HISTORIES:
        history.save(folder / "journals")
    ingest([folder / "journals"], folder / "table")
    recorded, store = open_table(spark, Table(folder / "table"), small=True), Store(spark, folder / "store", small=True)
    rules = [rule for rule in with_occasion(recorded, RULES) if rule.promise in (AGREEMENT, ORDER)]
    tables = prepare(recorded, rules, store)
    verdicts = [one for one in judge(tables, rules, recorded, store) if one.promise in (AGREEMENT, ORDER)]
    return count(tables, rules).suspects(), verdicts


def test_members_that_died_behind_the_others_are_not_looked_at_closely(
    judged: tuple[dict[str, set[str]], list[Verdict]],
) -> None:
    suspects, _ = judged
    alone = {f"alone-{at}-{profile}" for at in "AC" for profile in PROFILES}
    blocked_or_left = {f"{what}-{at}" for what in ("blocked", "left") for at in "AC"}
    assert {group for group in suspects[AGREEMENT] if group.startswith(("alone", "behind", "clean", "copied"))} == alone
    assert not suspects[ORDER] & (alone | blocked_or_left)


def test_what_is_broken_is_told_with_member_and_message(judged: tuple[dict[str, set[str]], list[Verdict]]) -> None:
    _, verdicts = judged
    found = {one.group: one for one in verdicts if one.promise == ORDER and one.broken}
    assert found.keys() == {f"{what}-{at}" for what in ("misplaced", "unplaced", "earlier") for at in "AC"}
    (witness,) = found["misplaced-C"].violations
    assert (witness.member, witness.other, witness.origin, witness.first) == ("C@430", "A@410", "B@420", 5)
    assert (witness.position, witness.detail) == (21, "A@410 delivered it at position 16 of view 1:A@410")
    (witness,) = found["unplaced-A"].violations
    assert (witness.member, witness.first, witness.position) == ("A@410", 5, None)
    assert witness.detail == "delivered without a place in the order of its view"
    (witness,) = found["earlier-C"].violations
    assert (witness.view, witness.member, witness.origin, witness.first) == ("1:A@410", "C@430", "B@420", 5)
    assert witness.detail == "delivered behind a message of the later view 2:A@410"


def test_only_members_that_go_on_or_reach_quiet_are_accused(
    judged: tuple[dict[str, set[str]], list[Verdict]],
) -> None:
    """A blocked member waits for messages, and one that leaves without a mark may miss the last ones of its view."""
    _, verdicts = judged
    found = {one.group: one for one in verdicts if one.promise == AGREEMENT}
    broken = {group for group, one in found.items() if one.broken}
    assert broken == {f"alone-{at}-{profile}" for at in "AC" for profile in PROFILES}
    (one, *others) = found["alone-C-uniform"].violations
    assert (one.view, one.member, one.other, one.origin) == ("1:A@410", "A@410", "C@430", "C@430")
    assert (one.first, one.position, one.detail) == (5, 16, "not delivered here in this view: C@430 did")
    assert [witness.member for witness in others] == ["B@420", "D@440"]


def test_the_journal_of_a_member_that_may_have_delivered_more_is_skipped(
    judged: tuple[dict[str, set[str]], list[Verdict]],
) -> None:
    _, verdicts = judged
    (copied,) = [one for one in verdicts if (one.promise, one.group) == (AGREEMENT, "copied-C")]
    assert (copied.verdict, copied.judged) == ("held", 54), "three that went on, and 18 messages"
    assert copied.skips == {"the journal of a member of the view is missing or ends in it": 1}
