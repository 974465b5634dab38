"""fifo: messages of one sender are delivered in the order sent, without holes unless a gap was announced."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.old_findings import (
    GROUPS,
    UNIFORM,
    VIRTUAL_SYNCHRONY,
    Rule,
    facts,
    findings,
    sender_name,
    view_name,
    words,
)
from pygroups.pipeline.old_tables import Tables


def judge(tables: Tables) -> DataFrame:
    """A fact is one message at one member; what does not continue its sender's numbers is in `irregular`."""
    wrong = findings(
        tables.irregular,
        broken=F.lit(True),
        view=view_name(),
        member=F.col("address"),
        origin=sender_name(),
        first=F.col("first"),
        position=F.col("position"),
        detail=words(
            F.when(F.col("is_gap"), "a gap was announced from message ").otherwise("delivered message "),
            F.col("first"),
            " where ",
            F.col("expected"),
            " was next",
        ),
    )
    found = facts(tables.deliveries).unionAll(wrong)
    return found.unionAll(_gaps_outside_merges(tables)) if "gaps" in tables.suspicious else found


def _gaps_outside_merges(tables: Tables) -> DataFrame:
    """Gaps where there are none: with virtual synchrony only a merge skips anything, and `uniform` never merges."""
    merges = tables.views.where(F.col("subgroups").isNotNull() & (F.size("subgroups") > 0))
    merges = merges.where(~F.col("profile").isin(*sorted(UNIFORM))).select("life", "view")
    gaps = tables.events.where((F.col("kind") == "gap") & F.col("profile").isin(*sorted(VIRTUAL_SYNCHRONY)))
    return findings(
        gaps.join(F.broadcast(merges), ["life", "view"], "left_anti"),
        broken=F.lit(True),
        view=view_name(),
        member=F.col("address"),
        origin=sender_name(),
        first=F.col("first"),
        detail=words("a gap over ", F.col("count"), " messages was announced in a view that is no merge"),
    )


RULE = Rule("fifo", GROUPS, "messages", "nothing was delivered", judge)
