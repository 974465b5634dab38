"""The sentences of findings stay short in large groups."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.findings import names_in, parts_of
from tests.pipeline.spark_session import spark

__all__ = ["spark"]
pytestmark = pytest.mark.slow


def test_of_many_names_the_first_are_shown_and_the_others_are_counted(spark: SparkSession) -> None:
    arrays = ["array()", "array('A')", "array('A', 'B', 'C', 'D', 'E')", "transform(sequence(1, 40), n -> string(n))"]
    row = spark.range(1).selectExpr(*(f"{names_in(array)} as c{at}" for at, array in enumerate(arrays))).collect()[0]
    assert list(row) == ["", "A", "A, B, C, D, E", "1, 2, 3, 4, 5 and 35 more"]


def test_only_what_is_so_is_said(spark: SparkSession) -> None:
    rows = spark.range(3).select(parts_of(("id > 0", "concat('above ', 0)"), ("id > 1", "'above 1'"))).collect()
    assert [row[0] for row in rows] == ["", "above 0", "above 0; above 1"]
