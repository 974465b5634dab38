"""Finds the starts of the records and fields of many frames, in all records at once.

A record is searched where the name of a frequent kind follows the head of an array. A frame counts only if the found
records fill it completely: each record ends where the next one begins, and the last one at the end of the frame. All
other frames are returned as `slow`. This module belongs to the extra `spark`.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .packed import PAIR, Bytes, Cursors, Mask, are_strings, array_sizes, map_sizes, skip, windows
from .schema import FIELDS, PREFIX

RUN_KINDS: Final = ("send", "deliver", "unicast_send", "unicast_deliver", "order")
VOTE_KINDS: Final = ("stable", "purge")
FIELDS_MOST: Final = 11  # of a frequent kind
PLACE_BITS: Final = 30  # a frame's body has no more bytes, so no more records
INDEX, TIME, MONO, VIEW, FIRST_FIELD = range(5)
"""Rows of `Records.cursors`: then follow the fields of the kind; behind the last one stands where the record ends."""
CURSORS: Final = FIRST_FIELD + FIELDS_MOST + 1

_LEAST, _MOST = 0xA0 + 4, 0xA0 + 15  # first bytes of the kinds' names: texts of 4 to 15 bytes
_MORE_FIELDS: Final = 8  # appended by later versions, before a frame counts as strange
_NOTHING: Final = np.zeros(0, np.int64)
_KNOWN: Final = np.array([len(FIELDS[kind]) for kind in (*RUN_KINDS, *VOTE_KINDS)], np.int64)


@dataclass
class Entries:
    """The entries of digests: entry `number` of the record in `row`, with the cursors of key and value."""

    row: NDArray[np.int64]
    number: NDArray[np.int64]
    key: Cursors
    value: Cursors


@dataclass
class Records:
    """Frequent records in the order of the file.

    `kind`: the number in RUN_KINDS + VOTE_KINDS. `place`: the number of the frame, and of the record in its frame.
    `digests`: the number of entries in the digest of a vote; -1 for nil. `slow`: the numbers of the frames that are
    left out.
    """

    kind: NDArray[np.int8]
    frame: NDArray[np.int64]
    place: NDArray[np.int64]
    cursors: NDArray[np.int64]
    digests: NDArray[np.int64]
    entries: Entries
    slow: NDArray[np.int64]


def records_in(data: Bytes, begins: Cursors, stops: Cursors) -> Records:
    """The records of the frames with bodies `data[begins[i]:stops[i]]`, which must be in ascending order."""
    walk = _Walk(data)
    slow = np.zeros(len(begins), np.bool_)
    counts, firsts = array_sizes(data, begins, slow)
    starts, kind, at = walk.candidates(int(stops[-1]))
    frame = np.searchsorted(begins, starts, side="right") - 1
    inside = (frame >= 0) & (starts >= firsts[frame]) & (starts < stops[frame])
    starts, kind, at, frame = starts[inside], kind[inside], at[inside], frame[inside]
    wrong = np.zeros(len(starts), np.bool_)
    cursors, digests, entries, ends = walk.fields(starts, kind, at, wrong)
    held = np.bincount(frame, minlength=len(begins))
    last = np.append(frame[1:] != frame[:-1], True)[: len(frame)]
    following = np.where(last, stops[frame], np.append(starts[1:], 0)[: len(frame)])
    wrong |= ends != following
    slow |= held != counts
    slow[frame[wrong]] = True
    heads = np.flatnonzero(np.append(True, last[:-1])[: len(frame)])
    slow[frame[heads][starts[heads] != firsts[frame[heads]]]] = True
    slow |= (counts == 0) & (firsts != stops)
    return _only(Records(kind, frame, _places(frame, heads), cursors, digests, entries, np.flatnonzero(slow)), slow)


def _places(frame: NDArray[np.int64], heads: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of the frames, and of the records in their frames."""
    number = np.arange(len(frame), dtype=np.int64)
    number -= np.repeat(heads, np.diff(np.append(heads, len(frame))))
    return (frame << PLACE_BITS) | number


def _only(found: Records, slow: Mask) -> Records:
    """The records without those of slow frames."""
    if not len(found.slow):
        return found
    good = ~slow[found.frame]
    row = np.cumsum(good) - 1
    kept = good[found.entries.row]
    entries = found.entries
    return Records(
        found.kind[good],
        found.frame[good],
        found.place[good],
        found.cursors[:, good],
        found.digests[good],
        Entries(row[entries.row[kept]], entries.number[kept], entries.key[kept], entries.value[kept]),
        found.slow,
    )


def _joined(parts: list[Entries]) -> Entries:
    columns = [(part.row, part.number, part.key, part.value) for part in [Entries(*[_NOTHING] * 4), *parts]]
    return Entries(*map(np.concatenate, zip(*columns, strict=True)))


