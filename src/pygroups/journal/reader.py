"""Reads journals as Arrow record batches. Damaged places are reported, and all other records are read."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final

import pyarrow as pa

from .frames import Damage, Frame, Header, frames_of, naming, walk
from .schema import COLUMNS, FIELDS, KINDS, PREFIX, SEGMENT_SUFFIX, is_segment

BATCH_ROWS: Final = 1 << 16
_CHUNK_ROWS: Final = 1 << 12  # rows converted to columns at once; so few rows stay in the processor's cache
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
_GROUP: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LIFE: Final = re.compile(r"([A-Za-z0-9._-]{1,64})@([0-9a-f]{1,32})")
MISFITS: Final = (pa.ArrowException, TypeError, ValueError, AttributeError, OverflowError)
_DEPTHS: Final = 3  # a folder of journals, of a group, of a member
HISTORY_AT: Final = len(PREFIX) + FIELDS["view"].index("history")  # in a view record
INDEX_AT: Final = 1

Row = list[Any]


class NotAJournal(ValueError):
    """The path is not a folder of journals, of a group or of a member. The message is one sentence."""


@dataclass(frozen=True)
class Segment:
    """One file of a member's journal. The names of its folders give its owner. `following`: the next file, if there is
    one. `trouble`: the reason why the file cannot be opened as a segment; it has no size then."""

    path: str
    group: str
    member: str
    incarnation: str
    size: int
    following: str | None
    trouble: str | None = None


@dataclass(frozen=True)
class LeftOut:
    """A file or folder that stands where journals stand and is not read, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True)
class Range:
    """Bytes [begin, end) of a segment, from the start of a frame to the end of a frame.

    `header` and `history`: the header of the segment, and the history id at `begin`. Both are None and unused for a
    range at the start of the segment.
    """

    segment: Segment
    begin: int
    end: int
    header: Header | None = None
    history: str | None = None


@dataclass(frozen=True)
class WantedRecords:
    """The `columns` and `kinds` that a reader wants; None means all.

    With `kinds` some damage is not reported, because frames without such a record are not decoded.
    """

    columns: frozenset[str] | None = None
    kinds: frozenset[str] | None = None


EVERYTHING: Final = WantedRecords()


@dataclass(frozen=True)
class Quarantine:
    """A damaged place: `offset` bytes into `segment`."""

    segment: Segment
    offset: int
    reason: str


def find_segments(paths: Iterable[str | Path]) -> list[Segment]:
    """All segments in folders of journals, groups or members, each once.

    Raises NotAJournal for a path without a journal, and OSError for a folder that cannot be read.
    """
    return find_journals(paths)[0]


def find_journals(paths: Iterable[str | Path]) -> tuple[list[Segment], list[LeftOut]]:
    """The segments as `find_segments` finds them, and the files and folders between them that are not read.

    A segment is a regular file with six digits in its name. A member's folder may be a link, under its own name or
    under that of its target.
    """
    lives: dict[Path, Path] = {}
    left_out: dict[LeftOut, None] = {}
    for path in paths:
        found, misnamed = _lives_in(Path(path))
        for folder in found:
            lives.setdefault(folder.resolve(), _named(folder))
        left_out |= dict.fromkeys(LeftOut(str(folder), _NO_MEMBER) for folder in misnamed)
    segments = []
    for folder in lives.values():
        here, strange = _segments_of(folder)
        segments += here
        left_out |= dict.fromkeys(strange)
    return segments, list(left_out)


_NO_MEMBER: Final = "is left out with its segments, because its name is not that of a member, as A@3f2c"
_NO_SEGMENT: Final = "is left out, because a segment has six digits in its name, as 000000.journal"


