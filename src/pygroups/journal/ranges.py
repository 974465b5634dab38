"""Large segments as ranges that can be read apart: borders lie between frames, found by their lengths alone.

A range carries what a reader cannot see from it: the header, and the history that was told before it. Reading all
ranges of a segment gives the rows and the damage that reading the segment gives.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from .frames import Frame, Header, frame_end, frames_of, walk
from .reader import HISTORY_AT, Range, Segment
from .schema import FRAME_HEAD_BYTES, PREAMBLE

_VIEW: Final = b"\xa4view"  # how the kind of a view record stands in a frame
_LENGTH_BYTES: Final = 4


def header_of(segment: Segment) -> Header | None:
    """The header of a segment, without what was in force at its beginning; None if it cannot be read."""
    try:
        with Path(segment.path).open("rb") as file:
            data = file.read(len(PREAMBLE) + FRAME_HEAD_BYTES)
            length = int.from_bytes(data[len(PREAMBLE) : len(PREAMBLE) + _LENGTH_BYTES], "little")
            data += file.read(min(length, segment.size))
    except OSError:
        return None
    first = next(walk(data))
    return replace(first, in_force=[]) if isinstance(first, Header) else None


def split(segment: Segment, most: int) -> list[Range]:
    """The segment as ranges of about `most` bytes, in order; what lies behind a damaged length stays one range.

    One range, without a look into the file, if it is not larger. Raises OSError if the file cannot be read.
    """
    whole = Range(segment, 0, segment.size)
    if segment.size <= most:
        return [whole]
    data = Path(segment.path).read_bytes()[: segment.size]
    header = next(walk(data))
    begin = frame_end(data, len(PREAMBLE)) if isinstance(header, Header) else None
    if not isinstance(header, Header) or begin is None:
        return [whole]
    ranges = [whole]
    for border, history in _borders(data, begin, most, _history_in(header.in_force, None)):
        ranges[-1] = replace(ranges[-1], end=border)
        ranges.append(Range(segment, border, segment.size, replace(header, in_force=[]), history))
    return ranges


def _borders(data: bytes, at: int, most: int, history: str | None) -> Iterator[tuple[int, str | None]]:
    """Ends of frames, each at least `most` bytes behind the one before, and the history told before each.

    A frame with a right checksum follows each; where none does, a damaged length has led astray, and the search ends.
    """
    goal, end, view = most, len(data), data.find(_VIEW, at)
    while at < end:
        if at >= goal:
            if frame_end(data, at) is None:
                return
            yield at, history
            goal = at + most
        behind = at + FRAME_HEAD_BYTES + int.from_bytes(data[at : at + _LENGTH_BYTES], "little")
        if at <= view < behind:
            for frame in frames_of(data[at:behind]):
                history = _history_in(frame.records, history) if isinstance(frame, Frame) else history
            view = data.find(_VIEW, behind)
        at = behind


def _history_in(records: Sequence[Any], history: str | None) -> str | None:
    """The history that the last view among `records` tells; without one it stays `history`."""
    for record in records:
        if isinstance(record, list) and len(record) > HISTORY_AT and record[0] == "view":
            history = record[HISTORY_AT]
    return history
