"""merge-agreement: the subgroups of a merged view are the groups of its members by the views that they came from.

Members that go on from one earlier view all install a merged view that they accepted, or none of them does. A fault
may divide them, so this is judged only in a journal that has marks, where the member accepted the merge in calm: no
mark of a fault stands before its next view, or a `heal` stands behind the last one and before the acceptance.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import MERGED, Count, PromiseRule, findings, names_in, parts_of
from pygroups.pipeline.keys import VIEW_ID
from pygroups.pipeline.tables import Tables

_RANKED = "transform(members, one -> named_struct('name', split(one, '@', 2)[0], 'life', split(one, '@', 2)[1]))"
_SIDE = "get(filter(subgroups, one -> array_contains(one, address)), 0)"
_THERE = f"coalesce(array_sort(array_intersect({_SIDE}, installed)), array())"  # names that installed another view
_STRANGE = f"array_except({_SIDE}, coalesce(before, array()))"

# The faults of a merged view at a member, and the words for each, as SQL text.
_WRONG = {
    "size(subgroups) < 2": "concat('has ', size(subgroups), ' subgroup')",
    "exists(subgroups, one -> size(one) = 0)": "'has an empty subgroup'",
    "array_sort(flatten(subgroups)) <> array_sort(members)": "'has subgroups that are no partition of its members'",
    f"{_RANKED} <> array_sort({_RANKED})": "'has members that are not in the order of their addresses'",
    f"{_SIDE} is not null and {_THERE} <> together": (
        f"concat('its subgroup has ', {names_in(_THERE)}, ', but from one earlier view came ', {names_in('together')})"
    ),
    f"size({_STRANGE}) > 0": f"concat('has a subgroup with ', {names_in(_STRANGE)}, ', which the view before lacks')",
    f"{VIEW_ID} <= id_before": "'has an id that is not above that of the view before'",
}
_OF_MERGED = [f"size(subgroups) > 0 and coalesce({wrong}, false)" for wrong in _WRONG]
_UNLIKE = "low_groups <> high_groups"
_UNTOLD_WORDS = "concat('has no subgroups, and its members came from ', came_from_views, ' views')"
_UNTOLD = "came_from_views > 1 and not coalesce(size(subgroups) > 0, false)"
_SUSPECT = f"{_UNLIKE} or {_UNTOLD} or {' or '.join(_OF_MERGED)}"

_CHANGE = "named_struct('at', index, 'healed', kind = 'heal')"
_LAST = "array_max(filter(changes, change -> change.at < until))"
_CALM = f"has_marks and coalesce({_LAST}.healed and {_LAST}.at < accepted, {_LAST} is null)"


def divided(tables: Tables) -> DataFrame:
    """The members that accepted a merged view and went elsewhere, though another from the same view installed it.

    `view` is the merged view, `previous` the one that they came from, `other` a member that installed it; `calm` is
    true where no mark of a fault explains it.
    """
    came = tables.views.where("size(subgroups) > 0 and previous is not null")
    came = came.groupBy("group", "view_number", "view_creator", "previous").agg(
        F.min("life").alias("other"), F.min("view").alias("merged")
    )
    accepted = tables.events.where("kind = 'merge' and stage = 'accepted'").selectExpr(
        *("`group`", "life", "view as previous", "next_number as view_number", "next_creator as view_creator", "index")
    )
    pairs = accepted.join(came, ["group", "view_number", "view_creator", "previous"])
    pairs = (
        tables.gathered(pairs)
        .groupBy("life", "previous", "merged")
        .agg(F.max("index").alias("accepted"), F.min("other").alias("other"))
    )
    ways = tables.views.selectExpr(
        *("`group`", "profile", "history", "life", "view as previous", "next", "quiet_view", "has_marks"),
        "coalesce(next_index, quiet_index) as until",
    )
    lives = tables.lives.select("life", "changes")
    met = tables.gathered(tables.gathered(pairs.join(ways, ["life", "previous"])).join(lives, "life"))
    elsewhere = met.where("coalesce(next <> merged, quiet_view = previous)")
    return elsewhere.selectExpr(
        *("`group`", "profile", "history", "life", "merged as view", "previous", "other"), f"{_CALM} as calm"
    )


def exact(tables: Tables) -> DataFrame:
    """A fact is one merged view at one member that installed it, or accepted it and went elsewhere."""
    like = "count(1) over (partition by view, subgroups) as like"
    views = tables.views.where(_SUSPECT).selectExpr("*", like, "address = view_creator as created")
    usual = "max(struct(like, created, subgroups, life)) over (partition by view) as usual"
    views = views.selectExpr("*", usual)
    unusual = "not (subgroups <=> usual.subgroups)"
    wrong = [(condition, text) for condition, text in zip(_OF_MERGED, _WRONG.values(), strict=True)]
    installed = findings(
        views.where(" or ".join([unusual, _UNTOLD, *_OF_MERGED])),
        parts_of((unusual, "'{other} has other subgroups'"), (_UNTOLD, _UNTOLD_WORDS), *wrong),
        view="view",
        member="life",
        other=f"if({unusual}, usual.life, null)",
    )
    return installed.unionAll(
        findings(
            divided(tables).where("calm"),
            "accepted the view, and did not install the view next; {other}, which also came from view {also}, did",
            view="view",
            member="life",
            other="other",
            also="previous",
        )
    )


RULE = PromiseRule(
    "merge-agreement",
    MERGED,
    "views",
    "no view was merged",
    counts=(
        Count("views", judged=f"if(size(subgroups) > 0 or {_UNTOLD}, 1, 0)", suspect=_SUSPECT),
        Count(
            divided,
            judged="if(calm, 1, 0)",
            skipped={"a fault may have kept a member from a merged view that it accepted": "if(calm, 0, 1)"},
            suspect="calm",
            needs=frozenset({"merge"}),
        ),
    ),
    exact=exact,
    columns={
        "views": {
            "id_before": f"lag({VIEW_ID}) over (partition by life order by index)",
            "next_index": "lead(index) over (partition by life order by index)",
            "installed": "collect_set(address) over (partition by view)",
            "together": "array_sort(collect_set(address) over (partition by view, coalesce(previous, life)))",
            "low_groups": "min(xxhash64(subgroups)) over (partition by view)",
            "high_groups": "max(xxhash64(subgroups)) over (partition by view)",
            "came_from_views": "size(collect_set(previous) over (partition by view))",
        },
        "lives": {"changes": f"collect_list(if(kind in ('fault', 'heal'), {_CHANGE}, null))"},
    },
)
