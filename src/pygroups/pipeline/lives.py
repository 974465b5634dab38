"""Incarnations and views: how far each journal can be trusted, when its incarnation reached quiet, and which views it
installed.

A journal with a hole or a damaged place counts as ended before it: `end` is the first index that is not trusted, and
`whole` is false.  A whole journal whose end nothing proves is `open` (`endings.py`): what it lacks may be behind its
last record.  An incarnation reaches quiet with its `quiet` mark; in a history without marks with a `leave` after a
`stats` record whose gauges are all 0.  A delivery counts if its record stands in view `quiet_view` below index
`quiet_end`: below the mark, or, without marks, anywhere before the end.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.block_scan import DIGEST, digest_of

if TYPE_CHECKING:
    from pygroups.pipeline.tables import Recorded

_TOLD: Final = (
    "kind in ('view', 'leave', 'stop', 'stats', 'start', 'fault', 'heal', 'quiet', 'block', 'unblock')"
    " or kind = 'undelivered' and peer is null"
)
LISTED: Final = ("listed_runs", *(f"listed_{name}" for name in DIGEST))
_AT_ZERO: Final = "if(kind = 'stats', not exists(map_values(gauges), gauge -> gauge <> 0), null)"
_SETTLED: Final = f"""
    kind = 'leave' and not (reason <=> 'excluded') and last({_AT_ZERO}, true)
        over (partition by life order by index rows between unbounded preceding and current row)
