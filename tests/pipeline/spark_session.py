"""A Spark session for tests, made once; a fixture of the same name in a conftest takes its place."""

import os
from collections.abc import Iterator
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.session import make_session

# Tests run each query once, so compiling it thoroughly costs more than it saves: half the processor time.
SHORT_LIVED = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with mock.patch.dict(os.environ, SHORT_LIVED):
        session = make_session(master="local[2]")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
