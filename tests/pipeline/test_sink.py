"""Spark's sink with a real group: rows of a DataFrame and of a stream reach a member, each once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from pygroups import Message
from pygroups.contrib.spark import Rows
from pygroups.sync import Channel
from tests.patience import patience

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def texts(spark: SparkSession, *rows: str) -> DataFrame:
    return spark.createDataFrame([(row,) for row in rows], "payload string").coalesce(1)


def test_rows_reach_the_members_of_a_group(spark: SparkSession, tmp_path: Path) -> None:
    found, lines = f"dir:{tmp_path / 'found'}", tmp_path / "lines"
    options = {"group": "rows", "discovery": found, "timeout": str(patience(60))}
    lines.mkdir()
    (lines / "one.txt").write_text("streamed 1\nstreamed 2\n")
    with Channel("rows", name="reader", discovery=found) as channel:
        texts(spark, "first", "second").write.format("pygroups").options(**options).mode("append").save()
        arrived = spark.readStream.text(str(lines)).withColumnRenamed("value", "payload")
        query = arrived.writeStream.format("pygroups").options(**options)
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        assert query.start().awaitTermination(int(patience(120)))
        rows, got = Rows(), []
        for event in channel:
            if isinstance(event, Message) and (payload := rows.take(event.payload)) is not None:
                got.append(payload)
            if len(got) == 4:
                break
    assert got == [b"first", b"second", b"streamed 1", b"streamed 2"]


def test_a_write_without_a_group_is_refused(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="give the group that the rows go to"):
        texts(spark, "first").write.format("pygroups").mode("append").save()
