"""merge-announced: a merged view begins with gaps over exactly the messages that the member lacks of the merge's marks.

The marks of a merge are in the `merge` record with stage `installed`: per origin the last number that any side had.
Every skipped message was delivered by some member, which may have died since.  The members that a gap names delivered
all of its messages; one that did not install the merged view is not judged, because its journal may end before.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import MERGED, Count, PromiseRule, findings, parts_of
from pygroups.pipeline.keys import life_sql
from pygroups.pipeline.marks import heard
from pygroups.pipeline.tables import Tables

_VIEW: Final = ("life", "view")
_STREAM: Final = (*_VIEW, "sender")
_CLAIM: Final = "xxhash64(view, sender, first, count, members)"
_LACKED = "concat(own + 1, ' to ', mark)"
_SAID = "concat(first, ' to ', last)"

# The errors in the gaps of one origin in a merged view at a member, each with its sentence, as SQL text.
_WRONG = {
    "own > mark": "concat('had delivered up to ', own, ', but the mark of the merge is ', mark)",
    "own < mark and gaps = 0": f"concat('announces nothing, and lacks ', {_LACKED})",
    "gaps > 0 and mark is null": f"concat('announces ', {_SAID}, ' of an origin that the merge does not name')",
    "gaps > 0 and own >= mark": f"concat('announces ', {_SAID}, ', and misses no message')",
    "own < mark and gaps > 0 and not (first = own + 1 and last = mark and messages = mark - own)": (
        f"concat('announces ', {_SAID}, ' with ', messages, ' messages, and lacks ', {_LACKED})"
    ),
    "not named": "'names a subgroup that this view does not have'",
    "misnamed": "'names a member that did not deliver the messages of its gap'",
    "not in_time": "'announces a gap behind a message that was delivered in this view'",
    "covered < last - first + 1 and not hidden": (
        f"concat('announces ', {_SAID}, ', of which members delivered ', covered)"
    ),
    "covered > last - first + 1": f"concat('announces ', {_SAID}, ', but a run ends behind this gap')",
}
# A gap names members of one subgroup, and not its own member unless that member begins with a given state.
_OWN = "not given and coalesce(array_contains(members, address), false)"
_NAMED = f"exists(subgroups, one -> members is null or size(array_except(members, one)) = 0) and not ({_OWN})"
_BROKEN = " or ".join(f"coalesce({wrong}, false)" for wrong in _WRONG)
_UNSURE = "coalesce(covered < last - first + 1 and hidden, false)"
_FAULT = "known and (wrong or unlike)"
_JUDGED = f"(known and (not unsure or {_FAULT}))"


def merged_views(tables: Tables) -> DataFrame:
    """Merged views at members, with the `marks` of the merge; `unlike`: another member has other marks."""
    steps = tables.events.where("kind = 'merge' and stage = 'installed'").selectExpr(
        *("life", "next_number as view_number", "next_creator as view_creator", "index", "digest")
    )
    steps = steps.groupBy("life", "view_number", "view_creator").agg(F.max_by("digest", "index").alias("marks"))
    views = tables.views.where("size(subgroups) > 0").join(steps, ["life", "view_number", "view_creator"], "left")
    digest = "xxhash64(array_sort(map_entries(map_filter(marks, (origin, last) -> last > 0))))"
    known = views.selectExpr(
        *("`group`", "profile", "history", "life", "view", "index", "subgroups", "marks"),
        *("size(unknown) > 0 as hidden", "marks is not null as known", f"if(marks is null, null, {digest}) as hash"),
        *("address", "digest is not null as given"),
    )
    return known.selectExpr(
        *(name for name in known.columns if name != "hash"),
        "coalesce(min(hash) over (partition by view) <> max(hash) over (partition by view), false) as unlike",
    )


def _gaps(tables: Tables, merged: DataFrame) -> DataFrame:
    """Per merged view at a member and origin: the announced gaps, and how many of their numbers members delivered."""
    began = tables.streams.where("kind = 1").groupBy(*_VIEW).agg(F.min("begin").alias("began"))
    rows = tables.events.where("kind = 'gap'").selectExpr(
        *_STREAM, "index as at", "members", "first", "count", f"{_CLAIM} as claim"
    )
    sides = merged.select(*_VIEW, "subgroups", "address", "given")
    rows = tables.gathered(rows.join(sides, list(_VIEW))).join(began, list(_VIEW), "left")
    rows = rows.join(_misnamed(tables), "claim", "left")
    gaps = rows.groupBy(*_STREAM).agg(
        F.count(F.lit(1)).alias("gaps"),
        F.min("first").alias("first"),
        F.expr("max(first + count - 1)").alias("last"),
        F.sum("count").alias("messages"),
        F.expr(f"bool_and({_NAMED})").alias("named"),
        F.expr("bool_and(coalesce(at < began, true))").alias("in_time"),
        F.expr("bool_or(coalesce(misnamed, false))").alias("misnamed"),
    )
    return gaps.join(_covered(tables, gaps), ["sender", "first", "last"], "left")


def _misnamed(tables: Tables) -> DataFrame:
    """The claims of gaps, each the same at all members that announce it, that name a member which delivered less."""
    said = tables.events.where("kind = 'gap' and size(members) > 0").selectExpr(
        "`group`", f"{_CLAIM} as claim", "view", "sender", "first", "count", "members"
    )
    named = said.dropDuplicates(["claim"]).selectExpr(
        "`group`", "claim", "view", "sender", "first", "count", "explode(members) as member"
    )
    named = named.selectExpr("claim", "view", "sender", "first", "count", f"{life_sql('member')} as life")
    here = tables.gathered(named.join(tables.views.select(*_VIEW), list(_VIEW)))
    had = tables.streams.where("kind = 1").selectExpr("life", "sender", "last - messages + 1 as low", "last as high")
    both = here.join(had, ["life", "sender"], "left")
    overlap = "if(high is null, 0L, greatest(0L, least(high, first + count - 1) - greatest(low, first) + 1))"
    sums = both.groupBy("claim", "life", "count").agg(F.expr(f"coalesce(sum({overlap}), 0L)").alias("delivered"))
    return sums.where("delivered < count").selectExpr("claim", "true as misnamed").distinct()


def _covered(tables: Tables, gaps: DataFrame) -> DataFrame:
    """Per range of numbers of a sender: `covered`, how many of them members delivered, in runs that end in the range.

    From the sums of distinct numbers that all runs up to an end have.
    """
    ranges = gaps.select("sender", "first", "last").distinct()
    senders = ranges.select("sender").distinct()
    runs = tables.all_runs.where("peer = 0 and deliveries > 0").join(senders, "sender", "semi")
    ended = runs.selectExpr("sender", "first", "first + delivered div deliveries - 1 as at")
    before = "over (partition by sender order by first rows between unbounded preceding and 1 preceding)"
    new = f"greatest(0L, at - greatest(first - 1, coalesce(max(at) {before}, 0L)))"
    ends = ranges.selectExpr("sender", "explode(array(first - 1, last)) as at", "0L as new")
    both = tables.gathered(ended.selectExpr("sender", "at", f"{new} as new").unionAll(ends))
    sums = both.selectExpr("sender", "at", "sum(new) over (partition by sender order by at) as upto").distinct()
    low = sums.selectExpr("sender", "at + 1 as first", "upto as below")
    high = sums.selectExpr("sender", "at as last", "upto")
    known = tables.gathered(tables.gathered(ranges.join(low, ["sender", "first"])).join(high, ["sender", "last"]))
    return known.selectExpr("sender", "first", "last", "upto - below as covered")


def _own(tables: Tables, places: DataFrame) -> DataFrame:
    """Per place (life, view, sender, index): the last number of the sender that the incarnation had heard before, as
    `own`.

    A view that begins with a given state starts the numbers anew.
    """
    lives = places.select("life").distinct()
    blank = "cast(null as bigint)"
    steps = heard(tables).selectExpr("life", f"{blank} as view", "sender", "index", "last", f"{blank} as begins")
    begun = tables.views.where("digest is not null").selectExpr(
        *("life", f"{blank} as view", f"{blank} as sender", "index", "0L as last", "index as begins")
    )
    asked = places.selectExpr("life", "view", "sender", "index", "0L as last", f"{blank} as begins")
    known = tables.gathered(steps.unionAll(begun)).join(lives, "life", "semi")
    rows = tables.gathered(known.unionAll(asked)).selectExpr(
        "*", "max(begins) over (partition by life order by index) as epoch"
    )
    upto = "max(last) over (partition by life, epoch, sender order by index) as own"
    return rows.selectExpr("life", "view", "sender", upto).where("view is not null")


def entries(tables: Tables) -> DataFrame:
    """One row per merged view at a member and origin that the merge names or a gap is about.

    `mark` is the last number of the origin in the merge, `own` the last one that the member had heard before.
    """
    merged = merged_views(tables).where("known")
    marks = merged.selectExpr("`group`", *_VIEW, "explode(marks) as (origin, mark)").where("mark > 0")
    marks = marks.selectExpr(*_VIEW, f"{life_sql('origin')} as sender", "mark")
    both = marks.join(_gaps(tables, merged), list(_STREAM), "full")
    rows = tables.gathered(both.join(merged.drop("marks", "subgroups", "address", "given"), list(_VIEW)))
    own = _own(tables, rows.select(*_STREAM, "index"))
    known = tables.gathered(rows.join(own, list(_STREAM)))
    return known.withColumn("gaps", F.expr("coalesce(gaps, 0L)"))


def announced(tables: Tables) -> DataFrame:
    """One row per merged view at a member: `wrong`, and `unsure` where a missing journal may show a delivery."""
    origins = (
        entries(tables)
        .groupBy(*_VIEW)
        .agg(F.expr(f"bool_or({_BROKEN})").alias("wrong"), F.expr(f"bool_or({_UNSURE})").alias("unsure"))
    )
    views = merged_views(tables).join(origins, list(_VIEW), "left")
    return views.na.fill(False, ["wrong", "unsure"])


def exact(tables: Tables) -> DataFrame:
    """A fact is one merged view at one member."""
    origins = findings(
        entries(tables).where(_BROKEN),
        parts_of(*_WRONG.items()),
        view="view",
        member="life",
        origin="sender",
        first="coalesce(first, own + 1)",
    )
    unlike = findings(
        merged_views(tables).where("known and unlike"),
        "begins with other marks than another member of this view",
        view="view",
        member="life",
    )
    return origins.unionAll(unlike)


RULE = PromiseRule(
    "merge-announced",
    MERGED,
    "views",
    "no view was merged",
    counts=(
        Count(
            announced,
            judged=f"if({_JUDGED}, 1, 0)",
            skipped={
                "the journal does not contain the marks of the merge": "if(known, 0, 1)",
                "a journal that may show who delivered is missing or ends early": f"if(known and not {_JUDGED}, 1, 0)",
            },
            suspect=_FAULT,
        ),
    ),
    exact=exact,
    needs=frozenset({"merge"}),
)
