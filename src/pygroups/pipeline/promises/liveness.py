"""liveness: after healing the group forms one view in time, and delivers all messages. Marks are required.

A view in which nothing is wrong is not judged if the journal of one of its members may hide that this member reached
quiet in another view.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import ALL, Count, PromiseRule, findings, words
from pygroups.pipeline.marks import heard
from pygroups.pipeline.tables import Tables

_SETTLED = "marked and quiet_index is not null and healed_us is not null"
_TOLD = "named_struct('at', index, 'blocked', kind = 'block')"
_AFTER = "installed_us - healed_us"
_BLOCKED = "array_max(filter(blocks, told -> told.at < quiet_index)).blocked and array_contains(services, 'PRIMARY')"
_WRONG = {
    "view is null": "'reached quiet without a view'",
    "several": "'reached quiet in another view than members of an earlier common view'",
    f"{_AFTER} > bound_us": f"concat('installed this view ', {_AFTER}, ' us after heal; the bound is ', bound_us)",
    _BLOCKED: "'reached quiet blocked'",
}
"""What is wrong with a view at quiet, and the words for it, as SQL text."""
_BROKEN = " or ".join(f"coalesce({wrong}, false)" for wrong in _WRONG)
_UNKNOWN = f"bound_us is null and not ({_BROKEN})"
# Of the members of the view that have not reached quiet, one has a journal that may hide that it has.
_HIDDEN = f"arrays_overlap(array_except(members, settled), unknown) and bound_us is not null and not ({_BROKEN})"


def at_quiet(tables: Tables) -> DataFrame:
    """Per member at quiet after healing: its view, the time of the view, whether others are in `several` views, and all
    linked members that are `settled`."""
    members = tables.lives.where(f"{_SETTLED} and array_contains(services, 'MEMBERSHIP')").selectExpr(
        *("`group`", "profile", "services", "life", "quiet_view as view", "quiet_index", "healed_us", "bound_us"),
        *("blocks", "unknown", "collect_set(address) over (partition by linked) as settled"),
        "min(quiet_view) over (partition by linked) <> max(quiet_view) over (partition by linked) as several",
    )
    views = tables.views.selectExpr("life", "view", "history", "members", "mono_us as installed_us")
    return members.join(views, ["life", "view"], "left")


def origins(tables: Tables) -> DataFrame:
    """Per origin at quiet: the highest number that the origin had `sent`; how many `members` reached quiet with it."""
    settled = tables.lives.where(_SETTLED).selectExpr(
        "`group`", "profile", "life", "linked", "count(1) over (partition by linked) as members"
    )
    sends = tables.streams.where("kind = 0 and not late").groupBy("life").agg(F.max("last").alias("sent"))
    return tables.gathered(settled.join(sends, "life"))


def reached(tables: Tables) -> DataFrame:
    """Per origin at quiet: `all_heard` counts those of its `members` that had heard all messages up to `sent`."""
    sent = origins(tables).withColumnRenamed("life", "sender")
    members = tables.lives.where(_SETTLED).selectExpr("life", "linked as with")
    marks = heard(tables).where("not late").groupBy("life", "sender").agg(F.max("last").alias("heard"))
    met = sent.join(tables.gathered(marks.join(members, "life")), "sender", "left")
    return met.groupBy("group", "profile", "sender", "members").agg(
        F.expr("cast(null as bigint)").alias("history"),
        F.expr("count_if(linked = with and heard >= sent)").alias("all_heard"),
    )


def exact(tables: Tables) -> DataFrame:
    """A fact is one member at quiet, or one origin at one member that reached quiet."""
    sentence = "case " + " ".join(f"when {wrong} then {said}" for wrong, said in _WRONG.items()) + " end"
    views = findings(at_quiet(tables).where(_BROKEN), F.expr(sentence), view="view", member="life")
    return views.unionAll(_unheard(tables))


def _unheard(tables: Tables) -> DataFrame:
    """The members that lack messages of an origin, for each origin with such a member."""
    late = reached(tables).where("all_heard < members").select("sender")
    sent = origins(tables).withColumnRenamed("life", "sender").join(late, "sender", "left_semi")
    members = tables.lives.where(_SETTLED).select("life", "linked")
    marks = heard(tables).where("not late").groupBy("life", "sender").agg(F.max("last").alias("heard"))
    pairs = sent.select("group", "sender", "linked", "sent").join(members, "linked")
    behind = pairs.join(marks, ["life", "sender"], "left").selectExpr(
        "`group`", "cast(null as bigint) as history", "life", "sender", "sent", "coalesce(heard, 0L) as heard"
    )
    return findings(
        behind.where("heard < sent"),
        words("had delivered up to message ", F.col("heard"), " at quiet, and ", F.col("sent"), " were sent"),
        member="life",
        origin="sender",
        first="heard + 1",
    )


RULE = PromiseRule(
    "liveness",
    ALL,
    "views",
    "the journals have no marks of heal and quiet",
    counts=(
        Count(
            at_quiet,
            judged=f"if(({_UNKNOWN}) or coalesce({_HIDDEN}, false), 0, 1)",
            skipped={
                "a member's start record names no bound": f"if({_UNKNOWN}, 1, 0)",
                "the journal of a member of the last view is missing or ends early": f"if({_HIDDEN}, 1, 0)",
            },
            suspect=_BROKEN,
        ),
        Count(reached, judged="members", suspect="all_heard < members"),
    ),
    exact=exact,
    columns={"lives": {"blocks": f"collect_list(if(kind in ('block', 'unblock'), {_TOLD}, null))"}},
    needs=frozenset({"heal"}),
    alone="journals of the profile unicast have no views; unicast-reported judges what arrives",
)