def _lives_in(path: Path) -> tuple[list[Path], list[Path]]:
    """The folders of members in `path`, at any of three depths, and the folders that have segments under another
    name."""
    if not path.is_dir():
        raise NotAJournal(
            f"{path} is not a folder: give a folder of journals, the folder of a group, or the "
            "folder of one incarnation"
        )
    lives: list[Path] = []
    others: list[Path] = []
    level = [path]
    for depth in range(_DEPTHS):
        if depth:
            level = [folder for above in level if above not in lives for folder in _folders_in(above)]
        for folder in level:
            if _LIFE.fullmatch(_named(folder).name):
                lives += [folder] if _has_segment(folder) else []
            elif depth and _has_a_segment_to_see(folder):
                others.append(folder)
    if not lives:
        raise NotAJournal(
            f"{path} has no journal: give a folder of journals, the folder of a group, or the folder of one incarnation"
        )
    return sorted(lives), sorted(others)


def _named(folder: Path) -> Path:
    """The folder under the name of a member: its own, or that of a link to it."""
    resolved = folder.resolve()
    return resolved if _LIFE.fullmatch(resolved.name) else folder.absolute()


def _folders_in(path: Path) -> list[Path]:
    """The folders in `path`.  Raises OSError if `path` may have journals and cannot be read, because such journals
    would be missed."""
    try:
        with os.scandir(path) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir()]
    except PermissionError:
        if _GROUP.fullmatch(path.resolve().name) or not path.name:
            raise
        return []  # as the `lost+found` of a disk


def _has_segment(folder: Path) -> bool:
    with os.scandir(folder) as entries:
        return any(is_segment(entry.name) for entry in entries)


def _has_a_segment_to_see(folder: Path) -> bool:
    try:
        return _has_segment(folder)
    except OSError:
        return False


def _segments_of(folder: Path) -> tuple[list[Segment], list[LeftOut]]:
    match = _LIFE.fullmatch(folder.name)
    assert match is not None  # _lives_in took only such names
    sizes: dict[str, tuple[int, str | None]] = {}
    left_out = []
    for path in sorted(folder.glob(f"*{SEGMENT_SUFFIX}")):
        if not is_segment(path.name):
            left_out.append(LeftOut(str(path), _NO_SEGMENT))
            continue
        size = _size_of(path)
        if size is not None:
            sizes[str(path)] = size
    regular = [path for path, (_, trouble) in sizes.items() if trouble is None]
    following = dict(pairwise(regular))
    segments = [
        Segment(path, folder.parent.name, match[1], match[2], size, following.get(path), trouble)
        for path, (size, trouble) in sizes.items()
    ]
    return segments, left_out


def _size_of(path: Path) -> tuple[int, str | None] | None:
    """The size of a segment, and the reason why it cannot be opened; None if its writer has just removed it, because it
    keeps only some."""
    try:
        told = path.stat()
    except FileNotFoundError:
        return (0, "is a link to a file that is missing") if path.is_symlink() else None
    except OSError as error:
        return 0, f"cannot be read: {error.strerror}"
    return (told.st_size, None) if S_ISREG(told.st_mode) else (0, "is not a regular file")


def read_segments(
    parts: Iterable[Segment | Range], batch_rows: int = BATCH_ROWS, asked: WantedRecords = EVERYTHING
) -> Iterator[pa.RecordBatch | Quarantine]:
    """All readable records of segments or ranges, in batches of about `batch_rows`, and all damage.

    Rows are not sorted within a batch; `index` has their order. Times are those of the writer's clocks. Batches have
    the wanted columns, in the order of SCHEMA.
    """
    chunks: list[pa.RecordBatch] = []
    held = 0
    for place in parts:
        for part in _RangeReader(place, asked).read():
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


