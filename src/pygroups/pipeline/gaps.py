"""Gaps that were announced to members, next to the views of the announcements."""

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from pygroups.pipeline.findings import MAJORITY, VIRTUAL_SYNCHRONY

if TYPE_CHECKING:
    from pygroups.pipeline.tables import Tables


def gaps_of(tables: "Tables") -> DataFrame:
    """One row per gap record, with the columns of `events` and two more.

    `merges` is true in a view that merges subgroups, and null in another view. `misplaced` is true where the profile
    allows no gap: with virtual synchrony only a merge skips messages, and where a majority decides nothing merges.
    """
    merges = tables.views.where("size(subgroups) > 0").selectExpr("life", "view", "true as merges").distinct()
    gaps = tables.events.where("kind = 'gap'").join(merges, ["life", "view"], "left")
    strict, never = tables.giving(VIRTUAL_SYNCHRONY), tables.giving(MAJORITY)
    misplaced = f"{strict} and (merges is null or {never}) as misplaced"
    return tables.gathered(gaps.selectExpr("*", misplaced))
