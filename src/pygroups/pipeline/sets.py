"""Sets of deliveries in a view, compared between members that have to have the same."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import findings
from pygroups.pipeline.order import LAST, RANK
from pygroups.pipeline.scan import DIGEST, merged

if TYPE_CHECKING:
    from pygroups.pipeline.tables import Tables

TOGETHER: Final = "together"  # went from one view straight to the next
SETTLED: Final = "settled"  # reached quiet in one view
COHORT: Final = ("group", "history", "purpose", "view", "next")
_OF_MEMBER: Final = (*COHORT, "profile", "life", "rank", "until", "digest", "messages")
_RUN: Final = ("sender", "first")
_PURPOSES: Final = f"""
    inline(filter(array(
        if(next is not null and next_previous = view,
           named_struct('purpose', '{TOGETHER}', 'next', next, 'until', cast(null as bigint)), null),
        if(view = quiet_view, named_struct('purpose', '{SETTLED}', 'next', 0L, 'until', quiet_end), null)
    ), one -> one is not null))
"""


def cohorts(tables: "Tables") -> DataFrame:
    """One row per cohort, members that have to have delivered the same set in `view`.

    `purpose` is TOGETHER for members that went on to `next` together, or SETTLED for those that reached quiet in it.
    Columns beside: group, profile, history, `members`, `messages` at all of them, `differs`.
    """
    return compared(members_of_cohorts(tables))


def compared(members: DataFrame) -> DataFrame:
    """Cohorts from their members."""
    return members.groupBy(*COHORT, "profile").agg(
        F.count(F.lit(1)).alias("members"),
        F.sum("messages").alias("messages"),
        F.expr("min(digest) <> max(digest)").alias("differs"),
    )


def members_of_cohorts(tables: "Tables") -> DataFrame:
    """One row per cohort and member: its rank, the index `until` which deliveries count, the digest of what it had."""
    early = {f"early_{name}": text.replace("(", "(if(late, 0L, ", 1) + ")" for name, text in merged().items()}
    sums = merged() | {"messages": "sum(messages)"} | early | {"early_messages": "sum(if(late, 0L, messages))"}
    streams = tables.streams.where("kind = 1 and view is not null").groupBy("view", "life")
    had = streams.agg(*(F.expr(text).alias(name) for name, text in sums.items()))
    members = tables.views.selectExpr(
        *("group", "history", "profile", "view", "life", f"coalesce({RANK}, {LAST}) as rank", _PURPOSES)
    )
    names = (*DIGEST, "messages")
    counted = {name: f"coalesce(if(purpose = '{TOGETHER}', {name}, early_{name}), 0L)" for name in names}
    return members.join(had, ["view", "life"], "left").selectExpr(
        *(*COHORT, "profile", "life", "rank", "until"),
        f"xxhash64({', '.join(counted[name] for name in DIGEST)}) as digest",
        f"{counted['messages']} as messages",
    )


def uneven(
    members: DataFrame,
    deliveries: DataFrame,
    *,
    by: tuple[str, ...] = ("view", "life"),
    lacking_only: bool = False,
) -> DataFrame:
    """The exact step: each run that some of a cohort delivered and others did not, with a member that is to blame.

    `members` are those of cohorts (`members_of_cohorts`), `deliveries` has the columns view, life, index, sender,
    first, position, and is joined with them `by` these columns. Those are to blame who are fewer, and of as many those
    without the coordinator; with `lacking_only` who lacks it.

    Columns: group, history, purpose, view, next, sender, first, `position` where it was delivered, `member`, `other`
    who did otherwise, `lacks`.
    """
    cohort = "over (partition by purpose, view, next)"
    unequal = members.selectExpr(*_OF_MEMBER, f"min(digest) {cohort} <> max(digest) {cohort} as differs")
    unequal = unequal.where("differs")
    classes = unequal.groupBy(*COHORT, "digest").agg(
        F.count(F.lit(1)).alias("size"),
        F.min_by(F.struct("life", "until"), "rank").alias("one"),
        F.min("rank").alias("rank"),
    )
    classes = classes.selectExpr(*COHORT, "digest", "size", "rank", "one.life", "one.until")
    key = ("purpose", "view", "next")
    inside = deliveries.join(classes.select(*key, "life", "until", "digest"), list(by))
    runs = inside.where("until is null or index < until").groupBy(*key, "digest", *_RUN)
    had = runs.agg(F.min("position").alias("position"), F.lit(True).alias("has"))
    numbers = classes.groupBy(*key).agg(F.count(F.lit(1)).alias("classes"))
    odd = had.groupBy(*key, *_RUN).agg(F.count(F.lit(1)).alias("having"), F.min("position").alias("place"))
    odd = odd.join(numbers, list(key)).where("having < classes").drop("having", "classes")
    sides = odd.join(classes, list(key)).join(had.drop("position"), [*key, "digest", *_RUN], "left")
    return _blamed(sides, unequal, lacking_only)


def _blamed(sides: DataFrame, members: DataFrame, lacking_only: bool) -> DataFrame:
    run = "over (partition by purpose, view, next, sender, first)"
    known = sides.selectExpr(
        *(*COHORT, *_RUN, "digest", "has is null as lacks", "place as position"),
        f"struct(sum(if(has, size, 0)) {run}, -min(if(has, rank, null)) {run}) as having",
        f"struct(sum(if(has is null, size, 0)) {run}, -min(if(has is null, rank, null)) {run}) as lacking",
        f"min_by(life, if(has, rank, null)) {run} as one_having",
        f"min_by(life, if(has is null, rank, null)) {run} as one_lacking",
    )
    blamed = known.where("lacks" if lacking_only else "lacks = (having > lacking)").selectExpr(
        *(*COHORT, *_RUN, "digest", "position", "lacks", "if(lacks, one_having, one_lacking) as other")
    )
    named = members.selectExpr("purpose", "view", "next", "digest", "life as member")
    return blamed.join(named, ["purpose", "view", "next", "digest"])


def told(uneven: DataFrame, lacking: str, extra: str) -> DataFrame:
    """Findings, with a sentence for each kind of blame."""
    detail: Column = F.when(F.col("lacks"), lacking).otherwise(extra)
    return findings(
        uneven,
        detail,
        view="view",
        member="member",
        other="other",
        origin="sender",
        first="first",
        position="position",
    )


LACKING: Final = "not delivered here in this view: {other} did"
EXTRA: Final = "delivered here in this view: {other} did not"
