"""The records that the measures read, by what they tell: multicasts and unicasts are counted alike."""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

LIFE: Final = ("group", "member", "incarnation")
SENT: Final = ("send", "unicast_send")
DELIVERED: Final = ("deliver", "unicast_deliver")


def is_one_of(kinds: tuple[str, ...]) -> Column:
    """True for records of these kinds."""
    return F.col("kind").isin(*kinds)


def amount(kinds: tuple[str, ...], column: str) -> Column:
    """The sum of a number over the records of these kinds; 0 where there are none."""
    return F.sum(F.when(is_one_of(kinds), F.col(column).cast("long")).otherwise(F.lit(0).cast("long")))


def how_many(kinds: tuple[str, ...]) -> Column:
    """The number of records of these kinds."""
    return F.count_if(is_one_of(kinds))


def stretch(bucket_us: int | Column) -> Column:
    """The first microsecond of the stretch of `bucket_us` that a record's wall clock falls into."""
    return (F.floor(F.col("time_us") / bucket_us) * bucket_us).cast("long").alias("bucket")


def address() -> Column:
    """The address of the member that wrote a record."""
    return F.concat_ws("@", "member", "incarnation")
