"""A Spark session for tests, made once; a fixture of the same name in a conftest takes its place."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pygroups.pipeline.session import make_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Tests run each query once over a few rows, as an audit of small journals does.
    yield make_session(master="local[2]", small=True)
