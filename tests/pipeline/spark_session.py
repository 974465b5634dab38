"""A Spark session for tests, made once; a fixture of the same name in a conftest takes its place."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.session import make_session

SHORT_LIVED = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""The environment of the processes of a cluster in a test: they end before the second compiler has paid for itself."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Tests run each query once over a few rows, as an audit of small journals does.
    yield make_session(master="local[2]", small=True)
