"""The shared passes over deliveries, on views made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pygroups.pipeline.block_scan import BLOCK, digest_of
from tests.pipeline.scanned import name_of, scanned
from tests.pipeline.spark_session import spark

__all__ = ["spark"]
pytestmark = pytest.mark.slow
HALF = BLOCK // 2
THREE = f"b1*{HALF} c1*7 b{HALF + 1}*{HALF} c8 c9 c10".split()
SIX = [f"b{1 + number * HALF}*{HALF}" for number in range(6)]

ORDERED = {
    "numbers": {"A": "b1 b2 c1", "B": "b2 b3 b1 c1", "C": "b1*2 b2 c1"},
    # B died in the first block, C in the second one: both had what A had up to there.
    "ragged": {"A": " ".join(THREE), "B": " ".join(THREE[:2]), "C": " ".join(THREE[:4])},
    # The swap stands at the edge of two blocks.
    "swapped": {"A": " ".join(SIX), "B": " ".join([SIX[0], SIX[2], SIX[1], *SIX[3:]]), "C": " ".join(SIX)},
    # B got further and is the reference.
    "no_position": {"A": "b1 c1? b2", "B": "b1 c1 b2 b3"},
    "same": {"A": "b1 b2 c1", "B": "b1 b2 c1", "C": "b1 b2"},
    "altered": {"A": "b1 b2 c1", "B": "b1 b2 c1", "C": "b1 b2!"},
}
# The members deliver in different orders; C died before it had all of c, and had more of b than B.
BY_SENDER = {
    "ragged": {"A": "b1 b2 c1 c2", "B": "c1 b1 c2", "C": "b1 b2 c1"},
    "altered": {"A": "b1 b2 c1 c2", "B": "c1 b1 b2! c2"},
}


class Scanned:
    """Rows of the tables of a view, by the name of the view."""

    def __init__(self, tables: Any, views: dict[str, Any]) -> None:
        self._places = list(views)
        self._rows = {name: getattr(tables, name).collect() for name in ("streams", "blocks", "runs", "in_doubt")}

    def of(self, table: str, view: str) -> list[Any]:
        group = f"g{self._places.index(view)}"
        return [row for row in self._rows[table] if row["group"] == group]


@pytest.fixture(scope="module")
def ordered(spark: SparkSession) -> Scanned:
    return Scanned(scanned(spark, list(ORDERED.values())), ORDERED)


@pytest.fixture(scope="module")
def by_sender(spark: SparkSession) -> Scanned:
    return Scanned(scanned(spark, list(BY_SENDER.values()), "fifo"), BY_SENDER)


def test_a_stream_tells_what_does_not_continue_its_senders_numbers(ordered: Scanned) -> None:
    rows = [row for row in ordered.of("streams", "numbers") if row["kind"] == 1]
    asked = ("irregular", "behind", "last", "messages")
    found = {(name_of(r["life"]), name_of(r["sender"])): tuple(r[name] for name in asked) for r in rows}
    assert found["A", "B"] == (0, 0, 2, 2)
    assert found["B", "B"] == (2, 1, 3, 3)
    assert found["C", "B"] == (1, 1, 2, 3)
    assert found["B", "C"] == (0, 0, 1, 1)


def test_an_end_in_the_middle_of_a_block_is_compared_at_equal_length(ordered: Scanned) -> None:
    rows = ordered.of("blocks", "ragged")
    assert not any(row["differs"] or row["deviates"] for row in rows)
    alone = [(name_of(row["life"]), row["messages"]) for row in rows if row["members"] == 1]
    assert alone == [("A", 2)]


def test_only_the_block_that_differs_is_told_to_differ(ordered: Scanned) -> None:
    rows = ordered.of("blocks", "swapped")
    assert {row["block"] for row in rows if row["differs"]} == {0, 1}
    assert {(name_of(row["life"]), row["block"]) for row in rows if row["deviates"]} == {("B", 0), ("B", 1)}
    assert {row["members"] for row in rows} == {3}


def test_what_has_no_position_is_in_no_block(ordered: Scanned) -> None:
    rows = [row for row in ordered.of("blocks", "no_position") if row["block"] is None]
    assert [(name_of(row["life"]), row["differs"], row["deviates"]) for row in rows] == [("A", False, True)]


def test_without_a_common_order_each_sender_has_a_lane(by_sender: Scanned) -> None:
    rows = by_sender.of("blocks", "ragged")
    assert {name_of(row["lane"]) for row in rows} == {"B", "C"}
    assert not any(row["differs"] or row["deviates"] for row in rows)
    assert {name_of(row["lane"]) for row in by_sender.of("blocks", "altered") if row["differs"]} == {"B"}


def test_one_member_stands_for_all_that_had_the_same(ordered: Scanned) -> None:
    assert [(row["deliveries"], row["sends"]) for row in ordered.of("runs", "same")] == [(1, 1)] * 3
    rows = [row for row in ordered.of("runs", "altered") if row["low_label"] != row["high_label"]]
    assert [(name_of(row["sender"]), row["first"], row["deliveries"]) for row in rows] == [("B", 2, 2)]


def test_deliveries_of_a_sender_whose_journal_ends_early_are_all_counted_and_no_others(spark: SparkSession) -> None:
    line = "b1*5 c1*2"
    rows = scanned(spark, [{"A": line, "B": line, "C": line}], broken="B").runs.collect()
    found = {name_of(r["sender"]): (r["deliveries"], r["delivered"], r["origin_whole"]) for r in rows}
    assert found == {"B": (3, 15, False), "C": (1, 2, True)}


def test_a_digest_sees_pairs_and_what_cancels_out(spark: SparkSession) -> None:
    sets = [[5, 7, 7], [5, 7, 7, 7], [5], [5, 7, 8, 6], [5, 5, 7], [7, 5, 7]]
    values = [(at, value << 40 | value) for at, one in enumerate(sets) for value in one]
    frame = spark.createDataFrame(values, "at int, value bigint")
    text = ", ".join(digest_of("value").values())
    rows = frame.groupBy("at").agg(F.expr(f"array({text})").alias("digest")).collect()
    digests = {row["at"]: tuple(row["digest"]) for row in rows}
    assert digests[0] == digests[5]
    assert len({digests[at] for at in range(5)}) == 5
