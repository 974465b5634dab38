"""buffers-drain: after quiet, no window, table or queue holds anything."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import VIRTUAL_SYNCHRONY, Count, PromiseRule, findings, words
from pygroups.pipeline.tables import Tables

_TOLD = "kind = 'stats' and index > quiet_index"
_SILENT = "marked and coalesce(last_stats, 0) < quiet_index"
_FULL = "exists(map_values(gauges), gauge -> gauge <> 0)"


def exact(tables: Tables) -> DataFrame:
    """A fact is one `stats` record after quiet; a member that wrote no such record after its mark is skipped."""
    full = "filter(map_entries(gauges), gauge -> gauge.value <> 0)"
    named = F.expr(f"array_join(transform({full}, gauge -> concat(gauge.key, ' ', gauge.value)), ', ')")
    return findings(
        tables.events.where(f"{_TOLD} and {_FULL}"), words("still holds after quiet: ", named), member="life"
    )


RULE = PromiseRule(
    "buffers-drain",
    VIRTUAL_SYNCHRONY,
    "views",
    "no member recorded its gauges after quiet",
    counts=(
        Count("events", judged=f"if({_TOLD}, 1, 0)", suspect=f"{_TOLD} and {_FULL}"),
        Count(
            "lives",
            skipped={"a member wrote no stats after its quiet mark": f"if({_SILENT}, 1, 0)"},
        ),
    ),
    exact=exact,
    columns={"lives": {"last_stats": "max(if(kind = 'stats', index, null))"}},
    needs=frozenset({"stats"}),
)
