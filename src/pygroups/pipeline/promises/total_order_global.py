"""total-order-global: one order over everything: a message has the same view and position at all members.

No two messages share a place, and at each member the views of its deliveries rise.  The views of one history are one
chain (`primary-chain`), and the positions in a view are counted by the member, so these places are one order.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.block_scan import BLOCK
from pygroups.pipeline.branches import NEXT_HISTORY, in_its_history
from pygroups.pipeline.findings import ORDERED, UNIFORM, Count, PromiseRule, findings, words
from pygroups.pipeline.keys import VIEW_ID
from pygroups.pipeline.order import LAST, RANK
from pygroups.pipeline.tables import Tables

_SERVICES: Final = UNIFORM | ORDERED
_RUN: Final = ("sender", "first")
_FALLS: Final = "later.begin < finish"


def spans(tables: Tables) -> DataFrame:
    """One row per member and view with deliveries: the indexes of the first and the last, `begin` and `finish`, and of
    all views with a higher id the one that the member delivered in first, `later`."""
    rows = tables.streams.where(f"{tables.giving(_SERVICES)} and kind = 1 and view is not null")
    sums = {"history": "max(history)", "begin": "min(begin)", "finish": "max(finish)"}
    each = rows.groupBy("group", "profile", "life", "view").agg(*(F.expr(text).alias(n) for n, text in sums.items()))
    ids = tables.views.groupBy("view").agg(F.expr(f"min({VIEW_ID})").alias("id"))
    later = "over (partition by life order by id rows between 1 following and unbounded following)"
    return tables.gathered(each.join(ids, "view")).selectExpr("*", f"min(struct(begin, view)) {later} as later")


def _doubtful(tables: Tables) -> DataFrame:
    """The deliveries of each run that may have several places, or share one: runs in blocks that differ, runs that were
    delivered in several views, and runs that came again."""
    differ = tables.blocks.where("differs").select("view", "block").distinct()
    placed = tables.deliveries.selectExpr("view", *_RUN, f"position div {BLOCK} as block")
    runs = placed.join(differ, ["view", "block"], "left_semi").select(*_RUN)
    runs = runs.unionAll(tables.runs.where("low_view <> high_view").select(*_RUN))
    runs = runs.unionAll(tables.deliveries.where("first < expected").select(*_RUN))
    ranks = tables.views.groupBy("life", "view").agg(F.min(F.expr(f"coalesce({RANK}, {LAST})")).alias("rank"))
    rows = tables.deliveries.where("view is not null and position is not null").join(runs.distinct(), list(_RUN))
    rows = in_its_history(tables, rows).join(ranks, ["life", "view"], "left")
    return rows.selectExpr("group", "history", "life", "view", "position", *_RUN, f"coalesce(rank, {LAST}) as rank")


def _misplaced(tables: Tables) -> DataFrame:
    """The deliveries at another place than that of most members, and those at a place where most members have another
    message; of equally many the coordinator's is right."""
    run, place = "partition by sender, first", "partition by view, position"
    alike = f"over ({run}, view, position)"
    sized = _doubtful(tables).selectExpr("*", f"struct(count(1) {alike}, -min(rank) {alike}) as weight")
    known = sized.selectExpr(
        "*",
        f"max(struct(weight, view, position, -rank, life)) over ({run}) as usual",
        f"max(struct(weight, sender, first, -rank, life)) over ({place}) as here",
    )
    elsewhere = "not (view = usual.view and position = usual.position)"
    taken = "not (sender = here.sender and first = here.first)"
    wrong = known.where(f"{elsewhere} or {taken}").selectExpr("*", f"{elsewhere} as elsewhere")
    return wrong.dropDuplicates(["life", "view", "position", *_RUN])


def exact(tables: Tables) -> DataFrame:
    """A fact is one message at one member."""
    run = {"view": "view", "member": "life", "origin": "sender", "first": "first", "position": "position"}
    misplaced = findings(
        _misplaced(tables),
        F.when(
            F.col("elsewhere"), words("{other} delivered it at position ", F.col("usual.position"), " of view {also}")
        ).otherwise("{other} delivered another message at this place"),
        other="if(elsewhere, usual.life, here.life)",
        also="usual.view",
        **run,
    )
    unplaced = findings(
        tables.deliveries.where("view is not null and position is null"),
        "delivered without a place in the order of its view",
        **run,
    )
    falls = spans(tables).where(_FALLS).selectExpr("life", "view", "finish as index", "later.view as later")
    fallen = findings(
        tables.deliveries.join(falls, ["life", "view", "index"]),
        "delivered behind a message of the later view {also}",
        also="later",
        **run,
    )
    return misplaced.unionAll(unplaced).unionAll(fallen)


RULE = PromiseRule(
    "total-order-global",
    _SERVICES,
    "messages",
    "nothing was delivered",
    counts=(
        Count("streams", judged="if(kind = 1 and view is not null, messages, 0)", suspect="kind = 1 and again > 0"),
        Count("blocks", suspect="differs or block is null"),
        Count("runs", suspect="low_view <> high_view"),
        Count(spans, suspect=_FALLS),
    ),
    exact=exact,
    columns={
        "views": NEXT_HISTORY,
        "streams": {"finish": "max(index)", "again": "count_if(first < expected)"},  # which runs came again
    },
)
