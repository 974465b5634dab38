"""transitional-set: a member names exactly the members that came with it from its view; a joiner names itself.

It came from the view that its journal has before; its record has to name the same one."""

from pyspark.sql import DataFrame

from pygroups.pipeline.findings import VIRTUAL_SYNCHRONY, Count, PromiseRule, findings, names_in, parts_of
from pygroups.pipeline.tables import Tables

# Members that did not install the view are not judged.
_NAMED = "coalesce(array_sort(array_intersect(transitional, installed)), array())"
_STRANGERS = "array_except(transitional, members)"
_MISNAMED = "not (named <=> previous)"
_MISNAMED_WORDS = """
    case when named is null then 'names no view before it, and came from {also}'
         when previous is null then 'names {also} as the view before it, and came from none'
         else 'names {also} as the view before it, and came from another one' end
"""
_WRONG = f"{_NAMED} <> together or size({_STRANGERS}) > 0 or {_MISNAMED}"

_UNNAMED = f"array_except(together, {_NAMED})"
_OTHERS = f"array_except({_NAMED}, together)"


def exact(tables: Tables) -> DataFrame:
    """A fact is one view at one member."""
    return findings(
        tables.views.where(_WRONG),
        parts_of(
            (f"size({_UNNAMED}) > 0", f"concat('does not name ', {names_in(_UNNAMED)}, ', from the same view')"),
            (f"size({_OTHERS}) > 0", f"concat('names ', {names_in(_OTHERS)}, ', from another view')"),
            (f"size({_STRANGERS}) > 0", f"concat('names ', {names_in(_STRANGERS)}, ', not in this view')"),
            (_MISNAMED, _MISNAMED_WORDS),
        ),
        view="view",
        member="life",
        also="coalesce(named, previous)",
    )


RULE = PromiseRule(
    "transitional-set",
    VIRTUAL_SYNCHRONY,
    "views",
    "no view was installed",
    counts=(Count("views", judged="1", suspect=_WRONG),),
    exact=exact,
    columns={
        "views": {
            "installed": "collect_set(address) over (partition by view)",
            "together": "array_sort(collect_set(address) over (partition by view, coalesce(previous, life)))",
        }
    },
)
