"""self-delivery: a sender that reaches quiet has delivered each own message, or, after a merge, got a gap over the
message."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import VIRTUAL_SYNCHRONY, Count, PromiseRule, findings, words
from pygroups.pipeline.gaps import gaps_of
from pygroups.pipeline.own import own_messages
from pygroups.pipeline.tables import Tables


def exact(tables: Tables) -> DataFrame:
    """A fact is one message at its sender. Only merged views may have gaps over own messages."""
    gaps = gaps_of(tables).where("sender = life")
    skipped = gaps.where("index < quiet_end").groupBy("life").agg(F.expr("max(first + count - 1)").alias("skipped"))
    senders = own_messages(tables).where("settles").join(skipped, "life", "left")
    behind = senders.selectExpr("group", "history", "life", "sent", "greatest(heard, skipped) as heard")
    undelivered = findings(
        behind.where("heard < sent"),
        words("sent own messages up to ", F.col("sent"), ", and delivered them up to ", F.col("heard")),
        member="life",
        origin="life",
        first="heard + 1",
    )
    misplaced = findings(
        gaps.where("merges is null"),
        "got a gap over its own messages in a view that is no merge",
        view="view",
        member="life",
        origin="life",
        first="first",
    )
    return undelivered.unionAll(misplaced)


RULE = PromiseRule(
    "self-delivery",
    VIRTUAL_SYNCHRONY,
    "messages",
    "no sender reached quiet",
    counts=(
        Count("streams", judged="if(kind = 0 and settles and not late, messages, 0)"),
        Count(own_messages, suspect="settles and heard < sent"),
        Count(gaps_of, suspect="sender = life and merges is null", needs=frozenset({"gap"})),
    ),
    exact=exact,
)
