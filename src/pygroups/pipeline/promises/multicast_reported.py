"""multicast-reported: a sender that stops gets a list of its accepted messages that it did not deliver."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import VIRTUAL_SYNCHRONY, Count, PromiseRule, findings
from pygroups.pipeline.own import own_gaps, own_messages
from pygroups.pipeline.tables import Tables


def exact(tables: Tables) -> DataFrame:
    """A fact is one message of a sender whose journal has a `stop`."""
    stopped = own_messages(tables).where("stops and unlike").select("life")
    sent = tables.sends.join(stopped, "life", "left_semi").select("group", "history", "life", "view", "first")
    told = tables.deliveries.where("sender = life").join(stopped, "life", "left_semi").select("life", "first")
    listed = tables.events.where("kind = 'undelivered' and peer is null").select("life", "first")
    untold = sent.join(told.unionAll(listed), ["life", "first"], "left_anti").alias("sent")
    gaps = own_gaps(tables).selectExpr("life", "first as low", "first + count as high").alias("gap")
    inside = "sent.life = gap.life and sent.first >= gap.low and sent.first < gap.high"
    lost = untold.join(gaps, F.expr(inside), "left_anti")
    return findings(
        lost,
        "accepted, not delivered here, and not listed when the sender stopped",
        view="view",
        member="life",
        origin="life",
        first="first",
    )


RULE = PromiseRule(
    "multicast-reported",
    VIRTUAL_SYNCHRONY,
    "messages",
    "no sender left",
    counts=(
        Count("streams", judged="if(kind = 0 and stops, messages, 0)"),
        Count(own_messages, suspect="stops and unlike"),
    ),
    exact=exact,
    needs=frozenset({"stop"}),
)
