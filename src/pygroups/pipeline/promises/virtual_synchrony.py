"""virtual-synchrony: members that go together from a view to the next one delivered the same set in the first."""

from pyspark.sql import DataFrame

from pygroups.pipeline.findings import VIRTUAL_SYNCHRONY, Count, PromiseRule
from pygroups.pipeline.sets import EXTRA, LACKING, TOGETHER, cohorts, told, uneven_cohorts
from pygroups.pipeline.tables import Tables

_HERE = f"purpose = '{TOGETHER}' and members > 1"


def exact(tables: Tables) -> DataFrame:
    """A fact is one message at one member that left the view together with another."""
    found = tables.once("silver/uneven", uneven_cohorts).where(f"purpose = '{TOGETHER}'")
    return told(found, LACKING, EXTRA)


RULE = PromiseRule(
    "virtual-synchrony",
    VIRTUAL_SYNCHRONY,
    "messages",
    "nothing was delivered in a view that two members left together",
    counts=(Count(cohorts, judged=f"if({_HERE}, messages, 0)", suspect=f"{_HERE} and differs"),),
    exact=exact,
)
