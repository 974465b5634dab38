"""Where the order of a view is broken, and who is accused of it, on views made by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline import order
from pygroups.pipeline.block_scan import BLOCK
from tests.pipeline.scanned import Members, name_of, place_of, scanned
from tests.pipeline.spark_session import spark

__all__ = ["spark"]
pytestmark = pytest.mark.slow

LINE = "b1 c1 d1 b2 c2"
SWAPPED = "b1 d1 c1 b2 c2"
Accused = set[tuple[str, str, str]]  # what, the member accused, the run


class View(NamedTuple):
    """Its members' deliveries, what has to be told of them, and the runs that the exact step may look at."""

    members: Members
    told: Accused
    looked_at: frozenset[str] | None = None


VIEWS = {
    "one_differs_from_most": View({"A": LINE, "B": LINE, "C": SWAPPED, "D": LINE}, {("crossed", "C", "c1")}),
    "the_coordinator_differs_from_most": View({"A": SWAPPED, "B": LINE, "C": LINE}, {("crossed", "A", "c1")}),
    "two_differ_from_most": View(
        {"A": LINE, "B": SWAPPED, "C": SWAPPED, "D": LINE, "E": LINE}, {("crossed", "B", "c1"), ("crossed", "C", "c1")}
    ),
    "of_as_many_the_one_without_the_coordinator": View({"A": LINE, "B": SWAPPED}, {("crossed", "B", "c1")}),
    "the_coordinator_swapped_and_has_as_many": View({"A": SWAPPED, "B": LINE}, {("crossed", "B", "d1")}),
    "one_lacks_a_run": View({"A": LINE, "B": LINE, "C": "c1 d1 b2 c2", "D": LINE}, {("lacking", "C", "b1")}),
    "the_coordinator_lacks_a_run": View({"A": "c1 d1 b2 c2", "B": LINE, "C": LINE}, {("lacking", "A", "b1")}),
    "one_alone_has_a_run": View({"A": LINE, "B": "e1 " + LINE, "C": LINE}, {("extra", "B", "e1")}),
    # C died early, D ahead of all; another body is no matter of order.
    "behind_or_ahead": View({"A": LINE, "B": "b1 c1! d1 b2 c2", "C": "b1 c1", "D": LINE + " e1 e2"}, set()),
    "runs_that_most_never_saw": View(
        {"A": LINE, "B": LINE, "C": LINE + " c3 d2", "D": LINE + " d2 c3"}, {("crossed", "D", "c3")}
    ),
    "one_swapped_and_another_has_a_body_of_its_own": View(
        {"A": LINE, "B": SWAPPED, "C": LINE, "D": "b1 c1! d1 b2 c2", "E": LINE}, {("crossed", "B", "c1")}
    ),
    "one_run_moved_behind_three": View(
        {"A": "b1 c1 d1 b2", "B": "b2 b1 c1 d1", "C": "b1 c1 d1 b2"},
        {("crossed", "B", "b1"), ("crossed", "B", "c1"), ("crossed", "B", "d1")},
    ),
    "a_repetition": View({"A": LINE, "B": "b1 c1 c1 d1 b2 c2", "C": LINE}, set()),
    "no_position": View({"A": LINE, "B": "b1 d1? c1 b2 c2", "C": LINE}, set()),
    # No pair is in opposite order anywhere, so something has to be lacking.
    "a_cycle": View(
        {"A": "a1 b1", "B": "b1 c1", "C": "c1 a1"},
        {("extra", "C", "c1"), ("lacking", "B", "a1"), ("lacking", "C", "b1")},
    ),
    # Each block has a run of its own; the swap is in the second one.
    "the_second_block": View(
        {
            "A": f"b1*{BLOCK} c1 d1*{BLOCK - 1} e1*{BLOCK}",
            "B": f"b1*{BLOCK} d1*{BLOCK - 1} c1 e1*{BLOCK}",
        },
        {("crossed", "B", "c1")},
        frozenset({"c1", "d1"}),
    ),
    # The second block itself is equal, but c1 is delivered before it at one and behind it at the others.
    "across_an_equal_block": View(
        {
            "A": f"a1*{BLOCK} b1*{BLOCK} c1*{BLOCK} d1*{BLOCK} a2*{BLOCK}",
            "B": f"c1*{BLOCK} b1*{BLOCK} a1*{BLOCK} d1*{BLOCK} a2*{BLOCK}",
            "C": f"a1*{BLOCK} b1*{BLOCK} c1*{BLOCK} d1*{BLOCK} a2*{BLOCK}",
        },
        {("crossed", "B", "b1"), ("crossed", "B", "a1")},
        frozenset({"a1", "b1", "c1"}),
    ),
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Any:
    return scanned(spark, [view.members for view in VIEWS.values()])


@pytest.fixture(scope="module")
def told(tables: Any) -> dict[str, list[Any]]:
    names = list(VIEWS)
    rows = order.compared(tables).collect()
    return {name: [row for row in rows if names[place_of(row["view"])] == name] for name in names}


@pytest.mark.parametrize("name", VIEWS)
def test_who_is_accused_of_what(told: dict[str, list[Any]], name: str) -> None:
    accused = [(row["what"], name_of(row["member"]), _run(row)) for row in told[name]]
    assert set(accused) == VIEWS[name].told
    assert len(set(accused)) == len(accused), "one witness for a member and a run"
    assert all(row["other"] != row["member"] for row in told[name])


def test_blocks_are_compared_only_where_they_differ_or_until_the_sets_are_the_same_again(tables: Any) -> None:
    names = list(VIEWS)
    rows = order._rows(tables).select("view", "sender", "first").distinct().collect()
    for name, view in VIEWS.items():
        if view.looked_at is not None:
            assert {_run(row) for row in rows if names[place_of(row["view"])] == name} == view.looked_at, name


def _run(row: Any) -> str:
    return f"{name_of(row['sender']).lower()}{row['first']}"
