"""Divides large segments into ranges that can be read separately. Borders are between frames, found by their lengths.

A range has two facts that a reader cannot find in the range itself: the header, and the history id before it.  All
ranges of a segment together give the same rows and damage as the segment.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from . import scan
from .frames import Damage, Frame, Header, frame_end, frames_of, walk
from .reader import HISTORY_AT, Range, Segment
from .schema import FRAME_HEAD_BYTES, PREAMBLE

_VIEW: Final = b"\xa4view"  # how the kind of a view record stands in a frame
_LENGTH_BYTES: Final = 4


def header_of(segment: Segment) -> Header | None:
    """The header of a segment, without its records in force; None if the header cannot be read."""
    if segment.trouble is not None:
        return None
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
    """The segment as ranges of about `most` bytes, in order. All bytes behind a damaged length stay in one range.

    A segment that is not larger gives one range, without reading the file. Raises OSError if the file cannot be read.
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
    """Ends of frames, each at least `most` bytes behind the previous one, with the history id before each.

    A frame with a right checksum follows each border. If none does, a length is damaged, and the search ends.
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


class Reached(NamedTuple):
    """A place between two frames of a segment, and the history id there."""

    end: int
    history: str | None = None


def grown(segment: Segment, start: Reached, most: int | None = None) -> Reached:
    """The place up to which a segment can be read that its writer may still append to; `start` was reached before.

    A frame at the end that is not whole yet stays for later, unless a next segment follows.  With `most` the place is
    at most that many bytes behind `start`, or one frame.  Raises OSError if the file cannot be read.
    """
    end, history = start
    if end == 0:
        header, end = scan.header_of(segment.path)
        if not isinstance(header, Header):
            return Reached(segment.size) if segment.following else start
        history = _history_in(header.in_force, None)
    first, limit = end, segment.size if most is None else start.end + most
    for window in scan.scan(segment.path, end, segment.size):
        if isinstance(window, Damage):
            continue
        stops = window.stops[: max(1, int((window.stops + window.offset <= limit).sum()))]
        if end > first and window.offset + stops[0] > limit:
            return Reached(end, history)
        data = bytes(window.data[: stops[-1]])
        if _VIEW in data:
            for frame in frames_of(data):
                history = _history_in(frame.records, history) if isinstance(frame, Frame) else history
        end = window.offset + int(stops[-1])
        if len(stops) < len(window.stops):
            return Reached(end, history)
    return Reached(segment.size if segment.following else end, history)


def _history_in(records: Sequence[Any], history: str | None) -> str | None:
    """The history id of the last view among `records`; `history` if there is none."""
    for record in records:
        if isinstance(record, list) and len(record) > HISTORY_AT and record[0] == "view":
            history = record[HISTORY_AT]
    return history
