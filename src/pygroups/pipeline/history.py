"""A history as it was ingested: its tables, whole, before a rule decides how far a journal can be trusted."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


@dataclass(frozen=True)
class History:
    """The tables of `docs/journal.md`, with every row of every commit.

    `runs` holds sends and deliveries, `votes` the kinds `purge` and `stable`, `events` all other records.  Members,
    views and histories stand in them as 64-bit keys, which `names` turns into names.  `writers` has a row for each
    incarnation that wrote a record (`writers.py`).
    """

    runs: DataFrame
    events: DataFrame
    votes: DataFrame
    names: DataFrame
    writers: DataFrame

    def of_groups(self, groups: Sequence[str]) -> "History":
        """The rows of these groups alone."""
        wanted = F.col("group").isin(*groups)
        return History(**{field.name: getattr(self, field.name).where(wanted) for field in fields(self)})
