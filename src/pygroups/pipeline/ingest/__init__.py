"""Journals become a table: `ingest` appends new records to Parquet files that Spark, Arrow and others read.

`docs/guides/ingest.md` describes the table, and `layout.py` its schemas.
"""

from pygroups.pipeline.ingest.compaction import Compacted, compact
from pygroups.pipeline.ingest.ingest import IngestResult, ingest, ingest_segments
from pygroups.pipeline.ingest.plan import NotTheSame
from pygroups.pipeline.ingest.table import NotATable, Table

__all__ = ["Compacted", "IngestResult", "NotATable", "NotTheSame", "Table", "compact", "ingest", "ingest_segments"]
