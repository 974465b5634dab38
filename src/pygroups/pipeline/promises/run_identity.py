"""run-identity: a run has one count, size and checksum everywhere, and is sent once: a resend writes no record."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import ALL, Count, PromiseRule, findings, words
from pygroups.pipeline.order import LAST, RANK
from pygroups.pipeline.runs import LABEL, RUN, said_of
from pygroups.pipeline.tables import Tables

_FIELDS: Final = ("count", "bytes", "checksum")
_SUSPECT: Final = "low_label <> high_label or sends > 1"


def exact(tables: Tables) -> DataFrame:
    """A fact is one message as one member sent or delivered it.

    The first record of the origin is right.  Without the origin's journal the content at most members is right; between
    equally many members, the content at the coordinator.
    """
    odd = tables.runs.where(_SUSPECT).select(*RUN)
    ranks = tables.views.groupBy("life", "view").agg(F.min(F.expr(RANK)).alias("rank"))
    rows = said_of(tables).join(odd, list(RUN), "left_semi").join(ranks, ["life", "view"], "left")
    run = f"over (partition by {', '.join(RUN)})"
    sized = rows.selectExpr(
        *("group", "history", "life", "index", *RUN, *_FIELDS, f"{LABEL} as label"),
        f"coalesce(rank, {LAST}) as rank",
        "kind in (0, 2) as sends",
    ).selectExpr("*", f"count(1) over (partition by {', '.join(RUN)}, label) as votes")
    origins, usual = "min_by(label, if(sends, index, null))", "max_by(label, struct(votes, -rank, label))"
    known = sized.selectExpr("*", f"coalesce({origins} {run}, {usual} {run}) as right")
    best = "if(label = right, struct(not sends, rank, life), null)"
    told = known.selectExpr("*", f"min_by(struct(life, {', '.join(_FIELDS)}), {best}) {run} as other")
    wrong = told.where("label <> right").dropDuplicates(["life", *RUN])
    unlike = findings(
        wrong,
        words("one run with two contents: ", F.concat_ws("; ", *map(_between, _FIELDS))),
        member="life",
        other="other.life",
        origin="sender",
        first="first",
    )
    same = known.where("sends and label = right").groupBy("group", "life", *RUN)
    again = same.agg(F.min("history").alias("history"), F.count(F.lit(1)).alias("times")).where("times > 1")
    sent = words("sent ", F.col("times"), " times: each run is sent once, and a resend writes no record")
    return unlike.unionAll(findings(again, sent, member="life", origin="sender", first="first"))


def _between(name: str) -> Column:
    here, there = F.col(name), F.col(f"other.{name}")
    return F.when(here != there, words(f"{name} ", here, " here and ", there, " at {other}"))


RULE = PromiseRule(
    "run-identity",
    ALL,
    "messages",
    "nothing was sent or delivered",
    counts=(Count("streams", judged="messages"), Count("runs", suspect=_SUSPECT)),
    exact=exact,
)
