"""The incarnations that wrote the journals of a history, from its manifest alone.  This module needs pyarrow, and no
Spark."""

from typing import Any, Final

import pyarrow as pa

_NAMES: Final = ("group", "member", "incarnation", "address")
_TOLD: Final = ("profile", "host")
WRITERS: Final = pa.schema(
    [
        ("life", pa.int64()),
        *((name, pa.string()) for name in (*_NAMES, *_TOLD)),
        *((name, pa.int64()) for name in ("from_us", "to_us", "to_mono_us")),
        ("kinds", pa.list_(pa.string())),
    ]
)
"""One row per life with any record: `life` is its key, `from_us`, `to_us` and `to_mono_us` are the times of its first
and last record, `kinds` those of its records, sorted."""


def writers_of(manifest: pa.Table) -> pa.Table:
    """The rows of `WRITERS`, sorted by key, of a manifest (`ingest.layout.MANIFEST`)."""
    lives: dict[int, dict[str, Any]] = {}
    for row in manifest.to_pylist():
        if row["rows"]:
            _add(lives.setdefault(row["life"], {"kinds": set()}), row)
    rows = ({"life": key, **life, "kinds": sorted(life["kinds"])} for key, life in sorted(lives.items()))
    return pa.Table.from_pylist(list(rows), WRITERS)


def _add(life: dict[str, Any], row: dict[str, Any]) -> None:
    life |= {name: row[name] for name in _NAMES}
    life |= {name: life.get(name) or row[name] for name in _TOLD}
    life["kinds"] |= set(row["kinds"])
    for name, column, worst in (("from_us", "first_us", min), ("to_us", "last_us", max)):
        life[name] = worst(life.get(name, row[column]), row[column])
    life["to_mono_us"] = max(life.get("to_mono_us", row["last_mono_us"]), row["last_mono_us"])
