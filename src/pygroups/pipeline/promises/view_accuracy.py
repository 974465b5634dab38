"""view-accuracy: before a fault a view loses only members that began to leave.

Before a fault only views merge whose members never shared a view. At quiet there is one view, with exactly the members
that reach quiet. Without a mark in any journal of the linked members nothing is judged.

Calm ends for all members that views link: a member that starts after a fault has no mark of the fault, and still loses
the members that crashed in the fault. So a view is calm if its member has no mark before it, and if its number is below
those of all views that a linked member installed after a mark. No clock is compared.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, Count, PromiseRule, findings, names_in, parts_of
from pygroups.pipeline.keys import life_sql
from pygroups.pipeline.tables import Tables

_CALM = "has_mark and (fault_index is null or index < fault_index) and (disturbed is null or view_number < disturbed)"
_MERGE = f"({_CALM}) and size(subgroups) > 0"
_OUTSIDE = "array_except(members, flatten(filter(subgroups, names -> array_contains(names, address))))"
# Of the members that are in its view and have not reached quiet, one has a journal that may hide that it has.
_HIDDEN = """
    not apart and size(array_except(settled, members)) = 0
    and arrays_overlap(array_except(members, settled), unknown)
"""
_LACKS, _EXTRA = "array_except(settled, members)", "array_except(members, settled)"
_AS_ONE = "array_sort(members) = settled and not apart"


def losses(tables: Tables) -> DataFrame:
    """The calm views without a member of the view before that had not begun to leave: `other`, its key."""
    lost = tables.views.where(f"({_CALM}) and size(array_except(before, members)) > 0")
    lost = lost.select(
        "group",
        "profile",
        "history",
        "life",
        "view",
        "unknown",
        F.expr("explode(array_except(before, members)) as name"),
    )
    leaving = tables.lives.where("leave_index is not null").select(F.col("life").alias("other"))
    stayed = lost.withColumn("other", F.expr(life_sql("name"))).join(leaving, "other", "left_anti")
    return stayed.groupBy("group", "profile", "history", "life", "view", "unknown").agg(
        F.min_by("other", "name").alias("other")
    )


def at_quiet(tables: Tables) -> DataFrame:
    """Per incarnation at quiet: the members of its view, all linked ones that are `settled`, whether those are
    `apart`."""
    linked = "over (partition by linked)"
    quiet = tables.lives.where("marked and quiet_index is not null").selectExpr(
        *("`group`", "profile", "life", "unknown", "quiet_view as view"),
        f"array_sort(collect_set(address) {linked}) as settled",
        f"coalesce(min(quiet_view) {linked} <> max(quiet_view) {linked}, false) as apart",
    )
    return quiet.join(tables.views.select("life", "view", "history", "members"), ["life", "view"], "left")


def exact(tables: Tables) -> DataFrame:
    """A fact is one view at one member."""
    lost = findings(
        losses(tables).where("size(unknown) = 0"),
        "lost {other}, which had not begun to leave, before any fault",
        view="view",
        member="life",
        other="other",
    )
    settled = findings(
        at_quiet(tables).where(f"not coalesce({_HIDDEN}, false) and not coalesce({_AS_ONE}, false)"),
        parts_of(
            ("true", "if(members is null, 'at quiet in no view', concat('at quiet in a view of ', size(members)))"),
            (f"size({_LACKS}) > 0", f"concat('not in it, and at quiet: ', {names_in(_LACKS)})"),
            (f"size({_EXTRA}) > 0", f"concat('in it, and never at quiet: ', {names_in(_EXTRA)})"),
            ("apart", "'members of an earlier common view are at quiet in another view'"),
        ),
        view="view",
        member="life",
    )
    return lost.unionAll(_merged(tables)).unionAll(settled)


def _merged(tables: Tables) -> DataFrame:
    """Merged views before any fault: no member of another subgroup may have been in an earlier view of this member."""
    met = tables.views.where(_CALM).select("life", "index", F.explode("members").alias("name"))
    met = met.groupBy("life", "name").agg(F.min("index").alias("met"))
    merges = tables.views.where(_MERGE).selectExpr(
        "`group`", "history", "life", "view", "index", f"explode({_OUTSIDE}) as name"
    )
    again = merges.join(met, ["life", "name"]).where("met < index").select("group", "history", "life", "view")
    return findings(
        again.distinct(), "merged views that had been one before, before any fault", view="view", member="life"
    )


RULE = PromiseRule(
    "view-accuracy",
    GROUPS,
    "views",
    "the journals have no marks of faults and quiet",
    counts=(
        Count("views", judged=f"if({_CALM}, 1, 0)", suspect=_MERGE),
        Count(
            losses,
            judged="if(size(unknown) > 0, -1, 0)",  # counted among all calm views, and not judged after all
            skipped={
                "a journal that may hold a mark or a leave is missing or ends early": "if(size(unknown) > 0, 1, 0)"
            },
            suspect="size(unknown) = 0",
        ),
        Count(
            at_quiet,
            judged=f"if(coalesce({_HIDDEN}, false), 0, 1)",
            skipped={
                "the journal of a member of the last view is missing or ends early": f"if({_HIDDEN}, 1, 0)",
            },
            suspect=f"not coalesce({_HIDDEN}, false) and not coalesce({_AS_ONE}, false)",
        ),
    ),
    exact=exact,
    columns={
        "views": {
            "has_mark": "max(has_marks) over (partition by linked)",
            "disturbed": "min(if(index > fault_index, view_number, null)) over (partition by linked)",
        }
    },
    needs=frozenset({"quiet", "fault", "heal"}),
)
