"""fifo: messages of one sender are delivered in the order sent, without holes unless a gap was announced."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.findings import GROUPS, Rule, facts, findings, sender_name, view_name, words
from pygroups.pipeline.tables import Tables


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
    return facts(tables.deliveries).unionAll(wrong)


RULE = Rule("fifo", GROUPS, "messages", "nothing was delivered", judge)