class _Walk:
    """Moves through many records at once."""

    def __init__(self, data: Bytes) -> None:
        self.data = data
        self.windows = windows(data)

    def candidates(self, end: int) -> tuple[Cursors, NDArray[np.int8], Cursors]:
        """The possible starts of arrays whose first value is the name of a frequent kind, their kinds, and the next
        cursors."""
        at = np.flatnonzero((self.data[:end] - np.uint8(_LEAST)) <= _MOST - _LEAST)
        first = self.windows[at].astype(np.uint64)
        kind, size = np.full(len(at), -1, np.int8), np.zeros(len(at), np.int64)
        for number, name in enumerate((*RUN_KINDS, *VOTE_KINDS)):
            packed = bytes([0xA0 + len(name)]) + name.encode()
            rows = np.flatnonzero(self._begins(first, packed[:8]))
            if len(packed) > 8:
                rows = rows[self._begins(self.windows[at[rows] + 8].astype(np.uint64), packed[8:])]
            kind[rows], size[rows] = number, len(packed)
        named = np.flatnonzero(kind >= 0)
        kind, at, behind = kind[named], at[named], (at + size)[named]
        small = (self.data.take(at - 1) & 0xF0) == 0x90
        large = ~small & (self.data.take(at - 3, mode="clip") == 0xDC)
        starts = at - np.where(large, 3, 1)
        heads = np.flatnonzero(small | large)
        return starts[heads], kind[heads], behind[heads]

    def fields(
        self, starts: Cursors, kind: NDArray[np.int8], at: Cursors, wrong: Mask
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Entries, Cursors]:
        """The cursors of the records, the sizes and entries of digests, and the ends of the records.

        Marks in `wrong` the records without the usual shape.
        """
        data = self.data
        sizes, _ = array_sizes(data, starts, wrong)
        cursors = np.empty((CURSORS, len(at)), np.int64)
        for row in (INDEX, TIME, MONO):
            cursors[row] = at
            at = skip(data, at, wrong)
        cursors[VIEW] = at
        at = self._behind_view(at, wrong)
        cursors[FIRST_FIELD] = at
        more = sizes - len(PREFIX)
        known = _KNOWN[kind]
        wrong |= (more < known) | (more > known + _MORE_FIELDS)
        is_vote = kind >= len(RUN_KINDS)
        votes = np.flatnonzero(is_vote & ~wrong)
        digests, entries, ends = self._digests(votes, at, wrong)
        at[votes] = ends
        more[votes] -= 1
        more[wrong] = 0
        ends = self._fields(cursors, at, more, np.where(is_vote, 0, known), wrong)
        return cursors, digests, entries, ends

    def _begins(self, first: NDArray[np.uint64], text: bytes) -> Mask:
        """The places at which the 8 bytes begin with `text`."""
        same: Mask = first >> np.uint64(8 * (8 - len(text))) == int.from_bytes(text, "big")
        return same

    def _behind_view(self, at: Cursors, wrong: Mask) -> Cursors:
        pair = self.data.take(at) == PAIR
        if pair.all():
            return skip(self.data, skip(self.data, at + 1, wrong), wrong)
        inside = np.where(pair, at + 1, at)
        behind = skip(self.data, inside, wrong)
        rows = np.flatnonzero(pair)
        strange = np.zeros(len(rows), np.bool_)
        behind[rows] = skip(self.data, behind[rows], strange)
        wrong[rows] |= strange
        return behind

    def _fields(
        self, cursors: NDArray[np.int64], at: Cursors, more: NDArray[np.int64], known: NDArray[np.int64], wrong: Mask
    ) -> Cursors:
        """Store the start of each known field, and skip `more` fields."""
        least = min(int(more.min(initial=_MORE_FIELDS)), int(known.min(initial=_MORE_FIELDS)))
        most = int(more.max(initial=0))
        for number in range(max(most, FIELDS_MOST + 1)):
            if 0 < number <= FIELDS_MOST:
                cursors[FIRST_FIELD + number] = at
            if number >= most:
                continue
            strange = np.zeros(len(at), np.bool_)
            behind = skip(self.data, at, strange)
            if number < least:
                wrong |= strange
                at = behind
                continue
            there = number < more
            wrong |= there & (strange | ((number >= known) & are_strings(self.data, at)))
            at = np.where(there, behind, at)
        return at

    def _digests(self, rows: NDArray[np.int64], at: Cursors, wrong: Mask) -> tuple[NDArray[np.int64], Entries, Cursors]:
        """The entries of the maps at `at[rows]`, and the ends of the maps."""
        digests = np.zeros(len(at), np.int64)
        strange = np.zeros(len(rows), np.bool_)
        sizes, ends = map_sizes(self.data, at[rows], strange)
        digests[rows] = sizes
        parts = []
        for number in range(int(sizes.max(initial=0))):
            active = np.flatnonzero((sizes > number) & ~strange)
            if not len(active):
                break
            odd = ~are_strings(self.data, ends[active])
            values = skip(self.data, ends[active], odd)
            parts.append(Entries(rows[active], np.full(len(active), number), ends[active], values))
            ends[active] = skip(self.data, values, odd)
            strange[active] |= odd
        wrong[rows] |= strange
        return digests, _joined(parts), ends
