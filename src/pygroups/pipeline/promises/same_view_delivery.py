"""same-view-delivery: members that go together from one view to the next deliver a message in the same view.

In `uniform` all members of one history that deliver the message do so, the crashed and the isolated members included.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.branches import NEXT_HISTORY, in_its_history
from pygroups.pipeline.findings import UNIFORM, VIRTUAL_SYNCHRONY, Count, PromiseRule, findings
from pygroups.pipeline.order import LAST, RANK
from pygroups.pipeline.tables import Tables

_RUN: Final = ("sender", "first")


def exact(tables: Tables) -> DataFrame:
    """A fact is one message at one member. Only runs delivered in more than one view are looked at closely.

    The view in which most members delivered the run is right; between equally many members, the view with the
    coordinator.
    """
    several = tables.runs.where("low_view <> high_view").select(*_RUN).distinct()
    ways = tables.views.groupBy("life", "view").agg(
        F.min(F.expr(f"coalesce({RANK}, {LAST})")).alias("rank"),
        F.max("next").alias("next"),
    )
    rows = tables.deliveries.where("view is not null").join(several, list(_RUN), "left_semi")
    rows = in_its_history(tables, rows)
    rows = rows.select("group", "history", "profile", "life", "view", "position", *_RUN)
    # Each delivery is seen from every view with a delivery of the run: members that left it together are one set.
    seen = rows.select(*_RUN, F.col("view").alias("seen")).distinct()
    met = rows.join(seen, list(_RUN)).join(ways.withColumnRenamed("view", "seen"), ["life", "seen"], "left")
    everybody = F.expr(tables.giving(UNIFORM))
    together = met.withColumn("next", F.when(everybody, 0).otherwise(F.col("next"))).where("next is not null")
    together = together.withColumn("rank", F.coalesce("rank", F.expr(LAST)))
    here = "over (partition by sender, first, seen, next, view)"
    sized = together.selectExpr("*", f"struct(count(1) {here}, -min(rank) {here}, view) as weight")
    all_of_them = "over (partition by sender, first, seen, next)"
    judged = sized.selectExpr(
        "*",
        f"max(struct(weight, life, view)) {all_of_them} as right",
        f"bool_or(view = seen) {all_of_them} as inside",
    )
    wrong = judged.where("inside and view <> right.view").dropDuplicates(["life", "view", *_RUN])
    return findings(
        wrong,
        "{other} delivered it in view {also}",
        view="view",
        member="life",
        other="right.life",
        also="right.view",
        origin="sender",
        first="first",
        position="position",
    )


RULE = PromiseRule(
    "same-view-delivery",
    VIRTUAL_SYNCHRONY,
    "messages",
    "nothing was delivered",
    counts=(
        Count("streams", judged="if(kind = 1, messages, 0)"),
        Count("runs", suspect="low_view <> high_view"),
    ),
    exact=exact,
    columns={"views": NEXT_HISTORY},
)
