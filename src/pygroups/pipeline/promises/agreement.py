"""agreement: the members that reach quiet in a view delivered the same set of messages in it."""

from pyspark.sql import DataFrame

from pygroups.pipeline.findings import VIRTUAL_SYNCHRONY, Count, PromiseRule
from pygroups.pipeline.sets import EXTRA, LACKING, SETTLED, cohorts, told, uneven_cohorts
from pygroups.pipeline.tables import Tables

_HERE = f"purpose = '{SETTLED}' and members > 1"


def exact(tables: Tables) -> DataFrame:
    """A fact is one message at one member that reached quiet in its view together with another."""
    found = tables.once("silver/uneven", uneven_cohorts).where(f"purpose = '{SETTLED}'")
    return told(found, LACKING, EXTRA)


RULE = PromiseRule(
    "agreement",
    VIRTUAL_SYNCHRONY,
    "messages",
    "nothing was delivered in a view in which two members reached quiet",
    counts=(Count(cohorts, judged=f"if({_HERE}, messages, 0)", suspect=f"{_HERE} and differs"),),
    exact=exact,
)
