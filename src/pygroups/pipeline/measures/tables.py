"""The measures that an audit keeps as tables, by name."""

from pyspark.sql import DataFrame

from pygroups.pipeline.measures.blocked import blocked_spans
from pygroups.pipeline.measures.changes import view_changes
from pygroups.pipeline.measures.failover import failover_gaps
from pygroups.pipeline.measures.latency import delivery_latency
from pygroups.pipeline.measures.losses import drops, retransmissions
from pygroups.pipeline.measures.runs import run_sizes
from pygroups.pipeline.measures.throughput import throughput
from pygroups.pipeline.measures.timeline import lives, marks, view_spans


def measures_of(records: DataFrame) -> dict[str, DataFrame]:
    """Every measure of these records, not yet computed. Records are read many times: cache them or read Parquet."""
    life_rows = lives(records)
    return {
        "latency": delivery_latency(records),
        "throughput": throughput(records),
        "run_sizes": run_sizes(records),
        "retransmissions": retransmissions(records),
        "drops": drops(records),
        "view_changes": view_changes(records),
        "blocked": blocked_spans(records, life_rows),
        "failover_gaps": failover_gaps(records),
        "lives": life_rows.drop("kinds"),
        "view_spans": view_spans(records, life_rows),
        "marks": marks(records),
    }
