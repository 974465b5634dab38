"""64-bit keys for members, views and runs: the large tables are joined and grouped by numbers, not by names.

Wherever a rule accuses somebody the names themselves are there; two names with one key are less likely than damaged
memory (about one in a million at ten million names).
"""

from pyspark.sql import Column
from pyspark.sql import functions as F


def life_key(member: str = "member", incarnation: str = "incarnation") -> Column:
    """The key of a life within its group; of a sender with ("origin", "origin_incarnation")."""
    return F.xxhash64("group", member, incarnation)


def life_key_of(address: Column) -> Column:
    """The same key from an address `name@incarnation`; names contain no `@`."""
    parts = F.split(address, "@", 2)
    return F.xxhash64("group", parts[0], parts[1])


def view_key(number: str = "view_number", creator: str = "view_creator") -> Column:
    """The key of a view within its group; null where there is none."""
    return F.when(F.col(number).isNotNull(), F.xxhash64("group", number, creator))


def address() -> Column:
    """The address of who wrote the record."""
    return F.concat("member", F.lit("@"), "incarnation")


def life_sql(address: str) -> str:
    """SQL text for the key of a life from its address, a column or SQL text."""
    return f"xxhash64(`group`, split({address}, '@', 2)[0], split({address}, '@', 2)[1])"
