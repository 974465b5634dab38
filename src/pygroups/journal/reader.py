"""Reads journals into Arrow record batches, tolerant of damage: what cannot be read is told, the rest goes on."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from .frames import Frame, Header, walk
from .schema import COLUMNS, FIELDS, KINDS, PREFIX, SEGMENT_SUFFIX

BATCH_ROWS: Final = 1 << 16
_CHUNK_ROWS: Final = 1 << 12  # rows that are turned into columns at once: so few stay in the processor's cache
_ARROW: Final[dict[str, pa.DataType]] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "array<string>": pa.list_(pa.string()),
    "array<array<string>>": pa.list_(pa.list_(pa.string())),
    "array<binary>": pa.list_(pa.binary()),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
}
TYPES: Final = {name: _ARROW[ddl] for name, ddl in COLUMNS.items()}
SCHEMA: Final = pa.schema(list(TYPES.items()))
_IDENTITY: Final = ("group", "member", "incarnation", "profile", "host")
_LIFE: Final = re.compile(r"([A-Za-z0-9._-]{1,64})@([0-9a-f]{1,32})")
_MISFITS: Final = (pa.ArrowException, TypeError, ValueError, AttributeError, OverflowError)
_HISTORY_AT: Final = len(PREFIX) + FIELDS["view"].index("history")
_INDEX_AT: Final = 1

Row = list[Any]


class NotAJournal(ValueError):
    """A path is neither a folder of journals nor a group's nor a life's; the text is one sentence for people."""


@dataclass(frozen=True)
class Segment:
    """One file of a life's journal, and the one that follows it, if any; whose it is by the names of its folders."""

    path: str
    group: str
    member: str
    incarnation: str
    size: int
    following: str | None


@dataclass(frozen=True)
class Quarantine:
    """A damaged place: `offset` bytes into `segment`."""

    segment: Segment
    offset: int
    reason: str


def find_segments(paths: Iterable[str | Path]) -> list[Segment]:
    """All segments in folders of journals, groups or lives, each once. Raises NotAJournal for a path without any."""
    lives: dict[Path, None] = {}
    for path in paths:
        lives.update(dict.fromkeys(folder.resolve() for folder in _lives_in(Path(path))))
    return [segment for folder in lives for segment in _segments_of(folder)]


def _lives_in(path: Path) -> list[Path]:
    if not path.is_dir():
        raise NotAJournal(f"{path} is no folder: give a journal folder, a group's folder in it, or one life's folder")
    for pattern in (f"*{SEGMENT_SUFFIX}", f"*@*/*{SEGMENT_SUFFIX}", f"*/*@*/*{SEGMENT_SUFFIX}"):
        found = {file.parent for file in path.glob(pattern)}
        lives = sorted(folder for folder in found if _LIFE.fullmatch(folder.resolve().name))
        if lives:
            return lives
    raise NotAJournal(f"{path} holds no journal: give a journal folder, a group's folder in it, or one life's folder")


def _segments_of(folder: Path) -> list[Segment]:
    match = _LIFE.fullmatch(folder.name)
    assert match is not None  # _lives_in took only such names
    paths = sorted(folder.glob(f"*{SEGMENT_SUFFIX}"))
    following: list[str | None] = [*map(str, paths[1:]), None]
    return [
        Segment(str(path), folder.parent.name, match[1], match[2], path.stat().st_size, after)
        for path, after in zip(paths, following, strict=True)
    ]


def read_segments(segments: Iterable[Segment], batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch | Quarantine]:
    """Every readable record of `segments` in batches of about `batch_rows` rows with all columns, and every damage.

    Within a batch rows are not sorted; `index` tells their order. Times are those of the writer's clocks.
    """
    chunks: list[pa.RecordBatch] = []
    held = 0
    for segment in segments:
        for part in _SegmentReader(segment).read():
            if isinstance(part, Quarantine):
                yield part
                continue
            chunks.append(part)
            held += part.num_rows
            if held >= batch_rows:
                yield pa.concat_batches(chunks)
                chunks, held = [], 0
    if chunks:
        yield pa.concat_batches(chunks)


