"""initial-view: no member sends or delivers a multicast before its first view."""

from pyspark.sql import DataFrame

from pygroups.pipeline.findings import GROUPS, Count, PromiseRule, findings
from pygroups.pipeline.tables import Tables


def exact(tables: Tables) -> DataFrame:
    """A fact is one message that a member sent or delivered."""
    columns = ["group", "history", "life", "index", "view", "sender", "first"]
    rows = tables.sends.select(columns).unionAll(tables.deliveries.select(columns))
    early = "view is null or first_view is null or index < first_view"
    return findings(
        rows.join(tables.lives.select("life", "first_view"), "life").where(early),
        "sent or delivered before the first view of {member}",
        member="life",
        origin="sender",
        first="first",
    )


RULE = PromiseRule(
    "initial-view",
    GROUPS,
    "messages",
    "nothing was sent or delivered",
    counts=(
        Count(
            "streams",
            judged="if(kind <= 1, messages, 0)",
            suspect="kind <= 1 and (view is null or first_view is null or begin < first_view)",
        ),
    ),
    exact=exact,
)
