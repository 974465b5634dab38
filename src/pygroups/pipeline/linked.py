"""Which lives belong together: linked by the views they installed, however far apart in time."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pygroups.pipeline.keys import life_key_of

_LINKED: Final = "group string, life bigint, linked bigint"


def linked_of(views: DataFrame) -> DataFrame:
    """One row per life that any view names: `linked` is the same for all lives linked by views, in one group.

    Two uses of one folder that share no member are judged apart. Connected components have no built-in; the Python
    function sees one row per (life, named member) of a group, never a message.
    """
    named = views.select("group", "life", F.explode("members").alias("address"))
    edges = named.select("group", "life", life_key_of(F.col("address")).alias("other")).distinct()
    return edges.groupBy("group").applyInArrow(_components, _LINKED)


def _components(key: tuple[pa.Scalar, ...], edges: pa.Table) -> pa.Table:
    """Union by the smaller number, with paths halved on the way."""
    leader: dict[int, int] = {}

    def find(life: int) -> int:
        leader.setdefault(life, life)
        while leader[life] != life:
            leader[life] = leader[leader[life]]
            life = leader[life]
        return life

    for one, other in _pairs(edges):
        low, high = sorted((find(one), find(other)))
        leader[high] = low
    lives = list(leader)
    group = pa.repeat(key[0], len(lives))
    return pa.table({"group": group, "life": lives, "linked": [find(life) for life in lives]})


def _pairs(edges: pa.Table) -> Iterator[tuple[int, int]]:
    return zip(edges["life"].to_pylist(), edges["other"].to_pylist(), strict=True)
