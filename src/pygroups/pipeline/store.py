"""Where an audit keeps its tables between steps: Parquet in a folder, or, on a cluster without one, Spark's memory."""

import atexit
import shutil
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

_AT_ONCE: Final = 3  # steps that share the cores: what one waits for, another uses


class Store:
    """Keeps tables. `folder` None means a temporary folder on this machine, gone at the end of the process.

    With `in_memory` nothing is written; executors elsewhere could not read this machine's temporary folder.
    """

    def __init__(self, session: SparkSession, folder: Path | None, *, in_memory: bool, small: bool = False) -> None:
        self._session = session
        self._small = small
        self._partitioned = folder is not None
        self._folder = folder
        if folder is None and not in_memory:
            self._folder = Path(tempfile.mkdtemp(prefix="pygroups-audit-"))
            atexit.register(shutil.rmtree, self._folder, ignore_errors=True)

    def keep(self, name: str, frame: DataFrame) -> DataFrame:
        """Compute a table once; `name` is its path below the folder, for instance "silver/views"."""
        if self._folder is None:
            return frame.persist()
        path = str(self._folder / name)
        writer = frame.write.mode("overwrite")
        by = [column for column in ("group", "day") if column in frame.columns]
        if self._partitioned and by:
            writer = frame.repartition(*(F.col(c) for c in by)).write.mode("overwrite").partitionBy(*by)
        writer.parquet(path)
        kept = self._session.read.schema(frame.schema).parquet(path)
        return kept.coalesce(1) if self._small else kept

    def keep_all(self, frames: Mapping[str, Callable[[], DataFrame]]) -> dict[str, DataFrame]:
        """Several tables that do not need each other, at the same time."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            kept = {name: pool.submit(self.keep, name, frame()) for name, frame in frames.items()}
            return {name: future.result() for name, future in kept.items()}
