"""Sets of deliveries in a view, compared between members that must have the same set."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.block_scan import DIGEST, merged
from pygroups.pipeline.findings import OF_ORDER, VIRTUAL_SYNCHRONY, TableOf, findings
from pygroups.pipeline.order import LAST, RANK

if TYPE_CHECKING:
    from pygroups.pipeline.tables import Tables

TOGETHER: Final = "together"  # went from one view straight to the next
SETTLED: Final = "settled"  # reached quiet in one view
COHORT: Final = ("group", "history", "purpose", "view", "next")
_OF_MEMBER: Final = (*COHORT, "profile", "life", "rank", "until", "digest", "messages")
_KEY: Final = ("purpose", "view", "next")
_RUN: Final = ("sender", "first")
_PURPOSES: Final = f"""
    inline(filter(array(
        if(next is not null,
           named_struct('purpose', '{TOGETHER}', 'next', next, 'until', cast(null as bigint)), null),
        if(view = quiet_view, named_struct('purpose', '{SETTLED}', 'next', 0L, 'until', quiet_end), null)
    ), one -> one is not null))
"""


def cohorts(tables: "Tables") -> DataFrame:
    """One row per cohort.  The members of a cohort must have delivered the same set in `view`.

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
    """One row per cohort and member: rank, the index `until` which deliveries count, digest of deliveries."""
    members = tables.views.selectExpr(
        *("group", "history", "profile", "view", "life", f"coalesce({RANK}, {LAST}) as rank", _PURPOSES)
    )
    return with_sets(tables, members)


def with_sets(tables: "Tables", members: DataFrame) -> DataFrame:
    """Members of cohorts with the digest of their deliveries: of all in the view, or, where `until` is given, of those
    that do not come late."""
    sums = merged() | {"messages": "sum(messages)"}
    sums |= _early(sums)
    streams = tables.streams.where("kind = 1 and view is not null").groupBy("view", "life")
    had = streams.agg(*(F.expr(text).alias(name) for name, text in sums.items()))
    names = (*DIGEST, "messages")
    counted = {name: f"coalesce(if(until is null, {name}, early_{name}), 0L)" for name in names}
    return members.join(had, ["view", "life"], "left").selectExpr(
        *(*COHORT, "profile", "life", "rank", "until"),
        f"xxhash64({', '.join(counted[name] for name in DIGEST)}) as digest",
        f"{counted['messages']} as messages",
    )


def _early(sums: dict[str, str]) -> dict[str, str]:
    """Sums over streams, without late deliveries."""
    return {f"early_{name}": text.replace("(", "(if(late, 0L, ", 1) + ")" for name, text in sums.items()}


def unlike(members: DataFrame) -> DataFrame:
    """The members of the cohorts whose members do not all have the same set."""
    cohort = "over (partition by purpose, view, next)"
    known = members.selectExpr(*_OF_MEMBER, f"min(digest) {cohort} <> max(digest) {cohort} as differs")
    return known.where("differs")


def _unlike_cohorts(tables: "Tables") -> DataFrame:
    return unlike(members_of_cohorts(tables).where(tables.giving(VIRTUAL_SYNCHRONY)))


def uneven_cohorts(tables: "Tables") -> DataFrame:
    """The exact step of all cohorts of `cohorts`, as in `uneven`."""
    return uneven_sets(tables, "cohorts", _unlike_cohorts)


def uneven_sets(tables: "Tables", name: str, unlike_members: TableOf, *, lacking_only: bool = False) -> DataFrame:
    """The exact step of cohorts `with_sets`, as in `uneven`."""
    rows = tables.streams.where("kind = 1 and view is not null").groupBy("view", "life", "sender")
    sums = merged() | _early(merged())
    parts = rows.agg(*(F.expr(text).alias(name) for name, text in sums.items()))
    return uneven(tables, name, unlike_members, parts, tables.deliveries, lacking_only=lacking_only)


