"""view-agreement: a view has the same ordered list of members wherever it is installed."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, Count, PromiseRule, findings, names_in, parts_of
from pygroups.pipeline.tables import Tables

_HERE, _THERE = "array_except(low, high)", "array_except(high, low)"
_FIRST = "element_at(filter(sequence(1, size(low)), at -> low[at - 1] <> high[at - 1]), 1)"


def exact(tables: Tables) -> DataFrame:
    """A fact is one view at one member.  The list of most members is the right one; between equally many members, the
    list of the creator of the view.

    Each other list is reported once, with a member that has it.
    """
    views = tables.views.where("low_list <> high_list").groupBy("group", "history", "view", "members")
    lists = views.agg(
        F.count(F.lit(1)).alias("size"),
        F.expr("bool_or(address = view_creator)").alias("created"),
        F.min("life").alias("member"),
    )
    best = "max(struct(size, created, members, member)) over (partition by view)"
    two = lists.selectExpr("*", f"{best} as usual").selectExpr(
        *("`group`", "history", "view", "member", "members as low", "usual.members as high", "usual.member as other")
    )
    two = two.where("low <> high").withColumn(
        "at", F.expr(f"if(size({_HERE}) = 0 and size({_THERE}) = 0, {_FIRST}, null)")
    )
    return findings(
        two,
        parts_of(
            ("true", "'{other} has another list of members'"),
            (f"size({_HERE}) > 0", f"concat('only here ', {names_in(_HERE)})"),
            (f"size({_THERE}) > 0", f"concat('only there ', {names_in(_THERE)})"),
            ("at is not null", "concat('at place ', at, ' ', low[at - 1], ' here and ', high[at - 1], ' there')"),
        ),
        view="view",
        member="member",
        other="other",
    )


RULE = PromiseRule(
    "view-agreement",
    GROUPS,
    "views",
    "no view was installed",
    counts=(Count("views", judged="1", suspect="low_list <> high_list"),),
    exact=exact,
    columns={
        "views": {
            "low_list": "min(xxhash64(members)) over (partition by view)",
            "high_list": "max(xxhash64(members)) over (partition by view)",
        }
    },
)
