"""virtual-synchrony: members that go together from one view to the next delivered the same set in it."""

from pyspark.sql import DataFrame

from pygroups.pipeline.old_findings import VIRTUAL_SYNCHRONY, Rule
from pygroups.pipeline.old_tables import Tables
from pygroups.pipeline.sets import same_sets, transitions


def judge(tables: Tables) -> DataFrame:
    """A fact is one message at one member that left the view together with another."""
    return same_sets(transitions(tables.views), tables.deliveries)


RULE = Rule(
    "virtual-synchrony",
    VIRTUAL_SYNCHRONY,
    "messages",
    "nothing was delivered in a view that two members left together",
    judge,
)