class _RangeReader:
    """Collects the rows of one range by kind, as long as header and history stay the same."""

    def __init__(self, place: Segment | Range, asked: WantedRecords) -> None:
        self.range = place if isinstance(place, Range) else Range(place, 0, place.size)
        self.segment = self.range.segment
        self.header = self.range.header
        self.history = self.range.history
        self.columns = asked.columns
        self.kinds = asked.kinds
        self.rows: dict[str, list[Row]] = {kind: [] for kind in KINDS}
        self.held = 0
        self.frames: list[Frame] = []  # of the rows; the last frame stays

    def read(self) -> Iterator[pa.RecordBatch | Quarantine]:
        if self.segment.trouble is not None:
            yield Quarantine(self.segment, 0, self.segment.trouble)
            return
        try:
            found = self._walk()
        except OSError as error:
            yield Quarantine(self.segment, self.range.begin, f"cannot be read: {error.strerror}")
            return
        for part in found:
            if isinstance(part, Frame):
                yield from self._take(part)
                if self.held >= _CHUNK_ROWS:
                    yield from self._flush()
            elif isinstance(part, Header):
                self._begin(part)
            elif not (part.torn and self._continued(lossy=part.lossy)):
                yield Quarantine(self.segment, self.range.begin + part.offset, part.reason)
        yield from self._flush()

    def _walk(self) -> Iterator[Header | Frame | Damage]:
        pattern = None
        if self.kinds is not None:
            history = self.columns is None or "history" in self.columns
            pattern = naming(sorted(self.kinds | {"view"} if history else self.kinds))
        with Path(self.segment.path).open("rb") as file:
            file.seek(self.range.begin)
            data = file.read(self.range.end - self.range.begin)  # and not what its member has appended since
        return walk(data, pattern) if self.range.begin == 0 else frames_of(data, pattern)

    def _begin(self, header: Header) -> None:
        self.header = header
        for record in header.in_force:
            if record[0] == "view":
                self.history = record[HISTORY_AT]

    def _take(self, frame: Frame) -> Iterator[pa.RecordBatch | Quarantine]:
        self.frames.append(frame)
        for record in frame.records:
            try:
                kind = record[0]
                if kind == "view" and record[HISTORY_AT] != self.history:
                    yield from self._flush()
                    self.history = record[HISTORY_AT]
                if self.kinds is None or kind in self.kinds:
                    self.rows[kind].append(record)
            except (KeyError, TypeError, IndexError):
                yield self._damaged(frame, f"not a record that is known: {str(record)[:60]}")
        self.held += len(frame.records)

    def _continued(self, *, lossy: bool) -> bool:
        """Whether the next segment continues the index, so that a torn write lost no acknowledged record.  Without a
        next segment a write is torn at worst, unless the damage is lossy."""
        if self.range.end < self.segment.size:
            return False
        if self.segment.following is None:
            return not lossy
        last = index_of(self.frames[-1].records[-1]) if self.frames and self.frames[-1].records else None
        expected = None if last is None else last + 1
        first = first_index(self.segment.following)
        return first is not None and (expected is None or first == expected)

    def _flush(self) -> Iterator[pa.RecordBatch | Quarantine]:
        rows = {kind: group for kind, group in self.rows.items() if group}
        frames = self.frames
        self.held, self.frames = 0, frames[-1:]
        if not rows:
            return
        assert self.header is not None  # walk() yields the header before any frame
        self.rows.update((kind, []) for kind in rows)
        try:
            yield batch_of(self.header, self.history, rows, self.columns)
        except MISFITS:
            yield from self._one_by_one(self.header, rows, frames)

    def _one_by_one(
        self, header: Header, rows: dict[str, list[Row]], frames: list[Frame]
    ) -> Iterator[pa.RecordBatch | Quarantine]:
        """Read the rows of a batch one by one, because a field with a wrong type makes the whole batch fail."""
        place = {id(row): frame for frame in frames for row in frame.records}
        for kind, group in rows.items():
            good = [row for row in group if self._fits(kind, row)]
            fitting = set(map(id, good))
            for row in group:
                if id(row) not in fitting:
                    yield self._damaged(
                        place[id(row)], f"record {str(row[:2])[:60]} has fields that are not of its kind"
                    )
            if good:
                yield batch_of(header, self.history, {kind: good}, self.columns)

    def _fits(self, kind: str, row: Row) -> bool:
        """Whether each field that is wanted has its type, and the history of the row is known."""
        try:
            columns_of(kind, [row], SCHEMA.names if self.columns is None else self.columns)
        except MISFITS:
            return False
        return self.history is None or isinstance(self.history, str)

    def _damaged(self, frame: Frame, reason: str) -> Quarantine:
        return Quarantine(self.segment, self.range.begin + frame.offset, reason)


