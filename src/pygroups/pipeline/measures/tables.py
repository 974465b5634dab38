"""The measures of a history as tables, by name."""

from pyspark.sql import DataFrame

from pygroups.pipeline.history import History
from pygroups.pipeline.measures.blocked import blocked_spans
from pygroups.pipeline.measures.changes import view_changes
from pygroups.pipeline.measures.failover import failover_gaps
from pygroups.pipeline.measures.latency import delivery_latency
from pygroups.pipeline.measures.losses import drops, retransmissions
from pygroups.pipeline.measures.runs import run_sizes
from pygroups.pipeline.measures.throughput import throughput
from pygroups.pipeline.measures.timeline import lives, marks, view_spans


def measures_of(history: History) -> dict[str, DataFrame]:
    """Every measure of a history, not yet computed."""
    return {
        "latency": delivery_latency(history),
        "throughput": throughput(history),
        "run_sizes": run_sizes(history),
        "retransmissions": retransmissions(history),
        "drops": drops(history),
        "view_changes": view_changes(history),
        "blocked": blocked_spans(history),
        "failover_gaps": failover_gaps(history),
        "lives": lives(history).drop("kinds"),
        "view_spans": view_spans(history),
        "marks": marks(history),
    }
