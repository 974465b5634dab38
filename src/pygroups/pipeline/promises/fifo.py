"""fifo: messages of one sender are delivered in the order sent, without holes unless a gap was announced."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, Count, PromiseRule, findings, words
from pygroups.pipeline.gaps import gaps_of
from pygroups.pipeline.tables import Tables


def exact(tables: Tables) -> DataFrame:
    """A fact is one message at one member.  Each record has the expected number, which `ingest` has computed."""
    gaps = gaps_of(tables)
    columns = ("group", "history", "life", "view", "sender", "first", "position", "expected")
    late = tables.deliveries.where("first <> expected").selectExpr(*columns, "'delivered message ' as what")
    early = gaps.where("first > expected").selectExpr(*columns, "'a gap was announced from message ' as what")
    wrong = findings(
        late.unionAll(early),
        words(F.col("what"), F.col("first"), " where ", F.col("expected"), " was next"),
        view="view",
        member="life",
        origin="sender",
        first="first",
        position="position",
    )
    misplaced = findings(
        gaps.where("misplaced"),
        words("a gap over ", F.col("count"), " messages was announced in a view that is no merge"),
        view="view",
        member="life",
        origin="sender",
        first="first",
    )
    return wrong.unionAll(misplaced)


RULE = PromiseRule(
    "fifo",
    GROUPS,
    "messages",
    "nothing was delivered",
    counts=(
        Count("streams", judged="if(kind = 1, messages, 0)", suspect="kind = 1 and irregular > 0"),
        Count(gaps_of, suspect="first > expected or misplaced", needs=frozenset({"gap"})),
    ),
    exact=exact,
    columns={"streams": {"irregular": "count_if(first <> expected)"}},  # deliveries with another number than the next
)
