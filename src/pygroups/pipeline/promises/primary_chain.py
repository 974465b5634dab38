"""primary-chain: under one history id views form one sequence with one beginning.

A majority of each view accepted the next one under one ballot: more than half of its members, or half with the first
one. Members that leave count. The journal of an ended process counts too, if a later process answers in its place.

A history begins with a view of members that had none, or with a view that needs members for which an operator vouched
(`suspect` records with the reason `vouched`).  Vouched members that did not accept that view are left out of the count.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import MAJORITY, Count, PromiseRule, findings, parts_of
from pygroups.pipeline.tables import Tables

_NAME: Final = "concat(view_number, ':', view_creator)"
_THIS: Final = f"struct(view_number, {_NAME} as name, address)"

_NOBODY: Final = "cast(array() as array<string>)"

_FEW: Final = "link in ('follows', 'anew') and not enough"
_UNKNOWN: Final = "the journal of a member that came from the view before is missing or ends early"
_UNSEEN: Final = "no journal has the view before"
_HIDDEN: Final = "the journal of a member that may have accepted the view is missing or ends early"

# The faults of a view at a member, and the words for each, as SQL text.
_WRONG: Final = {
    "not coalesce(is_primary, false)": "'is not primary'",
    "history is null": "'has no history id'",
    "history <> usual.history": "concat('has another history id at ', usual.address)",
    "previous <> came.previous": "concat('follows another view at ', came.address)",
    "view <> heir.view": "concat('follows the same view as ', heir.name, ', which ', heir.address, ' installed')",
    "begins and view <> birth.view": "concat('begins the history, and ', birth.name, ' did')",
    f"{_FEW} and not hidden": "'no majority of the view before accepted this view under one ballot'",
    "link = 'anew' and not vouched and not hidden": "'begins another history, and no operator vouched for a member'",
}
_SUSPECT: Final = " or ".join(f"coalesce({wrong}, false)" for wrong in _WRONG)


def _majority(some: str, members: str = "old_members") -> str:
    """SQL text: whether the addresses in an array are a majority of `members`."""
    half = f"2 * size(array_intersect({members}, {some}))"
    first = f"coalesce(array_contains({some}, get({members}, 0)), false)"
    return f"({half} > size({members}) or {half} = size({members}) and {first})"


def _ballots(tables: Tables) -> DataFrame:
    """Per view and next view that members of the view accepted: `ballots`, for each ballot the addresses of the members
    that accepted."""
    accepted = tables.events.where(f"{tables.giving(MAJORITY)} and kind = 'flush' and stage = 'accepted'")
    link = ["group", "old", "view_number", "view_creator"]
    accepted = accepted.selectExpr(
        *("`group`", "view as old", "next_number as view_number", "next_creator as view_creator"),
        *("ballot_number", "ballot_leader", "address"),
    )
    each = accepted.groupBy(*link, "ballot_number", "ballot_leader").agg(F.collect_set("address").alias("voters"))
    return each.groupBy(*link).agg(F.collect_list("voters").alias("ballots"))


def _vouched(tables: Tables) -> DataFrame:
    """Per group the addresses for which an operator vouched."""
    told = tables.events.where(f"{tables.giving(MAJORITY)} and kind = 'suspect' and reason = 'vouched'")
    return told.groupBy("group").agg(F.collect_set("peer").alias("gone"))


def _views(tables: Tables) -> DataFrame:
    """Each view at each member, with the view `old` before that view, and the known facts about `old`.

    `usual` and `came` have the history id and the view before that most members name.
    """
    view = "over (partition by view)"
    views = tables.views.where(tables.giving(MAJORITY)).selectExpr(
        *("`group`", "profile", "history", "life", "address", "view", "view_number", "view_creator", "members"),
        *("named as previous", "unknown", "is_primary", f"{_THIS} as this"),
        "count(1) over (partition by view, history) as like",
        "count(1) over (partition by view, previous) as beside",
        f"array_except(members, collect_set(address) {view}) as lacking",
    )
    views = views.selectExpr(
        "*",
        f"max(struct(like, history, address)) {view} as usual",
        f"max(if(previous is null, null, struct(beside, previous, address))) {view} as came",
    )
    known = tables.views.groupBy(F.col("view").alias("old")).agg(
        F.min("members").alias("old_members"), F.min("history").alias("old_history")
    )
    return views.selectExpr("*", "came.previous as old").join(known, "old", "left")


def links(tables: Tables) -> DataFrame:
    """One row per view and member, with all that the conditions of `_WRONG` need.

    `link` says how the view is linked with the view before: `first`, `follows`, `anew` (it begins another history),
    `unknown` (no journal shows which members came from a view before), or `unseen` (no journal has the view before).
    `enough`: a majority accepted it. `hidden`: a journal that is missing may show more.
    """
    views = tables.gathered(_views(tables))
    views = views.selectExpr(
        "*",
        """case when old is null then if(arrays_overlap(lacking, unknown), 'unknown', 'first')
            when old_members is null then 'unseen'
            when old_history <=> usual.history then 'follows' else 'anew' end as link""",
    )
    views = tables.gathered(views.join(_ballots(tables), ["group", "old", "view_number", "view_creator"], "left"))
    views = tables.gathered(views.join(_vouched(tables), "group", "left"))
    gone = f"if(link = 'anew', coalesce(gone, {_NOBODY}), {_NOBODY})"
    rest = f"array_except(old_members, array_except({gone}, some))"
    ballots = f"concat(coalesce(ballots, array({_NOBODY})), array({_NOBODY}))"
    begun, after = "over (partition by `group`, history)", "over (partition by old, history)"
    return views.selectExpr(
        *("`group`", "profile", "history", "life", "view", "previous", "is_primary", "usual", "came", "link"),
        "link in ('first', 'anew') as begins",
        f"exists({ballots}, some -> {_majority('some', rest)}) as enough",
        f"""if(link = 'anew', size(unknown) > 0,
            exists({ballots}, some -> {_majority("array_union(some, unknown)")})) as hidden""",
        f"arrays_overlap(old_members, coalesce(gone, {_NOBODY})) as vouched",
        f"min(if(old is null, null, struct(this.*, view))) {after} as heir",
        f"min(if(link in ('first', 'anew'), struct(this.*, view), null)) {begun} as birth",
    )


def exact(tables: Tables) -> DataFrame:
    """A fact is one view at one member."""
    return findings(
        links(tables).where(_SUSPECT),
        parts_of(*((f"coalesce({wrong}, false)", text) for wrong, text in _WRONG.items())),
        view="view",
        member="life",
    )


RULE = PromiseRule(
    "primary-chain",
    MAJORITY,
    "views",
    "no view was installed",
    counts=(
        Count(
            links,
            judged=f"if(link in ('unknown', 'unseen') or {_FEW} and hidden, 0, 1)",
            skipped={
                _UNKNOWN: "if(link = 'unknown', 1, 0)",
                _UNSEEN: "if(link = 'unseen', 1, 0)",
                _HIDDEN: f"if({_FEW} and hidden, 1, 0)",
            },
            suspect=_SUSPECT,
        ),
    ),
    exact=exact,
    columns={"views": {"is_primary": "`primary`"}},
)
