"""state-cut: a given state covers exactly the messages that its provider delivered before the view."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import VIRTUAL_SYNCHRONY, Count, PromiseRule, findings, words
from pygroups.pipeline.keys import life_sql
from pygroups.pipeline.marks import heard
from pygroups.pipeline.tables import Tables

_MASK = "1099511627775L"  # 40 bits: a sum of them does not overflow
_ENTRY = f"(xxhash64({{}}, {{}}) & {_MASK})"
_CLAIMS = f"""
    aggregate(map_entries(map_filter(digest, (origin, mark) -> mark > 0)), 0L,
              (sum, entry) -> sum + {_ENTRY.format(life_sql("entry.key"), "entry.value")})
"""


def given(tables: Tables) -> DataFrame:
    """One row per state that a member gave: digests of the numbers that it `claims` and of those it `had` heard.

    From running maxima per giver and sender: each step up changes the digest of all that the giver has heard.
    """
    steps = heard(tables).selectExpr(
        *("`group`", "life", "index", "sender", "last"),
        *("cast(null as string) as profile", "cast(null as bigint) as history", "cast(null as bigint) as claims"),
    )
    states = _states(tables).selectExpr(
        *("`group`", "life", "begin as index", "cast(null as bigint) as sender", "0L as last"),
        *("profile", "history", f"{_CLAIMS} as claims"),
    )
    mine = "max(last) over (partition by life, sender order by index rows between unbounded preceding and"
    known = tables.gathered(steps.unionAll(states)).selectExpr(
        *("`group`", "profile", "history", "life", "index", "sender", "claims"),
        f"{mine} 1 preceding) as low",
        f"{mine} current row) as high",
    )
    entries = [f"if({name} > 0, {_ENTRY.format('sender', name)}, 0L)" for name in ("high", "low")]
    changes = known.where("claims is not null or high > coalesce(low, 0L)").selectExpr(
        "*", f"{' - '.join(entries)} as change"
    )
    return changes.selectExpr(
        *("`group`", "profile", "history", "claims"), "sum(change) over (partition by life order by index) as had"
    ).where("claims is not null")


def _states(tables: Tables) -> DataFrame:
    """The states that members gave, each with the index at which the view of the state begins."""
    begun = tables.views.select("life", "view", F.col("index").alias("begin"))
    return tables.gathered(tables.events.where("kind = 'state_get'").join(begun, ["life", "view"]))


def _unlike(tables: Tables) -> DataFrame:
    """The states with wrong numbers, with the first wrong sender: the number up to which the provider `claimed` to have
    heard this sender, and the number up to which it `had`."""
    states = _states(tables).selectExpr(
        *("`group`", "history", "life", "view", "begin", "digest"),
        f"{life_sql('peer')} as taker",
        "xxhash64(life, index) as state",
    )
    claims = states.selectExpr("`group`", "state", "explode(digest) as (origin, claimed)").where("claimed > 0")
    claims = claims.selectExpr("state", f"{life_sql('origin')} as sender", "claimed", "0L as had")
    both = tables.gathered(claims.unionAll(_had(tables, states))).groupBy("state", "sender")
    unlike = both.agg(F.max("claimed").alias("claimed"), F.max("had").alias("had")).where("claimed <> had")
    first = unlike.groupBy("state").agg(
        F.min("sender").alias("about"),
        F.min_by("claimed", "sender").alias("claimed"),
        F.min_by("had", "sender").alias("had"),
    )
    return states.drop("digest", "begin").join(first, "state")


def _had(tables: Tables, states: DataFrame) -> DataFrame:
    """Per state and sender: the highest number that its giver had heard before that view.

    From running maxima per giver and sender; each state is a place at which they are read.
    """
    steps = heard(tables).join(states.select("life").distinct(), "life", "left_semi")
    senders = steps.select("life", "sender").distinct().join(states.select("life", "begin", "state"), "life")
    places = senders.selectExpr("life", "sender", "begin as index", "0L as last", "state")
    marked = steps.selectExpr("life", "sender", "index", "last", "cast(null as bigint) as state").unionAll(places)
    upto = "max(last) over (partition by life, sender order by index)"
    return (
        tables.gathered(marked)
        .selectExpr("state", "sender", "0L as claimed", f"{upto} as had")
        .where("state is not null")
    )


_UNGIVEN = "given_digest is null"
_WRONG = {
    "taken_digest <> view_digest": "the digest of the state is not the digest of the view",
    f"{_UNGIVEN} and whole and not open": "the provider gave no state for this view",
    "given_digest <> taken_digest": "the digest of the state is not the digest that the provider recorded",
    "given_checksum <> checksum": "the bytes of the state are not the bytes that the provider gave",
}
_BROKEN = " or ".join(f"coalesce({wrong}, false)" for wrong in _WRONG)
_UNKNOWN = f"{_UNGIVEN} and not coalesce(whole and not open, false) and not ({_BROKEN})"
_ENTRIES = "array_sort(map_entries(map_filter({}, (origin, mark) -> mark > 0)))"  # 0 is as good as no entry


def taken(tables: Tables) -> DataFrame:
    """One row per state that a member took, next to the state that its provider gave and the state of its view."""
    states = tables.events.where("kind = 'state_get'").selectExpr(
        *("life as provider", "view", "checksum as given_checksum"),
        f"{life_sql('peer')} as life",
        f"{_ENTRIES.format('digest')} as given_digest",
    )
    begun = tables.views.selectExpr("life", "view", f"{_ENTRIES.format('digest')} as view_digest")
    lives = tables.lives.select(F.col("life").alias("provider"), "whole", "open")
    sets = tables.events.where("kind = 'state_set'").selectExpr(
        *("`group`", "profile", "history", "life", "view", "checksum"),
        f"{life_sql('peer')} as provider",
        f"{_ENTRIES.format('digest')} as taken_digest",
    )
    rows = sets.join(states.dropDuplicates(["life", "view", "provider"]), ["life", "view", "provider"], "left")
    return rows.join(begun, ["life", "view"], "left").join(lives, "provider", "left")


def exact(tables: Tables) -> DataFrame:
    """A fact is one state given or taken at one member; a state taken needs its provider's journal."""
    sentence = (
        "case " + " ".join(f"when {wrong} then 'took a state: {said}'" for wrong, said in _WRONG.items()) + " end"
    )
    gave = findings(
        _unlike(tables),
        words("gave a state up to message ", F.col("claimed"), ", and had delivered up to ", F.col("had")),
        view="view",
        member="life",
        other="taker",
        origin="about",
    )
    took = findings(taken(tables).where(_BROKEN), F.expr(sentence), view="view", member="life", other="provider")
    return gave.unionAll(took)


RULE = PromiseRule(
    "state-cut",
    VIRTUAL_SYNCHRONY,
    "views",
    "no state was given",
    counts=(
        Count(given, judged="1", suspect="claims <> had"),
        Count(
            taken,
            judged=f"if({_UNKNOWN}, 0, 1)",
            skipped={
                "the journal of the provider is missing or ends early": (
                    f"if({_UNKNOWN} and not coalesce(whole, false), 1, 0)"
                ),
                "the journal of the provider is open": f"if({_UNKNOWN} and whole, 1, 0)",
            },
            suspect=_BROKEN,
        ),
    ),
    exact=exact,
    needs=frozenset({"state_get", "state_set"}),
)
