"""The gap at a failover: the longest time without a delivery at each survivor of a fault."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.history import History
from pygroups.pipeline.measures.kinds import DELIVERED, LIFE, by_member
from pygroups.pipeline.measures.timeline import mark_records

RESOLUTION_US: Final = 5_000
AFTER_US: Final = 10_000_000
BEFORE_US: Final = 250_000
_NEAREST: Final = "last(mark, true) over (partition by life order by mono_us {0})"
_MARKS_OF_GAP: Final = f"""explode(array(
    if(from_us <= earlier.at_us + {AFTER_US}, earlier, null),
    if(mono_us >= later.at_us - {BEFORE_US}, later, null))) as candidate"""


def failover_gaps(history: History) -> DataFrame:
    """Per `fault` mark and member that it does not name: the longest time between two deliveries around the mark.

    A gap counts if it ends after the mark, and begins at most 10 s after the mark and before the next mark. A mark may
    be written a moment after its fault, so a gap that ended up to a quarter of a second before the mark counts too.
    `gap_us` is by the member's monotonic clock; gaps under 5 ms do not count. An idle group has long gaps without any
    fault.
    """
    mark = "struct(mark_us, reason, named, mono_us as at_us) as mark"
    survived = by_member(mark_records(history, ("fault",)), history, "address").where(
        "not array_contains(named, address)"
    )
    faults = survived.selectExpr("life", "mono_us", mark)
    both = _delivery_gaps(history).unionByName(faults, allowMissingColumns=True)
    near = both.selectExpr(  # in descending order: an unbounded following frame would look at every later row for each
        "*", f"{_NEAREST.format('asc')} as earlier", f"{_NEAREST.format('desc')} as later"
    )
    found = near.where("from_us is not null").selectExpr("life", "mono_us - from_us as pause_us", _MARKS_OF_GAP)
    gaps = found.groupBy("life", "candidate").agg(F.max("pause_us").alias("gap_us")).where("candidate is not null")
    return by_member(gaps, history).selectExpr(
        *LIFE, "candidate.mark_us", "candidate.reason", "candidate.named", "gap_us"
    )


def _delivery_gaps(history: History) -> DataFrame:
    """Pauses between deliveries: from `from_us` to `mono_us`. Deliveries are put into stretches first, so few are left.

    A pause within a stretch is shorter than the stretch; a pause that spans two is measured exactly.
    """
    stretches = (
        history.runs.where(DELIVERED)
        .groupBy("life", F.expr(f"mono_us div {RESOLUTION_US}").alias("stretch"))
        .agg(F.min("mono_us").alias("mono_us"), F.max("mono_us").alias("last_us"))
    )
    before = "lag(last_us) over (partition by life order by stretch) as from_us"
    return stretches.selectExpr("life", "mono_us", before).where("from_us is not null")
