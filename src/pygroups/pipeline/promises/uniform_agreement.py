"""uniform-agreement: what any member delivers in a view, each member delivers there that goes on or reaches quiet.

A member goes on if it has a next view in the same history.  A member that has a mark of quiet while it is blocked waits
for messages that others have, and is not judged.  Without marks a member is not judged in its last view: if it leaves
while others go on, it may miss their last messages.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.branches import BRANCHES, FOLLOWS, NEXT_HISTORY
from pygroups.pipeline.findings import UNIFORM, Count, PromiseRule
from pygroups.pipeline.order import LAST, RANK
from pygroups.pipeline.sets import COHORT, EXTRA, LACKING, SETTLED, TOGETHER, told, uneven_sets, unlike, with_sets
from pygroups.pipeline.tables import Tables

_TOLD: Final = "named_struct('at', index, 'blocked', kind = 'block')"
_BLOCKED: Final = "coalesce(array_max(filter(halts, told -> told.at < quiet_index)).blocked, false)"
# All members of a view are in both sets; `judged` are those that must have what any of them has.
_PURPOSES: Final = f"""
    inline(array(
        named_struct('purpose', '{TOGETHER}', 'judged', goes_on, 'until', cast(null as bigint)),
        named_struct('purpose', '{SETTLED}', 'judged', settles, 'until', quiet_end)
    ))
"""


def members_of(tables: Tables) -> DataFrame:
    """One row per view and member whose deliveries in it count.

    `goes_on` or `settles`: the member must have delivered there what any member did; `wanted` counts these members.
    """
    halts = tables.lives.select("life", "halts")
    views = tables.gathered(tables.views.where(tables.giving(UNIFORM)).join(halts, "life"))
    known = views.where(f"not {BRANCHES}").selectExpr(
        *("group", "profile", "history", "view", "life", "address", "members", "unknown", "quiet_end", "next"),
        f"coalesce({RANK}, {LAST}) as rank",
        f"{FOLLOWS} as goes_on",
        f"coalesce(marked and quiet_view = view, false) and not {_BLOCKED} as settles",
    )
    here = "over (partition by view, history)"
    return known.selectExpr(
        "*", f"count_if(goes_on or settles) {here} as wanted", f"count(1) {here} as installed"
    ).where("wanted > 0")


def parts(tables: Tables) -> DataFrame:
    """One row per part of the deliveries in a view (`blocks`), with the number of members that must have it and that
    have it `there`."""
    members = members_of(tables).selectExpr(
        "view", "life", "wanted", "installed", "goes_on or settles as judged", "history as of_history"
    )
    blocks = tables.blocks.select("group", "profile", "view", "life", "lane", "block", "slot", "messages", "differs")
    rows = blocks.join(members, ["view", "life"]).withColumnRenamed("of_history", "history")
    return rows.groupBy("group", "profile", "history", "view", "wanted", "installed", "lane", "block", "slot").agg(
        F.expr("sum(if(judged, messages, 0L))").alias("messages"),
        F.expr("count_if(judged)").alias("there"),
        F.expr("bool_or(differs)").alias("differs"),
    )


def hidden(tables: Tables) -> DataFrame:
    """One row per view: how many of its members have a journal that may lack their deliveries in it."""
    left = "collect_set(if(next is not null, address, null))"
    return (
        members_of(tables)
        .groupBy("group", "profile", "history", "view")
        .agg(F.expr(f"size(array_except(array_intersect(min(members), min(unknown)), {left}))").alias("unseen"))
    )


def _cohorts(tables: Tables) -> DataFrame:
    """The members of each view, once for those that go on and once for those that reach quiet."""
    rows = members_of(tables).selectExpr(
        *("group", "history", "profile", "view", "life", "rank", "coalesce(history, 0L) as next", _PURPOSES)
    )
    asked = rows.selectExpr("*", "bool_or(judged) over (partition by purpose, view, next) as asked")
    return asked.where("asked")


def _unlike(tables: Tables) -> DataFrame:
    return unlike(with_sets(tables, _cohorts(tables).drop("judged", "asked")))


def exact(tables: Tables) -> DataFrame:
    """A fact is one message at one member that goes on from its view or reaches quiet in it."""
    lacking = uneven_sets(tables, "uniform", _unlike, lacking_only=True)
    judged = _cohorts(tables).where("judged").select(*COHORT[2:], F.col("life").alias("member"))
    found = lacking.join(judged, [*COHORT[2:], "member"], "left_semi")
    return told(found.dropDuplicates(["view", "member", "sender", "first"]), LACKING, EXTRA)


RULE = PromiseRule(
    "uniform-agreement",
    UNIFORM,
    "messages",
    "nothing was delivered in a view from which a member went on, or in which a member has a mark of quiet",
    counts=(
        Count(
            parts,
            judged="if(installed > 1, messages, 0)",
            suspect="there < wanted or differs or block is null",
        ),
        Count(hidden, skipped={"the journal of a member of the view is missing or ends in it": "unseen"}),
    ),
    exact=exact,
    columns={
        "views": NEXT_HISTORY,
        "lives": {"halts": f"collect_list(if(kind in ('block', 'unblock'), {_TOLD}, null))"},
    },
)
