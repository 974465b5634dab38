"""Where the records of many frames, and the fields of each, begin: one step in all frames at once.

The first records of all frames are walked through together, then the second ones, and so on. A frame that holds
anything but frequent records of the usual shape is given back as `slow`. It belongs to the extra `spark`.
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

_FEW: Final = 48  # frames: below it, a step for all of them costs more than decoding them one by one
_MORE_FIELDS: Final = 8  # appended by later versions, before a frame counts as strange
_NOTHING: Final = np.zeros(0, np.int64)
_KNOWN: Final = np.array([len(FIELDS[kind]) for kind in (*RUN_KINDS, *VOTE_KINDS)], np.int64)


@dataclass
class Entries:
    """The entries of digests: of the record in `row`, the entry `number`, with the cursors of key and value."""

    row: NDArray[np.int64]
    number: NDArray[np.int64]
    key: Cursors
    value: Cursors


@dataclass
class Records:
    """Frequent records in the order of the file.

    `kind` counts in RUN_KINDS + VOTE_KINDS; `place` is the frame's number and the record's number in it. `digests`:
    how many entries the digest of a vote has, -1 if it is nil. `slow`: numbers of the frames that are not in here.
    """

    kind: NDArray[np.int8]
    frame: NDArray[np.int64]
    place: NDArray[np.int64]
    cursors: NDArray[np.int64]
    digests: NDArray[np.int64]
    entries: Entries
    slow: NDArray[np.int64]


@dataclass
class _Step:
    """One record of each of `frames`: the one with number `number` in its frame."""

    number: int
    frames: NDArray[np.int64]
    kind: NDArray[np.int8]
    cursors: NDArray[np.int64]
    digests: NDArray[np.int64]
    entries: Entries


def records_in(data: Bytes, begins: Cursors, stops: Cursors) -> Records:
    """The records of the frames with bodies `data[begins[i]:stops[i]]`."""
    slow = np.zeros(len(begins), np.bool_)
    counts, at = array_sizes(data, begins, slow)
    counts[slow] = 0
    by_size = np.argsort(-counts, kind="stable")
    falling = -counts[by_size]
    steps: list[_Step] = []
    walk = _Walk(data)
    for number in range(int(counts.max(initial=0))):
        frames = by_size[: np.searchsorted(falling, -number)]
        frames = frames[~slow[frames]]
        if len(frames) < _FEW:
            slow[frames] = True
            break
        wrong = np.zeros(len(frames), np.bool_)
        step, ends = walk.step(number, frames, at[frames], wrong)
        at[frames] = ends
        slow[frames] = wrong
        steps.append(step)
    slow |= at != stops
    counts[slow] = 0
    return _in_order(steps, counts, slow)


def _in_order(steps: list[_Step], counts: NDArray[np.int64], slow: Mask) -> Records:
    """The records of all steps, those of slow frames left out, at their places in the file."""
    base = np.cumsum(counts) - counts
    total = int(counts.sum())
    kind, frame, digests = np.zeros(total, np.int8), np.zeros(total, np.int64), np.zeros(total, np.int64)
    place, cursors = np.zeros(total, np.int64), np.zeros((CURSORS, total), np.int64)
    entries = []
    for step in steps:
        good = ~slow[step.frames]
        frames = step.frames[good]
        rows = base[frames] + step.number
        kind[rows], frame[rows], digests[rows] = step.kind[good], frames, step.digests[good]
        place[rows] = (frames << PLACE_BITS) | step.number
        cursors[:, rows] = step.cursors[:, good]
        row = base[step.frames] + step.number
        kept = good[step.entries.row]
        found = step.entries
        entries.append(Entries(row[found.row][kept], found.number[kept], found.key[kept], found.value[kept]))
    return Records(kind, frame, place, cursors, digests, _joined(entries), np.flatnonzero(slow))


def _joined(parts: list[Entries]) -> Entries:
    columns = [(part.row, part.number, part.key, part.value) for part in [Entries(*[_NOTHING] * 4), *parts]]
    return Entries(*map(np.concatenate, zip(*columns, strict=True)))


class _Walk:
    """Goes through one record in each of many frames."""

    def __init__(self, data: Bytes) -> None:
        self.data = data
        self.windows = windows(data)

    def step(self, number: int, frames: NDArray[np.int64], at: Cursors, wrong: Mask) -> tuple[_Step, Cursors]:
        """The records at `at`, and where they end; marks in `wrong` what is not frequent and of the usual shape."""
        data = self.data
        sizes, at = array_sizes(data, at, wrong)
        kind, at = self._kinds(at, wrong)
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
        votes = np.flatnonzero((kind >= len(RUN_KINDS)) & ~wrong)
        digests, entries, ends = self._digests(votes, at, wrong)
        at[votes] = ends
        more[votes] -= 1
        more[wrong] = 0
        ends = self._fields(cursors, at, more, np.where(kind >= len(RUN_KINDS), 0, known), wrong)
        return _Step(number, frames, kind, cursors, digests, entries), ends

    def _kinds(self, at: Cursors, wrong: Mask) -> tuple[NDArray[np.int8], Cursors]:
        first = self.windows[at].astype(np.uint64)
        kind = np.full(len(at), -1, np.int8)
        size = np.ones(len(at), np.int64)
        for number, name in enumerate((*RUN_KINDS, *VOTE_KINDS)):
            packed = bytes([0xA0 + len(name)]) + name.encode()
            same = self._begins(first, packed[:8])
            if len(packed) > 8 and same.any():
                rows = np.flatnonzero(same)
                same[rows] = self._begins(self.windows[at[rows] + 8].astype(np.uint64), packed[8:])
            kind[same] = number
            size[same] = len(packed)
        wrong |= kind < 0
        return kind, at + size

    def _begins(self, first: NDArray[np.uint64], text: bytes) -> Mask:
        """Where the 8 bytes begin with `text`."""
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
        """Notes where each known field begins, and passes over `more` of them."""
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
        """The entries of the maps that stand at `at[rows]`, and where the maps end."""
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
