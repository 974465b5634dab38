"""integrity: a delivered message was sent by its origin, with the same body."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import ALL, Count, PromiseRule, findings
from pygroups.pipeline.runs import LABEL, RUN, said_of
from pygroups.pipeline.tables import Tables

_DOUBTFUL: Final = "if(sends = 0, origin_whole and not ahead, low_label <> high_label)"
_UNICAST: Final = "peer <> 0 and origin_whole and origin_open"  # its numbers are those of a connection
_OPEN: Final = "the journal of the origin is open, and ends before these facts"


def exact(tables: Tables) -> DataFrame:
    """A fact is one message at one member. A violation is a member with a message that the origin did not send."""
    doubtful = tables.runs.where(f"deliveries > 0 and {_DOUBTFUL}").select(*RUN, "sends")
    rows = said_of(tables).selectExpr("*", f"{LABEL} as label").join(doubtful, list(RUN))
    sent = rows.where("kind in (0, 2)").select(*RUN, "label").distinct()
    wrong = rows.where("kind in (1, 3)").join(sent, [*RUN, "label"], "left_anti")
    return findings(
        wrong.dropDuplicates(["life", *RUN]),
        F.when(F.col("sends") == 0, "delivered, but {origin} never sent it").otherwise(
            "delivered with another body than {origin} sent"
        ),
        view="if(kind = 1, view, null)",
        member="life",
        origin="sender",
        first="first",
        position="position",
    )


RULE = PromiseRule(
    "integrity",
    ALL,
    "messages",
    "nothing was delivered",
    counts=(
        Count(
            "streams",
            judged="if(origin_whole, case when kind = 1 then messages - ahead"
            " when kind = 3 and not origin_open then messages else 0 end, 0)",
            skipped={
                "the journal of the origin is missing": "if(kind in (1, 3) and origin_whole is null, messages, 0)",
                _OPEN: "if(kind = 1 and origin_whole, ahead, 0)",
            },
        ),
        Count(
            "runs",
            judged=f"if((not origin_whole or {_UNICAST}) and sends > 0, delivered, 0)",
            skipped={
                "the journal of the origin ends early": "if(not origin_whole and sends = 0, delivered, 0)",
                _OPEN: f"if({_UNICAST} and sends = 0, delivered, 0)",
            },
            suspect=f"deliveries > 0 and {_DOUBTFUL}",
        ),
    ),
    exact=exact,
)