def first_index(path: str) -> int | None:
    """The index of the first record in a segment; None if the segment has no readable record. Raises FileNotFoundError
    for a segment that its writer has removed."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise
    except OSError:
        return None
    for part in walk(data):
        if isinstance(part, Frame) and part.records:
            return index_of(part.records[0])
    return None


def index_of(record: Any) -> int | None:
    """The index of a record; None for an array without an index, such as a header in the middle of a segment."""
    index = record[INDEX_AT] if isinstance(record, list) and len(record) > INDEX_AT else None
    return index if isinstance(index, int) else None


def batch_of(
    header: Header, history: str | None, rows: dict[str, list[Row]], columns: Collection[str] | None = None
) -> pa.RecordBatch:
    """One batch over rows by kind, with `columns` in the order of SCHEMA, or with all of them."""
    schema = SCHEMA if columns is None else pa.schema([field for field in SCHEMA if field.name in columns])
    parts = [columns_of(kind, group, schema.names) for kind, group in rows.items()]
    sizes = [len(group) for group in rows.values()]
    total = sum(sizes)
    constants = {name: getattr(header, name) for name in _IDENTITY} | {"history": history}
    arrays = []
    for name, kind_of_array in zip(schema.names, schema.types, strict=True):
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
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def columns_of(kind: str, rows: Sequence[Row], wanted: Collection[str]) -> dict[str, pa.Array]:
    """The `wanted` columns of rows of one kind. Raises an error if a value does not have its column's type.

    Fields that a later version appended to a record are left out.
    """
    names = (*PREFIX, *FIELDS[kind])
    if max(map(len, rows)) > len(names):
        rows = [row[: len(names)] for row in rows]
    values = dict(zip(names, zip(*rows, strict=True), strict=True))
    columns = {"kind": pa.repeat(pa.scalar(kind), len(rows))}
    views = values.pop("view")
    if any(view is not None and (type(view) is not list or len(view) != 2) for view in views):
        raise TypeError("a view that is no pair")
    values["view_number"] = tuple(view and view[0] for view in views)
    values["view_creator"] = tuple(view and view[1] for view in views)
    for name in values.keys() & set(wanted) - {"kind"}:
        column = values[name]
        _check_types(name, column)
        if pa.types.is_map(TYPES[name]):
            column = tuple(None if value is None else list(value.items()) for value in column)
        columns[name] = pa.array(column, TYPES[name])
    return columns


_NOTHING: Final = type(None)
_SCALARS: Final = {"string": str, "bigint": int, "int": int, "boolean": bool, "binary": bytes}


def _check_types(name: str, column: Sequence[Any]) -> None:
    """Raises TypeError for a value that is not of the column's type, although Arrow would convert it: a fraction to an
    integer, bytes to a text, a text to the list of its letters."""
    kind = COLUMNS[name]
    while kind.startswith("array<"):
        _only(name, list, column)
        kind, column = kind[len("array<") : -1], [one for values in column if values is not None for one in values]
    if kind.startswith("map<"):
        _only(name, dict, column)
        entries = [one for value in column if value for one in value.items()]
        _only(name, str, [key for key, _ in entries])
        _only(name, int, [value for _, value in entries])
    else:
        _only(name, _SCALARS[kind], column)


def _only(name: str, kind: type, column: Sequence[Any]) -> None:
    if not {*map(type, column)} <= {kind, _NOTHING}:
        raise TypeError(f"a value of {name} is no {kind.__name__}")
