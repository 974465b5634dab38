"""What a rule answers with: rows of facts, some of which carry the witness of a violation.

A rule says per row how many facts it judged, how many it skipped and why, and names a witness where the promise is
broken. Rows without a witness fall together when the verdicts are summed up, so a rule may give one row per run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pygroups.pipeline.old_tables import Tables

VIRTUAL_SYNCHRONY: Final = frozenset({"fifo", "total", "total1999", "uniform", "uniform-fifo"})
ORDERED: Final = frozenset({"total", "total1999", "uniform"})
GROUPS: Final = VIRTUAL_SYNCHRONY | {"gossip"}
ALL: Final = GROUPS | {"unicast"}
UNIFORM: Final = frozenset({"uniform", "uniform-fifo"})

WITNESS: Final = {
    "view": "string",
    "member": "string",
    "other": "string",
    "origin": "string",
    "first": "bigint",
    "position": "bigint",
}


@dataclass(frozen=True)
class Rule:
    """A promise and how it is judged.

    `unit` is what its facts count: messages at a member, views at a member, or unicast messages. `no_occasion` is the
    reason when a history has no fact at all; without any record of the kinds it `needs` there can be none.
    """

    promise: str
    profiles: frozenset[str]
    unit: Literal["messages", "views", "unicasts"]
    no_occasion: str
    judge: Callable[["Tables"], DataFrame]
    needs: frozenset[str] = frozenset()


def findings(
    frame: DataFrame,
    *,
    judged: Column | int = 0,
    skipped: Column | int = 0,
    reason: Column | str | None = None,
    broken: Column | None = None,
    detail: Column | None = None,
    **witness: Column | None,
) -> DataFrame:
    """Findings from a frame that has `group` and `history`.

    Where `broken` is true the witness columns (`view member other origin first position`) and `detail` are filled;
    `reason` counts where something was skipped.
    """
    is_broken = F.lit(False) if broken is None else F.coalesce(broken, F.lit(False))
    lost = _as_long(skipped)
    why = reason if isinstance(reason, Column) else F.lit(reason).cast("string")
    text = F.lit("") if detail is None else detail
    return frame.select(
        "group",
        "history",
        _as_long(judged).alias("judged"),
        lost.alias("skipped"),
        F.when(lost > 0, why).alias("reason"),
        *(_witness(name, ddl, witness.get(name), is_broken) for name, ddl in WITNESS.items()),
        F.when(is_broken, text).alias("detail"),
    )


def _as_long(value: Column | int) -> Column:
    return (F.lit(value) if isinstance(value, int) else F.coalesce(value, F.lit(0))).cast("bigint")


def _witness(name: str, ddl: str, value: Column | None, broken: Column) -> Column:
    if value is None:
        return F.lit(None).cast(ddl).alias(name)
    return F.when(broken, value).cast(ddl).alias(name)


def facts(frame: DataFrame, judged: str = "count") -> DataFrame:
    """Findings without any violation: the sum of a column, one row per group and history."""
    total = frame.groupBy("group", "history").agg(F.sum(judged).alias("total"))
    return findings(total, judged=F.col("total"))


def collapsed(frame: DataFrame) -> DataFrame:
    """Findings with equal rows added up: one row per violation, and one per reason for all the rest."""
    keys = ["promise", "group", "history", "reason", *WITNESS, "detail"]
    return frame.groupBy(*keys).agg(F.sum("judged").alias("judged"), F.sum("skipped").alias("skipped"))


def view_name(number: str = "view_number", creator: str = "view_creator") -> Column:
    """A view as people write it: "4:A@3f2c91d0"; null before the first view."""
    return F.concat(F.col(number).cast("string"), F.lit(":"), F.col(creator))


def sender_name() -> Column:
    """The address of who sent the run."""
    return F.concat("origin", F.lit("@"), "origin_incarnation")


def words(*parts: Column | str) -> Column:
    """A sentence from columns and literal pieces; a null column reads "?"."""
    columns = [F.lit(p) if isinstance(p, str) else F.coalesce(p.cast("string"), F.lit("?")) for p in parts]
    return F.concat(*columns)
