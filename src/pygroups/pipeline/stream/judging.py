"""Judges one batch with the rules of the audit: some on the records that came, some on the views that were closed.

The rules see all records of the table, so that they have what stands around; a condition chooses the rows that count.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pygroups.pipeline.audit import with_occasion
from pygroups.pipeline.findings import PromiseRule
from pygroups.pipeline.ingest import Table
from pygroups.pipeline.prepare import prepare, trusted
from pygroups.pipeline.promises import RULES
from pygroups.pipeline.recorded import open_table, rows_in
from pygroups.pipeline.schemas import RUNS
from pygroups.pipeline.store import Store
from pygroups.pipeline.tables import Recorded, Tables
from pygroups.pipeline.verdicts import Tally, count, find

AS_THEY_COME: Final = ("self-inclusion", "view-monotonic", "no-duplication", "fifo")
"""Judged on each record when it is read: the records before it in the same journal decide."""
WHEN_A_VIEW_CLOSES: Final = (
    *("view-agreement", "integrity", "same-view-delivery", "virtual-synchrony", "total-order"),
)
"""Judged on the records of a view that has closed: those of several journals decide."""
JUDGED: Final = frozenset((*AS_THEY_COME, *WHEN_A_VIEW_CLOSES))
"""The promises that a stream judges.  The others are left to the audit."""


@dataclass(frozen=True)
class Batch:
    """The input of a batch: the table, its files of new runs, and the first new index of each life with new records.

    `closing` are the views that have closed now, `closed` those and the ones that had closed before.  `delivered` are
    rows of earlier deliveries that the table has no more (`prune.py`), `marks` as in `Progress`.
    """

    table: Table
    files: Sequence[str]
    begin: dict[int, int]
    closing: Collection[int]
    closed: Collection[int]
    delivered: pa.Table
    marks: dict[int, int]


@dataclass
class Found:
    """Counts by promise, group and history (a name), and a frame of violations or None."""

    tallies: dict[tuple[str, str, str | None], Tally]
    violations: DataFrame | None


def judge(session: SparkSession, batch: Batch, store: Callable[[str], Store]) -> Found:
    """Judge a batch; `store` makes a place for tables under a name."""
    early = store("early")
    recorded = open_table(session, batch.table, small=early.small)
    multicasts = replace(recorded.history, runs=recorded.history.runs.where("kind <= 1"))
    kinds = recorded.kinds - {"purge"}  # no rule of a stream asks for votes
    recorded = replace(recorded, history=multicasts, kinds=kinds)
    found = Found({}, None)
    _early(session, recorded, batch, early, found)
    if batch.closing:
        _late(recorded, batch, store("late"), found)
    return found


def _early(session: SparkSession, recorded: Recorded, batch: Batch, store: Store, found: Found) -> None:
    new = recorded.gathered(rows_in(session, str(batch.table.path), "runs", batch.files, RUNS).where("kind <= 1"))
    rules = _rules(recorded, AS_THEY_COME)
    fresh = replace(recorded, history=replace(recorded.history, runs=new))
    tables = prepare(fresh, rules, store)
    begins = session.createDataFrame(list(batch.begin.items()), "life bigint, begin bigint").coalesce(1)

    def are_new(rows: DataFrame) -> DataFrame:
        return recorded.gathered(rows.join(begins, "life").where("index >= begin"))

    counted = count(tables, _restricted(rules, {"views": are_new, "streams": None, "others": are_new}))
    earlier = session.createDataFrame(batch.delivered).coalesce(1) if batch.delivered.num_rows else None
    runs = recorded.history.runs.where("kind = 1")
    known = runs if earlier is None else runs.unionByName(earlier, allowMissingColumns=True)
    whole = replace(tables, deliveries=recorded.gathered(trusted(known, tables.lives)))
    _add(found, recorded, counted.tallies, find(whole, rules, counted.suspects(), recorded.history.names))


def _late(recorded: Recorded, batch: Batch, store: Store, found: Found) -> None:
    rules = _rules(recorded, WHEN_A_VIEW_CLOSES)
    tables = prepare(recorded, rules, store)

    def within(column: str, views: Collection[int]) -> Column:
        return F.col(column).isin(*sorted(views))

    def in_view(rows: DataFrame) -> DataFrame:
        return rows.where(within("view", batch.closing))

    def of_runs(rows: DataFrame) -> DataFrame:
        return rows.where(within("low_view", batch.closing) | within("high_view", batch.closing))

    keep = {"views": in_view, "streams": in_view, "blocks": in_view, "runs": of_runs, "others": in_view}
    counted = count(tables, _restricted(rules, keep))
    complete = within("view", batch.closed) & (F.col("also").isNull() | within("also", batch.closed))
    known = F.create_map(*(F.lit(part) for pair in batch.marks.items() for part in pair)) if batch.marks else None

    def wanted(promise: str) -> Column:
        if promise != "integrity" or known is None:
            return complete
        return complete & F.coalesce(F.col("first") > known[F.col("origin")], F.lit(True))  # its send may be gone

    _add(found, recorded, counted.tallies, find(tables, rules, counted.suspects(), recorded.history.names, wanted))


def _rules(recorded: Recorded, promises: Collection[str]) -> list[PromiseRule]:
    return with_occasion(recorded, [rule for rule in RULES if rule.promise in promises])


def _restricted(
    rules: Sequence[PromiseRule], keep: Mapping[str, Callable[[DataFrame], DataFrame] | None]
) -> list[PromiseRule]:
    """The rules with counts over some rows of each table.  `keep` chooses them by the name of the table; "others" is
    for the tables that a function makes."""
    made: dict[Any, Any] = {}

    def chosen(source: Any) -> Any:
        choose = keep[source if isinstance(source, str) else "others"]
        if choose is None:
            return source
        if source not in made:

            def rows(tables: Tables) -> DataFrame:
                return choose(getattr(tables, source) if isinstance(source, str) else source(tables))

            made[source] = rows
        return made[source]

    return [replace(rule, counts=tuple(replace(one, table=chosen(one.table)) for one in rule.counts)) for rule in rules]


def _add(
    found: Found,
    recorded: Recorded,
    tallies: dict[tuple[str, str, int | None], Tally],
    violations: DataFrame | None,
) -> None:
    for (promise, group, history), tally in tallies.items():
        found.tallies[promise, group, None if history is None else recorded.histories[history]] = tally
    if violations is not None:
        ids = recorded.history.names.where("kind = 'history'").selectExpr("key as history", "name as history_name")
        named = violations.join(ids, "history", "left")
        named = named.selectExpr(*(name for name in violations.columns if name != "history"), "history_name as history")
        found.violations = named if found.violations is None else found.violations.unionByName(named)