class _SegmentReader:
    """Collects the rows of one segment by kind, as long as header and history stay the same."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.header: Header | None = None
        self.history: str | None = None
        self.rows: dict[str, list[Row]] = {kind: [] for kind in KINDS}
        self.held = 0
        self.last: Frame | None = None

    def read(self) -> Iterator[pa.RecordBatch | Quarantine]:
        try:
            data = Path(self.segment.path).read_bytes()
        except OSError as error:
            yield Quarantine(self.segment, 0, f"cannot be read: {error.strerror}")
            return
        for part in walk(data):
            if isinstance(part, Frame):
                yield from self._take(part)
                if self.held >= _CHUNK_ROWS:
                    yield from self._flush()
            elif isinstance(part, Header):
                self._begin(part)
            elif not (part.torn and self._continued()):
                yield Quarantine(self.segment, part.offset, part.reason)
        yield from self._flush()

    def _begin(self, header: Header) -> None:
        self.header = header
        for record in header.in_force:
            if record[0] == "view":
                self.history = record[_HISTORY_AT]

    def _take(self, frame: Frame) -> Iterator[pa.RecordBatch | Quarantine]:
        for record in frame.records:
            try:
                kind = record[0]
                if kind == "view" and record[_HISTORY_AT] != self.history:
                    yield from self._flush()
                    self.history = record[_HISTORY_AT]
                self.rows[kind].append(record)
            except (KeyError, TypeError, IndexError):
                yield Quarantine(self.segment, frame.offset, f"not a record that is known: {str(record)[:60]}")
        self.held += len(frame.records)
        self.last = frame

    def _continued(self) -> bool:
        """True if what a torn write lost was never acknowledged: the next segment goes on with its number."""
        if self.segment.following is None:
            return True
        expected = self.last.records[-1][_INDEX_AT] + 1 if self.last and self.last.records else None
        first = _first_index(self.segment.following)
        return first is not None and (expected is None or first == expected)

    def _flush(self) -> Iterator[pa.RecordBatch | Quarantine]:
        rows = {kind: group for kind, group in self.rows.items() if group}
        if not rows:
            return
        assert self.header is not None  # walk() yields the header before any frame
        self.rows.update((kind, []) for kind in rows)
        self.held = 0
        try:
            yield batch_of(self.header, self.history, rows)
        except _MISFITS:
            yield from self._one_by_one(self.header, rows)

    def _one_by_one(self, header: Header, rows: dict[str, list[Row]]) -> Iterator[pa.RecordBatch | Quarantine]:
        """A field of a wrong type spoils a batch; find whose it is and keep the others."""
        for kind, group in rows.items():
            good = []
            for row in group:
                try:
                    batch_of(header, self.history, {kind: [row]})
                    good.append(row)
                except _MISFITS:
                    yield self._misfit(row)
            if good:
                yield batch_of(header, self.history, {kind: good})

    def _misfit(self, row: Row) -> Quarantine:
        """Rows do not know their place, and damage is rare: look for it once more."""
        parts = walk(Path(self.segment.path).read_bytes())
        offset = next((part.offset for part in parts if isinstance(part, Frame) and row in part.records), 0)
        return Quarantine(self.segment, offset, f"record {str(row[:2])[:60]} has fields that are not of its kind")


def _first_index(path: str) -> int | None:
    """The number of the first record in a segment; None if it has none that can be read."""
    for part in walk(Path(path).read_bytes()):
        if isinstance(part, Frame) and part.records:
            index: int = part.records[0][_INDEX_AT]
            return index
    return None


def batch_of(header: Header, history: str | None, rows: dict[str, list[Row]]) -> pa.RecordBatch:
    """One batch with all columns, over rows by kind."""
    parts = [_columns_of(kind, group) for kind, group in rows.items()]
    sizes = [len(group) for group in rows.values()]
    total = sum(sizes)
    constants = {name: getattr(header, name) for name in _IDENTITY} | {"history": history}
    arrays = []
    for name, kind_of_array in TYPES.items():
        if name in constants:
            arrays.append(pa.repeat(pa.scalar(constants[name], kind_of_array), total))
        elif any(name in part for part in parts):
            pieces = [
                part[name] if name in part else pa.nulls(size, kind_of_array)
                for part, size in zip(parts, sizes, strict=True)
            ]
            arrays.append(pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces))
        else:
            arrays.append(pa.nulls(total, kind_of_array))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _columns_of(kind: str, rows: Sequence[Row]) -> dict[str, pa.Array]:
    """The columns that rows of one kind fill. Raises if a value does not have its column's type, or one is missing.

    What a later version appended to the fields of a kind is left out.
    """
    known = len(PREFIX) + len(FIELDS[kind])
    if max(map(len, rows)) > known:
        rows = [row[:known] for row in rows]
    values: list[Sequence[Any]] = list(zip(*rows, strict=True))
    columns = {"kind": pa.repeat(pa.scalar(kind), len(rows))}
    if len(values) != known:
        raise ValueError(f"{len(values)} values do not fill a {kind} record")
    for name, column in zip(PREFIX[1:4], values[1:4], strict=True):
        columns[name] = pa.array(column, TYPES[name])
    views = values[4]
    columns["view_number"] = pa.array([view and view[0] for view in views], TYPES["view_number"])
    columns["view_creator"] = pa.array([view and view[1] for view in views], TYPES["view_creator"])
    for name, column in zip(FIELDS[kind], values[len(PREFIX) :], strict=True):
        if pa.types.is_map(TYPES[name]):
            column = [None if value is None else list(value.items()) for value in column]
        columns[name] = pa.array(column, TYPES[name])
    return columns
