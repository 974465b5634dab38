"""The rows of a timeline: the incarnations of each process, their views, and the faults of the group."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pygroups.journal.schema import MARKS
from pygroups.pipeline.history import History
from pygroups.pipeline.measures.kinds import LIFE, amounts, by_member

MARK_APART_US: Final = 1_000_000
ENDS_A_LIFE: Final = "(?i)kill|crash"
_ENDING: Final = """case
    when array_contains(kinds, 'stop') then 'stopped'
    when coalesce(array_contains(named, address), false) or came_back
        or coalesce(to_us < last_view_us and not array_contains(last_members, address), false) then 'cut off'
    else 'open' end as ending"""
_LIFE_COLUMNS: Final = (
    *(*LIFE, "address", "profile", "host", "from_us", "to_us", "life", "kinds", "stop_reason"),
    *("coalesce(views, 0L) as views", "coalesce(sent_messages, 0L) as messages_sent"),
    *("coalesce(delivered_messages, 0L) as messages_delivered", "coalesce(sent_bytes, 0L) as bytes_sent"),
    _ENDING,
)


def lives(history: History) -> DataFrame:
    """One row per incarnation of a member: its first and last record, its work, and its end.

    `ending` is `stopped`, `cut off` or `open`.  An incarnation that stopped wrote the reason, in `stop_reason`.  An
    incarnation that was cut off wrote no stop; in addition a mark names it as killed or crashed, or its name came back,
    or a last view of the group that is younger than its last record does not contain it.  An open incarnation may still
    be running.  `life` counts the incarnations of one name from 1; `kinds` are those of its records.
    """
    known = history.writers.join(amounts(history), "life", "left").join(_own_story(history), "life", "left")
    told = known.join(_story_of_group(history), "group", "left")
    of_name = "over (partition by group, member order by from_us, incarnation)"
    return told.selectExpr(
        "* except (life)", f"row_number() {of_name} as life", f"lead(incarnation) {of_name} is not null as came_back"
    ).selectExpr(*_LIFE_COLUMNS)


def _own_story(history: History) -> DataFrame:
    return (
        history.events.where("kind in ('view', 'stop')")
        .groupBy("life")
        .agg(
            F.expr("count_if(kind = 'view')").alias("views"),
            F.expr("max(if(kind = 'stop', coalesce(reason, 'no reason given'), null))").alias("stop_reason"),
        )
    )


def _story_of_group(history: History) -> DataFrame:
    """Per group the members of its last view, and each member that a mark calls killed or crashed."""
    ends = f"kind = 'fault' and reason rlike '{ENDS_A_LIFE}'"
    found = (
        history.events.where(f"kind = 'view' or {ends}")
        .groupBy("group")
        .agg(
            F.expr("max(if(kind = 'view', time_us, null))").alias("last_view_us"),
            F.expr("max_by(members, if(kind = 'view', time_us, null))").alias("last_members"),
            F.expr("collect_set(if(kind = 'fault', members, null))").alias("named"),
        )
    )
    return found.selectExpr("group", "last_view_us", "last_members", "array_distinct(flatten(named)) as named")


def view_spans(history: History) -> DataFrame:
    """One row per view that a member installed: from its `view` record to its next one, or to its last record."""
    spans = history.events.where("kind = 'view'").selectExpr(
        *("life", "view_number", "view_creator", "members", "primary"),
        "coalesce(size(subgroups), 0) > 0 as merged",
        "time_us as from_us",
        "lead(time_us) over (partition by life order by index) as next_us",
    )
    columns = ("view_number", "view_creator", "members", "primary", "merged", "from_us")
    return by_member(spans, history, "address", "to_us").selectExpr(
        *LIFE, "address", *columns, "coalesce(next_us, to_us) as to_us"
    )


def mark_records(history: History, kinds: tuple[str, ...] = MARKS) -> DataFrame:
    """Every `fault`, `heal` and `quiet` record; `mark_us` is when the first member wrote that mark.

    A mark goes into the journal of each member that runs. Records of one kind, reason and `named` members that follow
    each other within a second are one mark.
    """
    marks = history.events.where(F.col("kind").isin(*kinds)).selectExpr(
        *("group", "life", "time_us", "mono_us", "kind", "coalesce(reason, '') as reason"),
        "coalesce(array_sort(members), cast(array() as array<string>)) as named",
    )
    same = Window.partitionBy("group", "kind", "reason", "named").orderBy("time_us")
    begins = F.coalesce(F.col("time_us") - F.lag("time_us").over(same) > MARK_APART_US, F.lit(True))
    begun = marks.select("*", F.when(begins, F.col("time_us")).alias("begins_us"))
    return begun.select(*marks.columns, F.last("begins_us", ignorenulls=True).over(same).alias("mark_us"))


def marks(history: History) -> DataFrame:
    """One row per mark: `group`, `mark_us`, `kind`, `reason`, `named` members, and how many members wrote it."""
    return (
        mark_records(history)
        .groupBy("group", "mark_us", "kind", "reason", "named")
        .agg(F.count_distinct("life").alias("written_by"))
    )
