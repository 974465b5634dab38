"""unicast-fifo: a connection delivers a prefix of its messages, in order, to one receiver; connections rise."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import ALL, Count, PromiseRule, findings
from pygroups.pipeline.tables import Tables

# The faults of a delivery, and the words for each, as SQL text.
_WRONG = {
    "life <> peer or life <> only_receiver": "concat('connection ', connection, ' has another receiver')",
    "connection < connection_before": "concat('came on connection ', connection, ' after ', connection_before)",
    "sent_first <> first": "concat('came where message ', sent_first, ' was next on the connection')",
    "sent_first is null and whole and not open": (
        "concat('more messages came than were sent on connection ', connection)"
    ),
}
_BROKEN = " or ".join(f"coalesce({wrong}, false)" for wrong in _WRONG)
_UNKNOWN = f"sent_first is null and not coalesce(whole and not open, false) and not ({_BROKEN})"


def delivered(tables: Tables) -> DataFrame:
    """Unicast runs as delivered, next to the run that was sent at the same place of the connection.

    `sent_first` is null if no run was sent there, `whole` is null if the origin's journal is missing. `only_receiver`
    is the receiver of the connection's first run. `connection_before` is the connection of this origin that delivered
    the run before.
    """
    sent = "over (partition by life, connection order by index)"
    sends = tables.unicasts.where("kind = 2").selectExpr(
        *("life as sender", "connection", "first as sent_first"),
        f"row_number() {sent} as place",
        f"first(peer) {sent} as only_receiver",
    )
    got = tables.unicasts.where("kind = 3").selectExpr(
        *("`group`", "profile", "history", "life", "sender", "peer", "connection", "first", "count"),
        "row_number() over (partition by life, sender, connection order by index) as place",
        "lag(connection) over (partition by life, sender order by index) as connection_before",
    )
    origins = tables.lives.select(F.col("life").alias("sender"), "whole", "open")
    return got.join(sends, ["sender", "connection", "place"], "left").join(origins, "sender", "left")


def exact(tables: Tables) -> DataFrame:
    """A fact is one unicast message delivered.  Behind the end of a journal that ends early, or that is open, a message
    cannot be judged."""
    sentence = "case " + " ".join(f"when {wrong} then {said}" for wrong, said in _WRONG.items()) + " end"
    return findings(delivered(tables).where(_BROKEN), F.expr(sentence), member="life", origin="sender", first="first")


RULE = PromiseRule(
    "unicast-fifo",
    ALL,
    "unicasts",
    "no unicast was delivered",
    counts=(
        Count(
            delivered,
            judged=f"if({_UNKNOWN}, 0, count)",
            skipped={
                "the journal of the origin is missing": f"if({_UNKNOWN} and whole is null, count, 0)",
                "the journal of the origin ends early": f"if({_UNKNOWN} and not whole, count, 0)",
                "the journal of the origin is open, and ends before these facts": (
                    f"if({_UNKNOWN} and whole and open, count, 0)"
                ),
            },
            suspect=_BROKEN,
        ),
    ),
    exact=exact,
    needs=frozenset({"unicast_deliver"}),
)
