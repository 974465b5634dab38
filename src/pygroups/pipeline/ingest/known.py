"""The memory of a table about its journals: the place at which to go on in each segment, and the state there."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from xxhash import xxh64_intdigest

from pygroups.pipeline.ingest.counted import Counting
from pygroups.pipeline.ingest.expected import Numbering
from pygroups.pipeline.ingest.table import Table, read_rows

_PRINT_BYTES: Final = 4096
_SEGMENT: Final = pa.struct(
    [
        ("segment", pa.int32()),
        ("file", pa.string()),
        ("end", pa.int64()),
        ("size", pa.int64()),
        ("print", pa.uint64()),
        ("history", pa.string()),
        ("followed", pa.bool_()),
        ("unreadable", pa.bool_()),
        ("told", pa.bool_()),
    ]
)
CARRIED: Final = pa.schema(
    [
        ("life", pa.int64()),
        ("next_index", pa.int64()),
        ("given", pa.bool_()),
        ("next", pa.map_(pa.int64(), pa.int64())),
        ("view", pa.int64()),
        ("count", pa.int64()),
        ("segments", pa.list_(_SEGMENT)),
    ]
)
"""One row per life that a commit touched: the state behind its last record, and the segments that were touched."""


@dataclass
class SegmentState:
    """The state of a segment: bytes [0, end) of its `size` bytes are in the table.

    `print` is the fingerprint of [0, end); `history` holds at `end`.  `followed`: a later segment existed, so torn
    bytes behind `end` have been judged.  `unreadable`: the segment has no header that can be read.  `told`: the
    manifest has the damage at `end` already; no whole frame stood behind the damage, so the next ingest reads from
    there when the segment has grown.
    """

    segment: int
    file: str
    end: int
    size: int
    print: int
    history: str | None = None
    followed: bool = False
    unreadable: bool = False
    told: bool | None = False  # None: a commit from before there was this column


@dataclass
class LifeState:
    """The state of an incarnation: the index of its next record, the next number of each sender, the messages in its
    view, and its segments."""

    next_index: int = 0
    numbering: Numbering = field(default_factory=Numbering)
    counting: Counting = field(default_factory=Counting)
    segments: dict[int, SegmentState] = field(default_factory=dict)

    def row(self, life: int, touched: Iterable[int]) -> dict[str, Any]:
        """The row of CARRIED for this incarnation, with the changed segments."""
        numbering = self.numbering
        segments = [asdict(self.segments[number]) for number in touched]
        following = {"given": numbering.given, "next": list(numbering.next.items()), **asdict(self.counting)}
        return {"life": life, "next_index": self.next_index, **following, "segments": segments}


def known_to(table: Table) -> dict[int, LifeState]:
    """The incarnations in a table, by their keys."""
    lives: dict[int, LifeState] = {}
    for file in table.carried_files:
        for row in read_rows(file, CARRIED).to_pylist():
            state = lives.setdefault(row["life"], LifeState())
            state.next_index = row["next_index"]
            state.numbering = Numbering(given=row["given"], next=dict(row["next"]))
            state.counting = Counting(row["view"], row["count"])
            state.segments.update((one["segment"], SegmentState(**one)) for one in row["segments"])
    return lives


def fingerprint(path: str | Path, end: int) -> int:
    """A digest of the first `end` bytes of a file, computed from some bytes at the beginning and some at the end.

    Appending to the file does not change the digest. Raises OSError.
    """
    with Path(path).open("rb") as file:
        first = file.read(min(end, _PRINT_BYTES))
        file.seek(max(end - _PRINT_BYTES, 0))
        return xxh64_intdigest(first + file.read(min(end, _PRINT_BYTES)))
