"""fifo: messages of one sender are delivered in the order sent, without holes unless a gap was announced."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, UNIFORM, VIRTUAL_SYNCHRONY, Count, Rule, findings, words
from pygroups.pipeline.tables import Tables


def exact(tables: Tables) -> DataFrame:
    """A fact is one message at one member. The number that has to come next was carried along at ingest.

    With virtual synchrony only a merge skips anything, and `uniform` never merges: gaps elsewhere are wrong.
    """
    gaps = tables.events.where("kind = 'gap'")
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
    merges = tables.views.where("size(subgroups) > 0").where(~F.col("profile").isin(*sorted(UNIFORM)))
    strict = gaps.where(F.col("profile").isin(*sorted(VIRTUAL_SYNCHRONY)))
    misplaced = findings(
        strict.join(merges.select("life", "view"), ["life", "view"], "left_anti"),
        words("a gap over ", F.col("count"), " messages was announced in a view that is no merge"),
        view="view",
        member="life",
        origin="sender",
        first="first",
    )
    return wrong.unionAll(misplaced)


RULE = Rule(
    "fifo",
    GROUPS,
    "messages",
    "nothing was delivered",
    counts=(
        Count("streams", judged="if(kind = 1, messages, 0)", suspect="kind = 1 and irregular > 0"),
        Count("events", suspect="kind = 'gap'"),
    ),
    exact=exact,
)
