"""Journals by columns: decodes all records of the frequent kinds at once, with numpy. This module belongs to the extra
`spark`.

Rows and damage are the same as those of `reader.py`. A frame is decoded here if all its records have kinds in RUN_KINDS
and VOTE_KINDS and the usual shape. Every other frame is decoded record by record.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .frames import UNDECODABLE, Damage
from .packed import NIL, distinct, integers, windows
from .reader import HISTORY_AT, MISFITS, TYPES, columns_of
from .records import FIRST_FIELD, PLACE_BITS, RUN_KINDS, VIEW, VOTE_KINDS, Records, records_in
from .rows import ADDRESSES, RUN_NUMBERS, TIMES, Named, Numbers, Others, Rows, merged, rows_of
from .scan import FrameWindow, scan
from .schema import FIELDS, FRAME_HEAD_BYTES, KINDS

_COUNT_LIMIT: Final = 1 << 31
_INT64: Final = 1 << 63
_decode: Final = msgspec.msgpack.Decoder().decode


@dataclass
class Decoded:
    """The contents of one window of a segment.

    `histories`: the history ids, each with the place at which it begins. `damage`: the places that could not be read,
    with offsets in the file. `last`: the records of the last frame that could be decoded, or None.
    """

    runs: Rows
    votes: Rows
    others: list[Others]
    histories: list[tuple[int, str | None]]
    damage: list[Damage] = field(default_factory=list)
    last: list[Any] | None = None


def read_columns(path: str, begin: int, end: int) -> Iterator[Decoded | Damage]:
    """The records in bytes [begin, end) of a segment. A frame must begin at `begin`, behind the header. Raises
    OSError."""
    for part in scan(path, begin, end):
        yield part if isinstance(part, Damage) else decode(part)


def decode(window: FrameWindow) -> Decoded:
    """All records of a window."""
    records = records_in(window.data, window.begins, window.stops)
    frequent = _Frequent(window, records)
    runs, votes = frequent.runs(), frequent.votes()
    slow = records.slow
    if frequent.strange.any():
        bad = np.unique(records.frame[frequent.strange])
        slow = np.union1d(slow, bad)
        runs, votes = _without(runs, bad), _without(votes, bad)
    return _OneByOne(window).added(slow, Decoded(runs, votes, [], []))


def _without(rows: Rows, frames: NDArray[np.int64]) -> Rows:
    return rows.take(np.flatnonzero(~np.isin(rows.place >> PLACE_BITS, frames)))


class _Frequent:
    """Turns cursors into columns. `strange` marks the records with a value of another type than its column."""

    def __init__(self, window: FrameWindow, records: Records) -> None:
        self.data = window.data
        self.windows = windows(window.data)
        self.records = records
        self.strange = np.zeros(len(records.kind), np.bool_)

    def runs(self) -> Rows:
        """The records of the kinds in RUN_KINDS."""
        rows = np.flatnonzero(self.records.kind < len(RUN_KINDS))
        found = self._prefix(rows)
        origin, first = FIRST_FIELD, FIRST_FIELD + FIELDS["send"].index("first")
        found.names["origin"] = self._names(rows, origin, first, 2)
        for name in RUN_NUMBERS:
            found.numbers[name] = self._field(name, found.kind, rows)
        count = found.numbers["count"]
        self.strange[rows] |= (count.values >= _COUNT_LIMIT) | (count.values < -_COUNT_LIMIT)
        for name in ADDRESSES:
            found.names[name] = self._address(name, found.kind, rows)
        payload = FIRST_FIELD + FIELDS["deliver"].index("payload")
        delivered = rows[found.kind == RUN_KINDS.index("deliver")]
        self.strange[delivered] |= self.data.take(self.records.cursors[payload, delivered]) != NIL
        return found

    def votes(self) -> Rows:
        """The records of the kinds in VOTE_KINDS, with their digests."""
        rows = np.flatnonzero(self.records.kind >= len(RUN_KINDS))
        found = self._prefix(rows)
        entries, sizes = self.records.entries, self.records.digests[rows]
        counts = np.maximum(sizes, 0)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        base = np.zeros(len(self.strange), np.int64)
        base[rows] = offsets[:-1]
        order = np.empty(len(entries.row), np.int64)
        order[base[entries.row] + entries.number] = np.arange(len(entries.row))
        row, key, value = entries.row[order], entries.key[order], entries.value[order]
        wrong = np.zeros(len(row), np.bool_)
        values, nulls = integers(self.data, self.windows, value, wrong)
        codes, names = distinct(self.data, key, value, 1)
        wrong |= np.array([name is None for name in names], np.bool_)[codes]
        pairs = np.sort((row << 32) | codes)
        self.strange[row[wrong]] = True
        self.strange[pairs[1:][pairs[1:] == pairs[:-1]] >> 32] = True  # a name twice: the last one counts
        keys = pa.DictionaryArray.from_arrays(codes, pa.array([name and name[0] for name in names], pa.string()))
        limits = pa.array(offsets, pa.int32(), mask=np.append(sizes < 0, False))
        found.digest = pa.MapArray.from_arrays(limits, keys.dictionary_decode(), pa.array(values, mask=nulls))
        return found

    def _prefix(self, rows: NDArray[np.int64]) -> Rows:
        """Kind, place, times and view."""
        records = self.records
        numbers = {name: self._numbers(rows, cursor) for name, cursor in TIMES.items()}
        self.strange[rows] |= numbers["index"].nulls
        views = self._names(rows, VIEW, FIRST_FIELD, 1)
        return Rows(records.kind[rows], records.place[rows], numbers, {"view": views})

    def _numbers(self, rows: NDArray[np.int64], cursor: int) -> Numbers:
        wrong = np.zeros(len(rows), np.bool_)
        values, nulls = integers(self.data, self.windows, self.records.cursors[cursor, rows], wrong)
        self.strange[rows] |= wrong
        return Numbers(values, nulls)

    def _names(self, rows: NDArray[np.int64], begin: int, end: int, count: int) -> Named:
        cursors = self.records.cursors
        codes, values = distinct(self.data, cursors[begin, rows], cursors[end, rows], count)
        named = _view if begin == VIEW else _origin if count == 2 else _text
        names = [named(value) for value in values]
        good = np.array([name is not _STRANGE for name in names], np.bool_)
        if not good.all():
            self.strange[rows] |= ~good[codes]
            names = [None if name is _STRANGE else name for name in names]
        return Named(codes, names)

    def _field(self, name: str, kind: NDArray[np.int8], rows: NDArray[np.int64]) -> Numbers:
        """A field that some of the kinds have, each at another place."""
        found = Numbers(np.zeros(len(rows), np.int64), np.ones(len(rows), np.bool_))
        for at, kinds in _PLACES[name].items():
            chosen = np.flatnonzero(np.isin(kind, kinds))
            if len(chosen) == len(rows):
                return self._numbers(rows, at)
            some = self._numbers(rows[chosen], at)
            found.values[chosen], found.nulls[chosen] = some.values, some.nulls
        return found

    def _address(self, name: str, kind: NDArray[np.int8], rows: NDArray[np.int64]) -> Named:
        ((at, kinds),) = _PLACES[name].items()
        chosen = np.flatnonzero(np.isin(kind, kinds))
        some = self._names(rows[chosen], at, at + 1, 1)
        codes = np.full(len(rows), len(some.names), np.int32)
        codes[chosen] = some.codes
        return Named(codes, [*some.names, None])


def _places(name: str) -> dict[int, list[int]]:
    """The place of each field in the run kinds: the row of the cursors, and the numbers of the kinds."""
    places: dict[int, list[int]] = {}
    for number, kind in enumerate(RUN_KINDS):
        if name in FIELDS[kind]:
            places.setdefault(FIRST_FIELD + FIELDS[kind].index(name), []).append(number)
    return places


_PLACES: Final = {name: _places(name) for name in (*RUN_NUMBERS, *ADDRESSES)}


class _Strange:
    """Stands for a value with another type than its column."""


_STRANGE: Final = _Strange()


def _view(value: list[Any] | None) -> object:
    """(number, creator); None without a view."""
    match value:
        case [None]:
            return None
        case [[int(number), str() | None as creator]] if type(number) is int and number < _INT64:
            return number, creator
    return _STRANGE


def _origin(value: list[Any] | None) -> object:
    """(name, incarnation); None where both are missing."""
    match value:
        case [None, None]:
            return None
        case [str() | None as name, str() | None as incarnation]:
            return name, incarnation
    return _STRANGE


def _text(value: list[Any] | None) -> object:
    match value:
        case [str() | None as text]:
            return text
    return _STRANGE


class _OneByOne:
    """Decodes frames record by record, as `reader.py` does, and adds their rows to the columns."""

    def __init__(self, window: FrameWindow) -> None:
        self.window = window
        self.rows: dict[str, list[tuple[int, list[Any]]]] = {kind: [] for kind in KINDS}

    def added(self, frames: NDArray[np.int64], found: Decoded) -> Decoded:
        """`found` with the records of `frames`."""
        for frame in frames.tolist():
            records = self._records(frame)
            if records is None:
                found.damage.append(Damage(self._offset(frame), "the frame cannot be decoded"))
            else:
                self._take(frame, records, found)
        for kind, rows in self.rows.items():
            if rows:
                self._typed(kind, rows, found)
        ends = range(len(self.window.begins) - 1, -1, -1)
        found.last = next((last for last in map(self._records, ends) if last is not None), None)
        return found

    def _offset(self, frame: int) -> int:
        return self.window.offset + int(self.window.begins[frame]) - FRAME_HEAD_BYTES

    def _records(self, frame: int) -> list[Any] | None:
        body = self.window.data.data[self.window.begins[frame] : self.window.stops[frame]]
        try:
            records = _decode(body)
        except UNDECODABLE:
            return None
        return records if isinstance(records, list) else None

    def _take(self, frame: int, records: list[Any], found: Decoded) -> None:
        place = frame << PLACE_BITS
        for at, record in enumerate(records, place):
            try:
                kind = record[0]
                if kind == "view":
                    found.histories.append((at, record[HISTORY_AT]))
                self.rows[kind].append((at, record))
            except (KeyError, TypeError, IndexError):
                reason = f"not a record that is known: {str(record)[:60]}"
                found.damage.append(Damage(self._offset(frame), reason))

    def _typed(self, kind: str, rows: list[tuple[int, list[Any]]], found: Decoded) -> None:
        """The rows of one kind as columns. A row with a field of another type counts as damage; the other rows are
        kept."""
        try:
            columns = columns_of(kind, [record for _, record in rows], TYPES)
        except MISFITS:
            rows = [row for row in rows if self._check(kind, row, found)]
            if not rows:
                return
            columns = columns_of(kind, [record for _, record in rows], TYPES)
        places = np.array([place for place, _ in rows], np.int64)
        if kind in RUN_KINDS:
            found.runs = merged(found.runs, rows_of(kind, places, columns))
        elif kind in VOTE_KINDS:
            found.votes = merged(found.votes, rows_of(kind, places, columns))
        else:
            found.others.append(Others(kind, places, columns))

    def _check(self, kind: str, row: tuple[int, list[Any]], found: Decoded) -> bool:
        place, record = row
        try:
            columns_of(kind, [record], TYPES)
        except MISFITS:
            reason = f"record {str(record[:2])[:60]} has fields that are not of its kind"
            found.damage.append(Damage(self._offset(place >> PLACE_BITS), reason))
            return False
        return True
