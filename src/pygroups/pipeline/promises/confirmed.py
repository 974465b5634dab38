"""confirmed: no message that a member delivered is lost in silence when it takes a state.

A member that waits for one state after the other loses no message that it delivered meanwhile.

It acknowledges the messages, so `until=` confirms them, and no program has them yet.  A state that it is given at last
contains them.  If no state comes, its program gets all events behind the first of these states, and a state that it
gives on has no more than these.  Journals do not show what a program gets: the record `state_lost` names the place at
which it begins.

A state that replaces another one, after a merge, can lack messages that its taker delivered before.  What a state lacks
follows from the gaps of its giver, since the state that the giver took itself, and from the `lack` records of that one.
The taker has `lack` records for all of these.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import LATER_STATE, VIRTUAL_SYNCHRONY, Count, PromiseRule, findings, words
from pygroups.pipeline.keys import life_sql
from pygroups.pipeline.tables import Tables

_FACT: Final = ("life", "at")
_OF: Final = ("`group`", "profile", "history", "life", "view", "at", "kind")
_ENTRIES: Final = "array_sort(map_entries(map_filter({}, (origin, mark) -> mark > 0)))"
_ELSEWHERE: Final = f"kind = 'state_lost' and {_ENTRIES.format('digest')} <> {_ENTRIES.format('first')}"
_UNLIKE: Final = "if(kind = 'state_set', had > claimed, kind = 'state_get' and claimed > had)"
_BROKEN: Final = f"({_ELSEWHERE} or coalesce(unlike, false))"


def ends(tables: Tables) -> DataFrame:
    """The ends of waits: a state was set, or the program began without one.

    `waits` is the number of states that were waited for, `at` the index of the record, `since` and `until` those of the
    first and the last view with a state that did not come before, `first` the digest of the first one, `following` the
    index of the next end.
    """
    begun = tables.views.where("digest is not null").selectExpr("life", "view", "index as begin", "digest as begun")
    told = tables.events.where("kind in ('state_set', 'state_lost')").selectExpr(
        *("`group`", "profile", "history", "life", "view", "index as at", "kind", "digest")
    )
    member = "over (partition by life order by at"
    known = tables.gathered(told.join(begun.selectExpr("life", "view", "begin as until"), ["life", "view"])).selectExpr(
        "*",
        f"coalesce(max(until) {member} rows between unbounded preceding and 1 preceding), -1L) as before",
        f"coalesce(lead(at) {member}), {_FOR_EVER}) as following",
    )
    met = tables.gathered(known.join(begun.drop("view"), "life")).where("begin > before and begin <= until")
    return met.groupBy("group", "profile", "history", "life", "view", "at", "kind", "until", "following").agg(
        F.first("digest").alias("digest"),
        F.min("begin").alias("since"),
        F.min_by("begun", "begin").alias("first"),
        F.count(F.lit(1)).alias("waits"),
    )


def _ends(tables: Tables) -> DataFrame:
    return tables.kept("silver/ends", ends)


_FOR_EVER: Final = "9223372036854775807L"


def facts(tables: Tables) -> DataFrame:
    """One row per end of such a wait, and per state that was given after an end without a state."""
    ended = _ends(tables).where("waits > 1").selectExpr(*_OF, "since", "until", "digest", "first", "following")
    lost = ended.where("kind = 'state_lost'").selectExpr("life", "at as lost_at", "since", "first", "following")
    begun = tables.views.selectExpr("life", "view", "index as until")
    gets = tables.events.where("kind = 'state_get'").selectExpr(
        *("`group`", "profile", "history", "life", "view", "index as at", "kind", "digest")
    )
    gives = tables.gathered(tables.gathered(gets.join(begun, ["life", "view"])).join(lost, "life"))
    gives = gives.where("at > lost_at and at < following")
    return tables.gathered(ended.drop("following").unionByName(gives.drop("lost_at", "following")))


def _unlike(tables: Tables, known: DataFrame) -> DataFrame:
    """Per fact and sender: `claimed`, the last number in the state, and `had`, the last one that the member delivered,
    announced as a gap, or skips with the state: for a given state, from the first state on that did not come."""
    delivered = tables.streams.where("kind = 1").selectExpr(
        "life", "sender", "begin as index", "last", "view", "false as gap"
    )
    gaps = tables.events.where("kind = 'gap'").selectExpr(
        "life", "sender", "index", "first + count - 1 as last", "view", "true as gap"
    )
    steps = tables.gathered(delivered.unionAll(gaps))
    met = tables.gathered(known.selectExpr(*_FACT, "kind", "since", "until", "view as of").join(steps, "life"))
    had = met.where("index >= since and index < until").selectExpr(*_FACT, "sender", "0L as claimed", "last as had")
    skipped = met.where("kind = 'state_set' and gap and view = of")
    covered = skipped.selectExpr(*_FACT, "sender", "last as claimed", "0L as had")
    claims = _marks(known, "digest").selectExpr(*_FACT, "sender", "last as claimed", "0L as had")
    base = _marks(known.where("kind = 'state_get'"), "first").selectExpr(
        *_FACT, "sender", "0L as claimed", "last as had"
    )
    both = tables.gathered(had.unionAll(covered).unionAll(claims).unionAll(base))
    return both.groupBy(*_FACT, "sender").agg(F.max("claimed").alias("claimed"), F.max("had").alias("had"))


def _marks(known: DataFrame, digest: str) -> DataFrame:
    rows = known.selectExpr("`group`", *_FACT, f"explode({digest}) as (origin, last)").where("last > 0")
    return rows.selectExpr(*_FACT, f"{life_sql('origin')} as sender", "last")


def judged(tables: Tables) -> DataFrame:
    """One row per fact, with the first sender whose numbers are `unlike`."""
    known = tables.kept("silver/waits", facts)
    unlike = tables.gathered(_unlike(tables, known).join(known.selectExpr(*_FACT, "kind"), list(_FACT))).where(_UNLIKE)
    first = unlike.groupBy(*_FACT).agg(
        F.lit(True).alias("unlike"),
        F.min("sender").alias("sender"),
        F.min_by("claimed", "sender").alias("claimed"),
        F.min_by("had", "sender").alias("had"),
    )
    return known.join(first, list(_FACT), "left")


def exact(tables: Tables) -> DataFrame:
    """A fact is one end of a wait at one member, or one state that a member gives after such an end."""
    wrong = judged(tables).where(_BROKEN)
    elsewhere = findings(
        wrong.where(_ELSEWHERE),
        "went on without a state, and not behind the first state that it waited for",
        view="view",
        member="life",
    )
    unlike = wrong.where("unlike")
    lacks = words(
        "set a state up to message ", F.col("claimed"), ", and had delivered up to ", F.col("had"), " while it waited"
    )
    gives = words("gave a state up to message ", F.col("claimed"), ", and went on without a state up to ", F.col("had"))
    lost = untold(tables).where("low is not null")
    took = words("set a state without messages ", F.col("low"), " to ", F.col("high"), ", and does not say so")
    silent = findings(lost, took, view="view", member="life", other="giver", origin="sender", first="low")
    return elsewhere.unionAll(silent).unionAll(
        findings(
            unlike,
            F.when(F.col("kind") == "state_set", lacks).otherwise(gives),
            view="view",
            member="life",
            origin="sender",
            first="least(claimed, had) + 1",
        )
    )


def _replaced(tables: Tables) -> DataFrame:
    """One row per state that replaced another one, with its giver, the place where the giver gave it, and the state
    that the giver took last before: its view and place.  A giver that went on without a state is left out."""
    every = _ends(tables)
    first = tables.views.groupBy("life").agg(F.min("index").alias("first_index"))
    peers = tables.events.where("kind = 'state_set'").selectExpr(
        "life", "view", "index as at", f"{life_sql('peer')} as giver"
    )
    sets = tables.gathered(
        every.where("kind = 'state_set'").drop("first", "digest").join(peers, ["life", "view", "at"])
    )
    sets = tables.gathered(sets.join(first, "life")).where("since > first_index")
    given = tables.views.selectExpr("life as giver", "view", "index as given_at")
    base = every.selectExpr("life as giver", "kind as how", "view as base", "until as base_at")
    known = tables.gathered(sets.join(given, ["giver", "view"])).join(base, ["giver"], "left")
    before = "base_at < given_at"
    rows = known.groupBy("`group`", "profile", "history", "life", "view", "at", "since", "giver", "given_at").agg(
        F.expr(f"coalesce(max(if({before}, base_at, null)), -1L)").alias("base_at"),
        F.expr(f"max_by(base, if({before}, base_at, null))").alias("base"),
        F.expr(f"coalesce(bool_or({before} and how = 'state_lost'), false)").alias("without"),
    )
    return rows.where("not without").drop("without")


def _lacking(tables: Tables, sets: DataFrame) -> DataFrame:
    """The ranges of numbers `low` to `high` of a sender that a state lacks, by what its giver said before."""
    range_of = ("sender", "first as low", "first + count - 1 as high")
    gaps = tables.events.where("kind = 'gap'").selectExpr(
        "life as giver", "index", "cast(null as bigint) as of", *range_of
    )
    said = tables.events.where("kind = 'lack' and reason = 'set'")
    own = said.selectExpr("life as giver", "cast(null as bigint) as index", "view as of", *range_of)
    both = tables.gathered(sets.join(tables.gathered(gaps.unionAll(own)), "giver"))
    return both.where("(index > base_at and index < given_at) or of = base")


def untold(tables: Tables) -> DataFrame:
    """One row per state that replaced another one; `sender`, `low`, `high`: the first messages that it lacks, that its
    taker delivered before, and that no record of the taker names."""
    keys = ("life", "view", "at")
    sets = _replaced(tables)
    had = tables.streams.where("kind = 1").selectExpr("life", "sender", "begin", "last - messages + 1 as begun", "last")
    lacked = _lacking(tables, sets).select(*keys, "since", "sender", "low", "high")
    delivered = tables.gathered(lacked.join(had, ["life", "sender"]))
    lost = delivered.where("begin < since and begun <= high and last >= low")
    told = tables.events.where("kind = 'lack' and reason = 'set'").selectExpr(
        "life", "view", "sender", "first as told", "first + count - 1 as till"
    )
    met = lost.select(*keys, "sender", "low", "high").distinct().join(told, ["life", "view", "sender"], "left")
    silent = (
        met.groupBy(*keys, "sender", "low", "high")
        .agg(F.expr("bool_or(coalesce(told <= low and till >= high, false))").alias("named"))
        .where("not named")
    )
    first = silent.groupBy(*keys).agg(
        F.min("sender").alias("sender"),
        F.min_by("low", "sender").alias("low"),
        F.min_by("high", "sender").alias("high"),
    )
    return sets.select("`group`", "profile", "history", *keys, "giver").join(first, list(keys), "left")


RULE = PromiseRule(
    "confirmed",
    VIRTUAL_SYNCHRONY,
    "views",
    "no member waited for one state after the other, and no state replaced another one",
    counts=(
        Count(judged, judged="1", suspect=_BROKEN),
        Count(untold, judged="1", suspect="low is not null", needs=frozenset({"gap", "lack"})),
    ),
    exact=exact,
    needs=frozenset({LATER_STATE}),
)
