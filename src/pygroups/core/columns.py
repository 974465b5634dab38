"""The columns of journal records that the top layer writes: of a run, and of a view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xxhash import xxh3_64_intdigest

from .address import Address
from .events import Missing, NewView
from .run import Run


def checksum(body: bytes) -> int:
    """xxh3_64 of a body, as a signed long."""
    digest = xxh3_64_intdigest(body)
    return digest - (1 << 64) if digest >> 63 else digest


def columns_of(run: Run) -> dict[str, object]:
    """The columns that identify a run, and the checksum of its body."""
    return {**run.columns(), "checksum": checksum(run.body)}


def columns_of_view(event: NewView) -> dict[str, Any]:
    """The columns of a `view` record."""
    previous = event.previous
    return {
        "members": event.view.members,
        "transitional": event.transitional,
        "subgroups": [list(side.members) for side in event.subgroups] if event.subgroups else None,
        "primary": event.primary,
        "previous_number": previous.number if previous else None,
        "previous_creator": previous.leader if previous else None,
        "history": event.view.history or None,
        "digest": None if event.starts is None else {origin: n - 1 for origin, n in event.starts.items() if n > 1},
    }


def lack_columns(reason: str, peer: Address, lacks: Missing) -> Iterator[dict[str, object]]:
    """The columns of the `lack` records of a state, one for each range.  `reason`: the state is `given` to `peer`, or
    that of `peer` is `set`."""
    for origin, ranges in lacks.items():
        for low, high in ranges:
            columns = {"origin": origin.name, "origin_incarnation": origin.incarnation}
            yield {**columns, "first": low, "count": high - low, "reason": reason, "peer": peer}
