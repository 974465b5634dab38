"""64-bit keys of incarnations in SQL: the large tables are joined and grouped by numbers, not by names.

`ingest` writes the same keys (`ingest/keys.py`) and a table of names, in which two names under one key are seen.
"""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

VIEW_ID: Final = (
    "named_struct('number', view_number, 'name', split(view_creator, '@', 2)[0],"
    " 'life', split(view_creator, '@', 2)[1])"
)
"""SQL text for the id of a view: ids compare as (number, creator's name, creator's incarnation)."""


def life_sql(address: str) -> str:
    """SQL text for the key of an incarnation from its address `name@incarnation`, a column or SQL text; needs
    `group`."""
    return f"xxhash64(`group`, split({address}, '@', 2)[0], split({address}, '@', 2)[1])"


def life_key_of(address: Column) -> Column:
    """The key of an incarnation as a column.  Names contain no `@`."""
    parts = F.split(address, "@", 2)
    return F.xxhash64("group", parts[0], parts[1])
