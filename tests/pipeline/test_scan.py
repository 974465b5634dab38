"""The shared passes over deliveries, on views made by hand."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.scan import BLOCK, digest_of
from tests.pipeline.scanned import life_of, name_of, scanned
from tests.pipeline.spark_session import spark

__all__ = ["spark"]
pytestmark = pytest.mark.slow
HALF = BLOCK // 2


def test_a_stream_tells_what_does_not_continue_its_senders_numbers(spark: SparkSession) -> None:
    tables = scanned(spark, {"A": "b1 b2 c1", "B": "b2 b3 b1 c1", "C": "b1*2 b2 c1"})
    rows = tables.streams.where("kind = 1").select("life", "sender", "irregular", "behind", "last", "messages")
    found = {(name_of(r["life"]), name_of(r["sender"])): tuple(r)[2:] for r in rows.collect()}
    assert found["A", "B"] == (0, 0, 2, 2)
    assert found["B", "B"] == (2, 1, 3, 3)
    assert found["C", "B"] == (1, 1, 2, 3)
    assert found["B", "C"] == (0, 0, 1, 1)


def test_an_end_in_the_middle_of_a_block_is_compared_at_equal_length(spark: SparkSession) -> None:
    """B died in the first block, C in the second one: both had what A had up to there."""
    line = f"b1*{HALF} c1*7 b{HALF + 1}*{HALF} c8 c9 c10"
    tables = scanned(spark, {"A": line, "B": " ".join(line.split()[:2]), "C": " ".join(line.split()[:4])})
    rows = tables.blocks.select("life", "block", "slot", "members", "differs", "deviates", "messages").collect()
    assert not any(row["differs"] or row["deviates"] for row in rows)
    alone = [(name_of(row["life"]), row["messages"]) for row in rows if row["members"] == 1]
    assert alone == [("A", 2)]


def test_only_the_block_that_differs_is_told_to_differ(spark: SparkSession) -> None:
    """The swap stands at the edge of two blocks."""
    runs = [f"b{1 + number * HALF}*{HALF}" for number in range(6)]
    swapped = [runs[0], runs[2], runs[1], *runs[3:]]
    tables = scanned(spark, {"A": " ".join(runs), "B": " ".join(swapped), "C": " ".join(runs)})
    rows = tables.blocks.collect()
    assert {row["block"] for row in rows if row["differs"]} == {0, 1}
    assert {(name_of(row["life"]), row["block"]) for row in rows if row["deviates"]} == {("B", 0), ("B", 1)}
    assert {row["members"] for row in rows} == {3}


def test_what_has_no_position_is_in_no_block(spark: SparkSession) -> None:
    tables = scanned(spark, {"A": "b1 c1? b2", "B": "b1 c1 b2"})
    rows = tables.blocks.where("block is null").collect()
    assert [(name_of(row["life"]), row["differs"], row["deviates"]) for row in rows] == [("A", False, True)]


def test_without_a_common_order_each_sender_has_a_lane(spark: SparkSession) -> None:
    """The members deliver in different orders; C died before it had all of c, and had more of b than B."""
    tables = scanned(spark, {"A": "b1 b2 c1 c2", "B": "c1 b1 c2", "C": "b1 b2 c1"}, "fifo")
    rows = tables.blocks.collect()
    assert {row["lane"] for row in rows} == {life_of("b"), life_of("c")}
    assert not any(row["differs"] or row["deviates"] for row in rows)
    other = scanned(spark, {"A": "b1 b2 c1 c2", "B": "c1 b1 b2! c2"}, "fifo")
    assert {name_of(row["lane"]) for row in other.blocks.where("differs").collect()} == {"B"}


def test_one_member_stands_for_all_that_had_the_same(spark: SparkSession) -> None:
    tables = scanned(spark, {"A": "b1 b2 c1", "B": "b1 b2 c1", "C": "b1 b2"})
    rows = tables.runs.select("deliveries", "sends", "low_label", "high_label").collect()
    assert [(row["deliveries"], row["sends"]) for row in rows] == [(1, 1)] * 3
    altered = scanned(spark, {"A": "b1 b2 c1", "B": "b1 b2 c1", "C": "b1 b2!"})
    rows = altered.runs.where("low_label <> high_label").select("sender", "first", "deliveries").collect()
    assert [(name_of(row["sender"]), row["first"], row["deliveries"]) for row in rows] == [("B", 2, 2)]


def test_behind_a_damaged_journal_every_delivery_is_counted(spark: SparkSession) -> None:
    tables = scanned(spark, {"A": "b1*5", "B": "b1*5", "C": "b1*5"}, whole=False)
    (row,) = tables.runs.collect()
    assert (row["deliveries"], row["delivered"], row["origin_whole"]) == (3, 15, False)


@pytest.mark.parametrize("other", [[5, 7, 7, 7], [5], [5, 7, 8, 6], [5, 5, 7]])
def test_a_digest_sees_pairs_and_what_cancels_out(spark: SparkSession, other: list[int]) -> None:
    def digest(values: list[int]) -> tuple[int, ...]:
        frame = spark.createDataFrame([(value << 40 | value,) for value in values], "value bigint")
        return tuple(frame.selectExpr(*digest_of("value").values()).first() or ())

    assert digest(other) != digest([5, 7, 7])
    assert digest([7, 5, 7]) == digest([5, 7, 7])
