"""The Spark data source `pygroups`: journals as tables. `docs/guides/spark.md` is for its users.

A wrong request is refused while the query is planned, before a task runs, in one sentence without a traceback.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from pygroups.journal.reader import NotAJournal
from pygroups.pipeline.source_ordered import OrderedStream
from pygroups.pipeline.source_reader import reader_of
from pygroups.pipeline.source_request import STREAM_ALONE, Request, WrongRequest, request_of
from pygroups.pipeline.source_stream import JournalsStream

_NOT_FOUND: Final = "DATA_SOURCE_NOT_FOUND"
_WITHOUT_PYGROUPS: Final = (
    "the Python that Spark runs does not have pygroups: stop Spark, set PYSPARK_PYTHON={python} in the environment, "
    "and start Spark again"
)
_HIDE_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"


def read(
    spark: SparkSession,
    *paths: str | Path,
    table: str = "records",
    columns: Sequence[str] | None = None,
    partitions: int = 0,
) -> DataFrame:
    """A table of the journals in `paths` (folders of journals, of groups or of incarnations; or patterns of such).

    Relative paths count from this process's folder; with Spark Connect, whose server has the files, from the server's.
    `columns` are the ones that are decoded, all by default; `partitions` is the number of tasks to share the bytes out
    to, by default 2 for each core. Raises AnalysisException, with nothing around its sentence, before Spark is asked;
    with Spark Connect it is the server that refuses paths. Raises AnalysisException too if the Python that Spark runs
    does not have pygroups.
    """
    options = {"table": table, "partitions": str(partitions)}
    here = not type(spark).__module__.startswith("pyspark.sql.connect")
    places = [os.path.abspath(path) if here and "://" not in str(path) else str(path) for path in paths]
    try:
        request = request_of(options, places)
        schema = request.schema_of(columns)
        if here:
            request.segments()
    except (NotAJournal, WrongRequest) as error:
        raise AnalysisException(str(error)) from None
    try:
        return spark.read.format("pygroups").options(**options).schema(schema).load(request.paths)
    except Exception as error:  # Py4JJavaError, or an error of Spark Connect: told apart by its class alone
        if _NOT_FOUND not in str(error):
            raise
        raise AnalysisException(_WITHOUT_PYGROUPS.format(python=sys.executable)) from None


class GroupsDataSource(DataSource):
    """`spark.read.format("pygroups").option("table", "records").load(DIR)`: journals of one or more groups."""

    @classmethod
    def name(cls) -> str:
        return "pygroups"

    def schema(self) -> StructType:
        with _refusing():
            request = self._request()
            request.segments()
            return request.schema_of(None)

    def reader(self, schema: StructType) -> DataSourceReader:
        with _refusing():
            request = self._request()
            request.check(schema)
            if request.table == STREAM_ALONE:
                raise WrongRequest(f"table {STREAM_ALONE!r} can be read as a stream only: use spark.readStream")
            return reader_of(request, request.segments(), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _Refusing(self, schema)

    def _request(self) -> Request:
        return request_of(dict(self.options))


class _Refusing(DataSourceStreamReader):
    """A stream whose errors are sentences.  Spark asks it for offsets and partitions before a task runs."""

    def __init__(self, source: GroupsDataSource, schema: StructType) -> None:
        self._source, self._schema = source, schema
        self._made: JournalsStream | OrderedStream | None = None

    def _stream(self) -> JournalsStream | OrderedStream:
        """Made at the first call: Spark loses an error that is raised before it has a reader."""
        if self._made is None:
            request = self._source._request()
            request.check(self._schema)
            kind = OrderedStream if request.table == STREAM_ALONE else JournalsStream
            self._made = kind(request, self._schema)
        return self._made

    def initialOffset(self) -> dict[str, Any]:
        with _refusing():
            return self._stream().initialOffset()

    def getDefaultReadLimit(self) -> ReadLimit:
        with _refusing():
            return self._stream().getDefaultReadLimit()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with _refusing():
            return self._stream().latestOffset(start, limit)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with _refusing():
            return self._stream().partitions(start, end)

    def commit(self, end: dict[str, Any]) -> None:
        self._stream().commit(end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._stream().read(partition)


@contextmanager
def _refusing() -> Iterator[None]:
    """Raise the error of a wrong request as the error that Spark shows.

    Spark's own switch leaves the traceback out. The switch is set for this process only, which plans one read for Spark
    and ends with the error.
    """
    try:
        yield
    except (NotAJournal, WrongRequest) as error:
        os.environ[_HIDE_TRACEBACK] = "1"
        raise AnalysisException(str(error)) from None
