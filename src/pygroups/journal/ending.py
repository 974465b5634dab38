"""The end of an incarnation's journal, for a process that continues the journal, or that answers for the incarnation.

Only the last segment with records is read: this segment has the highest index, and its header repeats the records in
force.  Of its frames only those with a record that counts are decoded, so 64 MiB take a fraction of a second.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from xxhash import xxh32_intdigest

from .frames import FRAME_HEAD, UNDECODABLE, Damage, Frame, Header, frame_at, frame_end, naming, next_frame, walk
from .schema import FIELDS, FRAME_HEAD_BYTES, PREAMBLE, PREFIX, is_segment

LOST: Final = "journal lost"  # the reason of the record behind lost records
_FORCE: Final = ("view", "flush")  # the kinds of records in force
_ASKED: Final = naming((*_FORCE, "drop"))
_REASON_AT: Final = len(PREFIX) + FIELDS["drop"].index("reason")
_INDEX_AT: Final = PREFIX.index("index")
_TIME_AT: Final = PREFIX.index("time_us")
_BEGINNING: Final = 1 << 18  # bytes in which the first record of a segment is
_decode: Final = msgspec.msgpack.Decoder().decode


class Ending(NamedTuple):
    """The end of a journal. `rows`: the records in force at the beginning of the last segment, and those of the same
    kinds behind it."""

    profile: str = ""
    rows: tuple[list[Any], ...] = ()
    next_index: int = 0
    whole: bool = True  # False: records of the last segment are missing


def ending_of(folder: Path) -> Ending:
    """The end of the journal of the incarnation in `folder`. Raises OSError if a segment cannot be read."""
    ending = Ending()
    for path in _segments(folder, last_first=True):
        part = _end_of_segment(path.read_bytes())
        ending = Ending(part.profile, ending.rows + part.rows, part.next_index, ending.whole and part.whole)
        if part.next_index:
            break
    return ending


def begun_at(folder: Path) -> int:
    """The wall clock at the first record that is left of the incarnation in `folder`, in microseconds; 0 without a
    record."""
    for path in _segments(folder, last_first=False):
        with path.open("rb") as file:
            data = file.read(_BEGINNING)
        for part in walk(data):
            if isinstance(part, Frame) and part.records:
                return int(part.records[0][_TIME_AT])
    return 0


def _segments(folder: Path, *, last_first: bool) -> list[Path]:
    return sorted((path for path in folder.iterdir() if is_segment(path.name)), reverse=last_first)


def _end_of_segment(data: bytes) -> Ending:
    header = next(walk(data))
    if not isinstance(header, Header):
        assert isinstance(header, Damage)
        return Ending(whole=header.torn and not header.lossy)
    rows, last, whole = [*header.in_force], None, True
    for place in _asked_or_last(data):
        if isinstance(place, Damage):
            whole = whole and place.torn and not place.lossy
            continue
        try:
            last = _decode(place)
        except UNDECODABLE:
            whole = False
            continue
        rows += [row for row in last if row[0] in _FORCE]
        whole = whole and not any(row[0] == "drop" and row[_REASON_AT] == LOST for row in last)
    next_index = last[-1][_INDEX_AT] + 1 if last else 0
    return Ending(header.profile, tuple(rows), next_index, whole)


def _asked_or_last(data: bytes) -> Iterator[memoryview | Damage]:
    """The bodies behind the header that have a record that counts, the last body, and the damage, in their order."""
    view, end, at = memoryview(data), len(data), frame_end(data, len(PREAMBLE))
    assert at is not None  # the header has just been decoded
    last, asked = view[:0], _next_asked(data, at)
    while at < end:
        begin = at + FRAME_HEAD_BYTES
        length, checksum = FRAME_HEAD.unpack_from(data, at) if begin <= end else (end, 0)
        stop = begin + length
        if stop > end or xxh32_intdigest(view[begin:stop]) != checksum:
            _, damage = frame_at(view, at)
            assert damage is not None
            yield damage
            at = next_frame(data, at)
            asked = _next_asked(data, at)
            continue
        last, at = view[begin:stop], stop
        if asked < stop:
            yield last
            asked, last = _next_asked(data, stop), view[:0]
    if last:
        yield last


def _next_asked(data: bytes, at: int) -> int:
    found = _ASKED.search(data, at)
    return len(data) if found is None else found.start()
