"""Finds the frames of a segment, window by window, so that a large file is never completely in memory.

Damage is reported as `frames.walk` reports it.  After a damaged place, and only then, the rest of the file is read at
once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh32_intdigest

from .frames import FRAME_HEAD, Damage, Header, checks, frame_at, frames_of, header_in, next_frame, preamble_trouble
from .packed import PADDING, Bytes
from .schema import FRAME_BODY_MAX, FRAME_HEAD_BYTES, PREAMBLE

WINDOW: Final = 16 << 20
"""Bytes that are looked at together; a frame that is longer is a window of its own."""


@dataclass(frozen=True)
class FrameWindow:
    """Complete frames with right checksums. Their bodies are `data[begins[i]:stops[i]]`.

    `data` begins at byte `offset` of the file, and has PADDING more bytes behind the last frame.
    """

    offset: int
    data: Bytes
    begins: NDArray[np.int64]
    stops: NDArray[np.int64]


def header_of(path: str) -> tuple[Header | Damage, int]:
    """The header of a segment, and the start of the first frame behind it. Raises OSError if the header cannot be
    read."""
    with Path(path).open("rb") as file:
        data = file.read(len(PREAMBLE) + FRAME_HEAD_BYTES)
        if len(data) == len(PREAMBLE) + FRAME_HEAD_BYTES:
            length = FRAME_HEAD.unpack_from(data, len(PREAMBLE))[0]
            data += file.read(length) if 0 < length <= FRAME_BODY_MAX else file.read()
    trouble = preamble_trouble(data)
    if trouble is not None:
        return trouble, 0
    first = next(frames_of(data[len(PREAMBLE) :]), Damage(0, "the header is missing", torn=True))
    header = header_in(first)
    if isinstance(header, Damage):
        return replace(header, offset=header.offset + len(PREAMBLE)), 0
    return header, len(data)


def stop_at(path: str, offset: int) -> int:
    """The end of the frame at `offset` according to its length field, which may be wrong. Raises OSError."""
    with Path(path).open("rb") as file:
        file.seek(offset)
        return offset + FRAME_HEAD_BYTES + int.from_bytes(file.read(4), "little")


def scan(path: str, begin: int, end: int) -> Iterator[FrameWindow | Damage]:
    """The frames in bytes [begin, end) of a segment. A frame must begin at `begin`. Raises OSError."""
    with Path(path).open("rb") as file:
        offset, size = begin, WINDOW
        while offset < end:
            data = _read(file, offset, min(size, end - offset))
            if len(data) == PADDING:  # another program has shortened the file meanwhile
                yield Damage(offset, "the segment ends within a frame", torn=True)
                return
            window, behind = _whole_frames(data, offset)
            if window is not None:
                yield window
            offset, size = offset + behind, WINDOW
            if behind < len(data) - PADDING:
                needed = _needed(data, behind, end - offset)
                if needed:
                    size = max(WINDOW, needed)
                else:
                    trouble, offset = _damage(file, offset, end)
                    yield trouble


def _read(file: BufferedReader, offset: int, size: int) -> Bytes:
    """`size` bytes of the file from `offset` on, or fewer at its end, and the padding."""
    data = np.empty(size + PADDING, np.uint8)
    file.seek(offset)
    read = file.readinto(data.data[:size])
    data[read : read + PADDING] = 0
    return data[: read + PADDING]


def _whole_frames(data: Bytes, offset: int) -> tuple[FrameWindow | None, int]:
    """The good frames at the start of `data`, and the start of the first damaged or incomplete frame."""
    view, end, at = data.data, len(data) - PADDING, 0
    head, digest, size = FRAME_HEAD.unpack_from, xxh32_intdigest, FRAME_HEAD_BYTES
    stops: list[int] = []
    good = stops.append
    while True:  # the padding reads as a frame that is longer than the window
        length, checksum = head(view, at)
        stop = at + size + length
        if stop > end or digest(view[at + size : stop]) != checksum:
            break
        good(stop)
        at = stop
    if not stops:
        return None, at
    behind = np.array(stops, np.int64)
    return FrameWindow(offset, data, np.append(0, behind[:-1]) + size, behind), at


def _needed(data: Bytes, at: int, left: int) -> int:
    """The size of the frame at `at` if the file may contain the whole frame and the window does not; otherwise 0."""
    there = len(data) - PADDING - at
    if there < FRAME_HEAD_BYTES:
        return FRAME_HEAD_BYTES if left >= FRAME_HEAD_BYTES else 0
    needed: int = FRAME_HEAD_BYTES + FRAME_HEAD.unpack_from(data.data, at)[0]
    return needed if there < needed <= left and needed <= FRAME_HEAD_BYTES + FRAME_BODY_MAX else 0


def _damage(file: BufferedReader, offset: int, end: int) -> tuple[Damage, int]:
    """The damage of the frame at `offset`, and the next offset, as `walk` would find them in the whole file."""
    file.seek(offset)
    near = file.read(min(WINDOW, end - offset))
    _, trouble = frame_at(memoryview(near), 0)
    if trouble is not None and trouble.reason == "bad checksum":
        behind = FRAME_HEAD_BYTES + FRAME_HEAD.unpack_from(near)[0]
        if checks(near, behind):
            return Damage(offset, trouble.reason), offset + behind
    rest = near + file.read(end - offset - len(near))
    _, trouble = frame_at(memoryview(rest), 0)
    assert trouble is not None  # a frame that is whole and right was taken before
    return replace(trouble, offset=offset), offset + next_frame(rest, 0)
