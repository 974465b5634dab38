"""gap-announced: where messages may be missed, a member skips none without an announcement."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GOSSIP, Count, PromiseRule, findings, words
from pygroups.pipeline.gaps import gaps_of
from pygroups.pipeline.tables import Tables


def exact(tables: Tables) -> DataFrame:
    """A fact is one message at one member.  Before a state or a start was given, any number may be the first one."""
    columns = ("group", "history", "life", "view", "sender", "first", "expected")
    late = tables.deliveries.where("first > expected").selectExpr(*columns, "position", "'it delivered' as what")
    early = gaps_of(tables).where("first > expected").selectExpr(*columns, "position", "'its gap begins with' as what")
    return findings(
        late.unionAll(early),
        words(F.col("what"), " message ", F.col("first"), ", and announced no gap from ", F.col("expected"), " on"),
        view="view",
        member="life",
        origin="sender",
        first="first",
        position="position",
    )


RULE = PromiseRule(
    "gap-announced",
    GOSSIP,
    "messages",
    "nothing was delivered",
    counts=(
        Count("streams", judged="if(kind = 1, messages, 0)", suspect="kind = 1 and skips > 0"),
        Count(gaps_of, suspect="first > expected", needs=frozenset({"gap"})),
    ),
    exact=exact,
    columns={"streams": {"skips": "count_if(first > expected)"}},  # deliveries beyond the next number
)
