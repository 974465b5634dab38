"""The journal's columns as Spark types. Schemas are enforced on read, never inferred."""

from typing import Final

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pygroups.journal.schema import COLUMNS, VIOLATION_COLUMNS
from pygroups.pipeline.ingest import layout

_TYPES: Final[dict[str, DataType]] = {
    "string": StringType(),
    "bigint": LongType(),
    "int": IntegerType(),
    "boolean": BooleanType(),
    "array<string>": ArrayType(StringType()),
    "array<array<string>>": ArrayType(ArrayType(StringType())),
    "array<binary>": ArrayType(BinaryType()),
    "map<string,bigint>": MapType(StringType(), LongType()),
}


def struct_of(columns: dict[str, str]) -> StructType:
    """A Spark schema for columns given as name and DDL type; every column may be null."""
    return StructType([StructField(name, _TYPES[ddl]) for name, ddl in columns.items()])


TIME: Final = StructField("time", TimestampType())
"""`time_us` as a point in time; null outside of the years 1 to 9999, which Python and Spark's texts end with."""
RECORDS: Final = struct_of(COLUMNS).add(TIME)
QUARANTINE_COLUMNS: Final = {
    "group": "string",
    "member": "string",
    "incarnation": "string",
    "file": "string",
    "offset": "bigint",
    "reason": "string",
}
QUARANTINE: Final = struct_of(QUARANTINE_COLUMNS)
RANGES_COLUMNS: Final = {
    "group": "string",
    "member": "string",
    "incarnation": "string",
    "file": "string",
    "begin": "bigint",
    "end": "bigint",
    "following": "string",
    "trouble": "string",
}
RANGES: Final = struct_of(RANGES_COLUMNS)
MESSAGES_COLUMNS: Final = {
    "group": "string",
    "member": "string",
    "incarnation": "string",
    "view_number": "bigint",
    "view_creator": "string",
    "position": "bigint",
    "origin": "string",
    "origin_incarnation": "string",
    "number": "bigint",
    "time_us": "bigint",
    "payload": "binary",
}
MESSAGES: Final = StructType(
    [*(StructField(n, BinaryType() if t == "binary" else _TYPES[t]) for n, t in MESSAGES_COLUMNS.items()), TIME]
)
ORDERED: Final = StructType(
    [
        field for field in MESSAGES if field.name not in ("member", "incarnation", "time_us", "time")
    ]  # those of one archive
)
RUNS: Final = from_arrow_schema(layout.RUNS).add("group", StringType()).add("day", DateType())
EVENTS: Final = from_arrow_schema(layout.EVENTS).add("group", StringType()).add("day", DateType())
VOTES: Final = from_arrow_schema(layout.VOTES).add("group", StringType()).add("day", DateType())
NAMES: Final = from_arrow_schema(layout.NAMES)
MANIFEST: Final = from_arrow_schema(layout.MANIFEST)
VIOLATIONS: Final = struct_of(VIOLATION_COLUMNS)
