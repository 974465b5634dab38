"""Journals become a table: `ingest` appends what is new to Parquet files that Spark, Arrow and others read."""

from pygroups.pipeline.ingest.ingest import IngestResult, ingest
from pygroups.pipeline.ingest.table import NotATable, Table

__all__ = ["IngestResult", "NotATable", "Table", "ingest"]
