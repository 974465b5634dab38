"""A history as it was ingested: its tables, whole, before a rule decides how far a journal can be trusted."""

from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class History:
    """The tables of `docs/journal.md`, with every row of every commit.

    `runs` holds sends and deliveries, `votes` the kinds `purge` and `stable`, `events` all other records. Members,
    views and histories stand in them as 64-bit keys, which `names` turns into names. `manifest` has a row for each
    range of bytes that was ingested.
    """

    runs: DataFrame
    events: DataFrame
    votes: DataFrame
    names: DataFrame
    manifest: DataFrame