def uneven(
    tables: "Tables",
    name: str,
    unlike_members: TableOf,
    parts: DataFrame,
    deliveries: DataFrame,
    *,
    by: tuple[str, ...] = ("view", "life"),
    inside: str = "until is null or index < until",
    lacking_only: bool = False,
) -> DataFrame:
    """The exact step: each run that some of a cohort delivered and others did not, with a member that is to blame.

    `unlike_members` makes those of cohorts that are `unlike`, kept under the `name`. `deliveries` has the columns view,
    life, sender, first, position, is joined with them `by` these columns, and counts where `inside` is true. `parts`
    has the digest of a member's deliveries from each sender, and with `early_` the digest of those that count where
    `until` is given. Deliveries are read only of senders with unlike digests, and of one member for each digest. The
    smaller side is to blame, of two equal sides the one without the coordinator; with `lacking_only` the lacking side.

    Columns: group, history, purpose, view, next, sender, first, `position` where it was delivered, `member`, `other`
    a member of the other side, `lacks`.
    """
    members = tables.once(f"silver/sets_{name}", unlike_members)
    classes = members.groupBy(*COHORT, "digest").agg(
        F.count(F.lit(1)).alias("size"),
        F.min_by(F.struct("life", "until"), "rank").alias("one"),
        F.min("rank").alias("rank"),
    )
    number = "count(1) over (partition by purpose, view, next) as classes"
    classes = classes.selectExpr(*COHORT, "digest", "size", "rank", "one.life", "one.until", number)
    wanted = tables.once(f"silver/sets_{name}_senders", lambda _: _senders(classes, parts, by))
    rows = deliveries.join(wanted, [*by, "sender"]).where(inside)
    had = rows.groupBy(*_KEY, *_RUN, "classes").agg(
        F.collect_set("digest").alias("having"), F.min("position").alias("position")
    )
    odd = had.where("size(having) < classes").drop("classes")
    sides = odd.join(classes, list(_KEY)).selectExpr("*", "array_contains(having, digest) as has")
    return _blamed(sides, members, lacking_only)


def _senders(classes: DataFrame, parts: DataFrame, by: tuple[str, ...]) -> DataFrame:
    """One row for each class and each sender whose deliveries may differ between the classes."""
    here = classes.drop("group", "history", "size", "rank").join(parts, list(by))
    sender = "over (partition by purpose, view, next, sender)"
    whole, early = (f"xxhash64({', '.join(prefix + name for name in DIGEST)})" for prefix in ("", "early_"))
    part = f"if(until is null, {whole}, {early})"
    known = here.selectExpr(
        *(*_KEY, "digest", "until", "classes", "sender", *(name for name in by if name not in _KEY)),
        f"min({part}) {sender} <> max({part}) {sender} or count(1) {sender} < classes as unlike",
    )
    return known.where("unlike").drop("unlike")


def _blamed(sides: DataFrame, members: DataFrame, lacking_only: bool) -> DataFrame:
    run = "over (partition by purpose, view, next, sender, first)"
    known = sides.selectExpr(
        *(*COHORT, *_RUN, "digest", "not has as lacks", "position"),
        f"struct(sum(if(has, size, 0)) {run}, -min(if(has, rank, null)) {run}) as having",
        f"struct(sum(if(not has, size, 0)) {run}, -min(if(not has, rank, null)) {run}) as lacking",
        f"min_by(life, if(has, rank, null)) {run} as one_having",
        f"min_by(life, if(not has, rank, null)) {run} as one_lacking",
    )
    blamed = known.where("lacks" if lacking_only else "lacks = (having > lacking)").selectExpr(
        *(*COHORT, *_RUN, "digest", "position", "lacks", "if(lacks, one_having, one_lacking) as other")
    )
    named = members.selectExpr(*_KEY, "digest", "life as member")
    return blamed.join(named, [*_KEY, "digest"])


def told(uneven: DataFrame, lacking: str, extra: str) -> DataFrame:
    """Findings, with a sentence for each kind of blame."""
    detail: Column = F.when(F.col("lacks"), lacking).otherwise(extra)
    return findings(uneven, detail, **OF_ORDER)


LACKING: Final = "not delivered here in this view: {other} did"
EXTRA: Final = "delivered here in this view: {other} did not"
