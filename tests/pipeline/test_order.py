"""Where the order of a view is broken, and who is accused of it, on views made by hand."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline import order
from pygroups.pipeline.scan import BLOCK
from tests.pipeline.scanned import name_of, scanned
from tests.pipeline.spark_session import spark

__all__ = ["spark"]
pytestmark = pytest.mark.slow


def broken(spark: SparkSession, members: dict[str, str]) -> set[tuple[str, str, str]]:
    """(what, who is accused, of which run)."""
    rows = order.compared(scanned(spark, members)).collect()
    accused = [(row["what"], name_of(row["member"]), f"{name_of(row['sender']).lower()}{row['first']}") for row in rows]
    assert len(set(accused)) == len(accused), "one witness for a member and a run"
    assert all(row["other"] != row["member"] for row in rows)
    return set(accused)


LINE = "b1 c1 d1 b2 c2"


def test_who_differs_from_most_is_accused_even_if_it_is_the_coordinator(spark: SparkSession) -> None:
    swapped = "b1 d1 c1 b2 c2"
    assert broken(spark, {"A": LINE, "B": LINE, "C": swapped, "D": LINE}) == {("crossed", "C", "c1")}
    assert broken(spark, {"A": swapped, "B": LINE, "C": LINE}) == {("crossed", "A", "c1")}
    both = {"A": LINE, "B": swapped, "C": swapped, "D": LINE, "E": LINE}
    assert broken(spark, both) == {("crossed", "B", "c1"), ("crossed", "C", "c1")}


def test_of_as_many_those_without_the_coordinator_are_accused(spark: SparkSession) -> None:
    swapped = "b1 d1 c1 b2 c2"
    assert broken(spark, {"A": LINE, "B": swapped}) == {("crossed", "B", "c1")}
    assert broken(spark, {"A": swapped, "B": LINE}) == {("crossed", "B", "d1")}


def test_a_run_that_one_lacks_is_told_once(spark: SparkSession) -> None:
    assert broken(spark, {"A": LINE, "B": LINE, "C": "c1 d1 b2 c2", "D": LINE}) == {("lacking", "C", "b1")}
    assert broken(spark, {"A": "c1 d1 b2 c2", "B": LINE, "C": LINE}) == {("lacking", "A", "b1")}


def test_a_run_that_one_alone_has_is_told_of_it(spark: SparkSession) -> None:
    assert broken(spark, {"A": LINE, "B": "e1 " + LINE, "C": LINE}) == {("extra", "B", "e1")}


def test_who_is_ahead_or_behind_breaks_nothing(spark: SparkSession) -> None:
    """C died early, and D ahead of all; B has an altered body, which is no matter of order."""
    assert broken(spark, {"A": LINE, "B": "b1 c1! d1 b2 c2", "C": "b1 c1", "D": LINE + " e1 e2"}) == set()


def test_two_runs_that_the_longest_members_never_saw(spark: SparkSession) -> None:
    members = {"A": LINE, "B": LINE, "C": LINE + " c3 d2", "D": LINE + " d2 c3"}
    assert broken(spark, members) == {("crossed", "D", "c3")}


def test_two_that_differ_from_the_others_and_from_each_other(spark: SparkSession) -> None:
    """The one with another body is not accused of the order of the one that swapped."""
    members = {"A": LINE, "B": "b1 d1 c1 b2 c2", "C": LINE, "D": "b1 c1! d1 b2 c2", "E": LINE}
    assert broken(spark, members) == {("crossed", "B", "c1")}


def test_a_cycle_without_a_pair_in_opposite_order(spark: SparkSession) -> None:
    found = broken(spark, {"A": "a1 b1", "B": "b1 c1", "C": "c1 a1"})
    assert found and {what for what, _, _ in found} <= {"lacking", "extra"}


def test_a_repetition_is_no_matter_of_order(spark: SparkSession) -> None:
    assert broken(spark, {"A": LINE, "B": "b1 c1 c1 d1 b2 c2", "C": LINE}) == set()


def test_who_gives_no_position_is_left_out(spark: SparkSession) -> None:
    assert broken(spark, {"A": LINE, "B": "b1 d1? c1 b2 c2", "C": LINE}) == set()


def looked_at(spark: SparkSession, members: dict[str, str]) -> set[tuple[int, str]]:
    """The runs that the exact step compares: block and run."""
    tables = scanned(spark, members)
    slots = order._slots(tables)
    classes = order._classes(slots, order._members(slots, tables.views))
    rows = order._rows(tables, slots, classes).collect()
    return {(row["position"] // BLOCK, f"{name_of(row['sender']).lower()}{row['first']}") for row in rows}


def test_only_the_blocks_that_differ_are_compared(spark: SparkSession) -> None:
    """Each block has a run of its own; the swap is in the second one."""
    members = {
        "A": f"b1*{BLOCK} c1 d1*{BLOCK - 1} e1*{BLOCK}",
        "B": f"b1*{BLOCK} d1*{BLOCK - 1} c1 e1*{BLOCK}",
    }
    assert {run for _, run in looked_at(spark, members)} == {"c1", "d1"}
    assert broken(spark, members) == {("crossed", "B", "c1")}


def test_blocks_are_compared_until_the_sets_are_the_same_again(spark: SparkSession) -> None:
    """c1 is delivered before the second block at one and behind it at the other, and what stands in its place is
    known to one of them alone. The second block itself is equal."""
    members = {
        "A": f"a1*{BLOCK} b1*{BLOCK} c1*{BLOCK} d1*{BLOCK}",
        "B": f"c1*{BLOCK} b1*{BLOCK} e1*{BLOCK} d1*{BLOCK}",
        "C": f"a1*{BLOCK} b1*{BLOCK} c1*{BLOCK} d1*{BLOCK}",
    }
    assert {run for _, run in looked_at(spark, members)} == {"a1", "b1", "c1", "d1", "e1"}
    assert ("crossed", "B", "b1") in broken(spark, members)