"""
_STORY: Final = {
    "has_marks": "bool_or(kind in ('fault', 'heal', 'quiet'))",
    "mark_index": "max(if(kind = 'quiet', index, null))",
    "mark_view": "max_by(view, if(kind = 'quiet', index, null))",
    "leave_index": "min(if(kind = 'leave', index, null))",
    "settled_leave": "min(if(settled, index, null))",
    "stop_index": "max(if(kind = 'stop', index, null))",
    "stop_reason": "max_by(reason, if(kind = 'stop', index, null))",
    "first_view": "min(if(kind = 'view', index, null))",
    "last_view": "max_by(view, if(kind = 'view', index, null))",
    "fault_index": "min(if(kind = 'fault', index, null))",
    "heal_index": "max(if(kind = 'heal', index, null))",
    "healed_us": "max(if(kind = 'heal', mono_us, null))",
    "bound_us": "max(if(kind = 'start', gauges['bound_us'], null))",
    "listed_runs": "count_if(kind = 'undelivered')",
    **digest_of("if(kind = 'undelivered', xxhash64(life, first), null)", "listed_"),
}
"""What is known of a life from its events, beside what rules add: aggregates over the kinds in `_TOLD`."""
_LOST: Final = {
    "lost_messages": "sum(if(kind = 1, count, 0))",
    "lost_unicasts": "sum(if(kind in (2, 3), count, 0))",
}


def lives_of(recorded: "Recorded", columns: dict[str, str]) -> DataFrame:
    """One row per incarnation, with the columns that rules add (SQL aggregates over the events in `_TOLD`, by name).

    Columns: group, profile, services, ordered (multicasts have one order), history (null), host, address, life,
    linked, unknown, end, whole, open, own_last (the greatest number of an own multicast in an open journal, otherwise
    null), marked (the group has marks), has_marks (this incarnation has), quiet_index, quiet_view, quiet_end,
    leave_index, stop_index, stop_reason, first_view, last_view, fault_index, heal_index, healed_us, bound_us,
    listed_runs and the digest listed_bits, listed_low_sum and listed_high_sum (own runs listed as undelivered),
    lost_messages, lost_views and lost_unicasts
    (counts behind `end`).  Views are keys, the rest are indexes in the journal but for microseconds.
    """
    ends = recorded.lives.select("life", "end")
    told = recorded.history.events.where(_TOLD).join(ends, "life").where("index < end")
    steps = recorded.gathered(told).select(
        "life", "index", "kind", "view", "reason", "mono_us", "gauges", "first", F.expr(_SETTLED).alias("settled")
    )
    story = steps.groupBy("life").agg(*(F.expr(text).alias(name) for name, text in (_STORY | columns).items()))
    rows = recorded.lives.join(story, "life", "left")
    rows = rows.selectExpr("*", "coalesce(max(has_marks) over (partition by group), false) as marked")
    lost = _lost(recorded) if not recorded.whole else None
    rows = rows if lost is None else rows.join(lost, "life", "left")
    rows = rows.join(_own_last(recorded), "life", "left") if recorded.open else rows
    own_last = (
        "if(open, coalesce(own_last, 0L), null) as own_last" if recorded.open else "cast(null as bigint) as own_last"
    )
    behind = ("lost_messages", "lost_views", "lost_unicasts")
    return rows.selectExpr(
        *("group", "profile", "services", "array_contains(services, 'TOTAL') as ordered"),
        *("cast(null as bigint) as history", "host", "address", "life", "linked", "unknown"),
        *("`end`", "whole", "open", own_last),
        *("marked", "coalesce(has_marks, false) as has_marks"),
        "if(marked, mark_index, settled_leave) as quiet_index",
        "case when marked then mark_view when settled_leave is not null then last_view end as quiet_view",
        "case when marked then mark_index when settled_leave is not null then end end as quiet_end",
        *("leave_index", "stop_index", "stop_reason", "first_view", "last_view"),
        *("fault_index", "heal_index", "healed_us", "bound_us"),
        *(f"coalesce({name}, 0L) as {name}" for name in LISTED),
        *columns,
        *(f"coalesce({name}, 0L) as {name}" if lost is not None else f"0L as {name}" for name in behind),
    )


def _own_last(recorded: "Recorded") -> DataFrame:
    """The greatest number of an own multicast in each open journal."""
    going_on = recorded.lives.where("open").select("life")
    sends = recorded.history.runs.where("kind = 0").select("life", "first", "count").join(going_on, "life")
    return sends.groupBy("life").agg(F.expr("max(first + count - 1)").alias("own_last"))


def _lost(recorded: "Recorded") -> DataFrame:
    """Counts of the records behind the end of damaged journals: no rule judges them."""
    ended = recorded.lives.where("not whole").select("life", "end")
    runs = recorded.history.runs.select("life", "index", "kind", "count").join(ended, "life").where("index >= end")
    views = (
        recorded.history.events.where("kind = 'view'").select("life", "index").join(ended, "life").where("index >= end")
    )
    lost = runs.groupBy("life").agg(*(F.expr(text).alias(name) for name, text in _LOST.items()))
    return lost.join(views.groupBy("life").agg(F.count("index").alias("lost_views")), "life", "full")


def views_of(recorded: "Recorded", lives: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """One row per view as a member installed it, with the columns that rules add (SQL text by name).

    `previous` and `next` are the views installed before it and after it at this member, in the order of the journal;
    `named` is the predecessor that the record names. `before` has the members of the view `previous`. `epoch` counts
    the views that began with a given state: numbers of messages are followed within one epoch.
    """
    known = lives.selectExpr(
        *("life", "profile", "address", "linked", "unknown", "`end`", "marked", "has_marks"),
        *("quiet_index", "quiet_view", "quiet_end", "fault_index"),
    )
    installed = recorded.history.events.where("kind = 'view'").join(known, "life").where("index < end")
    member = "over (partition by life order by index)"
    return recorded.gathered(installed).selectExpr(
        *("group", "profile", "history", "life", "address", "linked", "unknown", "index", "mono_us", "time_us", "day"),
        *("view", "view_number", "view_creator", "members", "transitional", "subgroups", "digest", "previous as named"),
        *("quiet_index", "quiet_view", "quiet_end", "fault_index", "marked", "has_marks"),
        f"lead(view) {member} as next",
        f"lag(view) {member} as previous",
        f"lag(members) {member} as before",
        f"sum(if(digest is null, 0L, 1L)) {member} as epoch",
        *(f"{text} as {name}" for name, text in columns.items()),
    )
