"""A rule judges one promise: it has counts over the shared tables, and an exact step that finds the violations.

Most histories are right, so a rule is judged in two stages.  The *counts* of a rule are SQL text over tables that rules
share (`tables.py`): how many facts a row judges, how many it leaves out and why, and whether it is suspect.  One query
evaluates the counts of all rules.  Only for a rule with a suspect row the *exact step* is planned: it gives one row per
violation, with the keys of the incarnations and views in its sentence.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pygroups.pipeline.tables import Tables

# The services that a stack must give, so that it makes a promise: those that the headers of journals name.
ALL: Final[frozenset[str]] = frozenset()
GROUPS: Final = frozenset({"MEMBERSHIP"})
VIRTUAL_SYNCHRONY: Final = GROUPS | {"VIRTUAL_SYNCHRONY"}
ORDERED: Final = VIRTUAL_SYNCHRONY | {"TOTAL"}
MAJORITY: Final = VIRTUAL_SYNCHRONY | {"PRIMARY"}
UNIFORM: Final = MAJORITY | {"UNIFORM"}
MERGED: Final = VIRTUAL_SYNCHRONY | {"MERGING"}
GOSSIP: Final = GROUPS | {"GOSSIP"}
KNOWN: Final = ORDERED | UNIFORM | MERGED | GOSSIP
"""Every service that a rule asks for; other services of a header make no difference to an audit."""

LATER_STATE: Final = "later state"
"""Beside the kinds of record: a view with a state at an incarnation that had a view before (`recorded.py`)."""

NAMED: Final = ("view", "member", "other", "origin", "also")  # keys that a name replaces at the end; `also` is a view
PLACED: Final = ("first", "position")

SharedTable = Literal["lives", "views", "events", "streams", "blocks", "cohorts", "runs"]
TableOf = Callable[["Tables"], DataFrame]


@dataclass(frozen=True)
class Count:
    """A rule's count in one table: SQL text over one row, with numbers of facts and a condition.

    `table` is the name of a shared table or a function that makes one; rules that give the same function share it. The
    table has `group`, `profile` and `history`. `skipped` has, per reason, the number of facts that cannot be judged. A
    row on which `suspect` is true makes the exact step run. Null is 0 or false. With `needs` the count is left out of
    the plan of a history that has no record of these kinds (LATER_STATE is one of them).
    """

    table: SharedTable | TableOf
    judged: str = "0"
    skipped: Mapping[str, str] = field(default_factory=dict)
    suspect: str = "false"
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class PromiseRule:
    """A promise and how it is judged.

    - services: what a stack must give to make the promise; the rows of others do not count
    - unit: the kind of its facts: messages at a member, views at a member, or unicast messages
    - no_occasion: the reason when a history has no fact at all
    - alone: another reason where no process has a group, because their journals never have a fact for this rule
    - counts: its counts, one per table
    - exact: the exact step, `findings` from tables that hold only suspicious groups, and stacks that make the promise
    - columns: the columns that it adds to shared tables, as SQL text by table and name: to `views` and `lives`
      expressions over a row (window functions too), to `streams`, `blocks` and `runs` aggregates; two rules may add the
      same column
    - needs: without a record of one of these kinds there is no occasion, and the rule is left out of the plan
    """

    promise: str
    services: frozenset[str]
    unit: Literal["messages", "views", "unicasts"]
    no_occasion: str
    counts: tuple[Count, ...]
    exact: TableOf
    columns: Mapping[SharedTable, Mapping[str, str]] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    alone: str = ""


def findings(
    broken: DataFrame,
    detail: str | Column,
    *,
    view: Column | str | None = None,
    member: Column | str | None = None,
    other: Column | str | None = None,
    origin: Column | str | None = None,
    also: Column | str | None = None,
    first: Column | str | None = None,
    position: Column | str | None = None,
) -> DataFrame:
    """One row per violation, from a frame that has `group`, `history` and one row for each.

    `member`, `other`, `origin` are keys of incarnations, `view` and `also` of views (columns, or SQL text); in `detail`
    their names are `{view}`, `{other}` and so on.  `first` is the number of the first message of the run, `position`
    its place in the view.
    """
    witness = {
        "view": view,
        "member": member,
        "other": other,
        "origin": origin,
        "also": also,
        "first": first,
        "position": position,
    }
    return broken.select(
        "group",
        "history",
        *(_column(value).cast("bigint").alias(name) for name, value in witness.items()),
        (F.lit(detail) if isinstance(detail, str) else detail).alias("detail"),
    )


def _column(value: Column | str | None) -> Column:
    return value if isinstance(value, Column) else F.lit(None) if value is None else F.expr(value)


OF_ORDER: Final = {
    "view": "view",
    "member": "member",
    "other": "other",
    "origin": "sender",
    "first": "first",
    "position": "position",
}
"""The columns of a finding about a run at one member, in comparison with another member."""


def words(*parts: Column | str) -> Column:
    """A sentence from columns and literal pieces; a null column reads "?"."""
    columns = [F.lit(p) if isinstance(p, str) else F.coalesce(p.cast("string"), F.lit("?")) for p in parts]
    return F.concat(*columns)


NAMES_SHOWN: Final = 5


def names_in(array: str) -> str:
    """SQL text: the names in an array, at most NAMES_SHOWN of them, and how many more there are."""
    shown = f"concat_ws(', ', slice({array}, 1, {NAMES_SHOWN}))"
    more = f"if(size({array}) > {NAMES_SHOWN}, concat(' and ', size({array}) - {NAMES_SHOWN}, ' more'), '')"
    return f"concat({shown}, {more})"


def parts_of(*sentences: tuple[str, str]) -> Column:
    """The sentences (condition and text, both SQL text) whose condition is true, with semicolons between them."""
    return F.expr(f"concat_ws('; ', {', '.join(f'if({condition}, {text}, null)' for condition, text in sentences)})")


def columns_of(rules: Sequence[PromiseRule], table: SharedTable) -> dict[str, str]:
    """The columns that rules add to a table: SQL text by name. Raises ValueError if two rules mean different things."""
    wanted: dict[str, str] = {}
    for rule in rules:
        for name, text in rule.columns.get(table, {}).items():
            if wanted.setdefault(name, text) != text:
                raise ValueError(
                    f"the rule of {rule.promise} defines column {name} of {table} differently from an earlier rule"
                )
    return wanted
