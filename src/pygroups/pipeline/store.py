"""The store of an audit's tables between its steps: Parquet in a folder."""

from pathlib import Path

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F


class Store:
    """Keeps tables below `folder`.

    With `lasting` the user keeps the folder, and tables are partitioned by group and day. With `small` a table that is
    read again is one partition.
    """

    def __init__(self, session: SparkSession, folder: Path, *, lasting: bool = False, small: bool = False) -> None:
        self.lasting = lasting
        self._session = session
        self._folder = folder
        self.small = small

    def keep(self, name: str, frame: DataFrame) -> DataFrame:
        """Compute a table once; `name` is its path below the folder, for instance "silver/views"."""
        path = str(self._folder / name)
        writer = frame.write.mode("overwrite")
        by = [column for column in ("group", "day") if column in frame.columns]
        if self.lasting and by:
            writer = frame.repartition(*(F.col(c) for c in by)).write.mode("overwrite").partitionBy(*by)
        writer.parquet(path)
        kept = literally(self._session).schema(frame.schema).parquet(path)
        return kept.coalesce(1) if self.small else kept


def literally(session: SparkSession) -> DataFrameReader:
    """A reader that takes paths as they are: in a folder `runs [old]` no character is a pattern."""
    return session.read.option("__globPaths__", "false")
