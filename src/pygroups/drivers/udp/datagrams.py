"""Frames and datagrams: a frame that fits no datagram is split into parts, and its receiver joins them.

A part begins with 22 bytes: b"S", the version, the part's index and how many parts there are (two bytes each), the
sender's incarnation and the frame's counter (eight bytes each), as they stand in the frame.  Nothing is repaired here:
a frame of which a part is lost is lost, and the layers above send its runs again.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from pygroups.core.limits import SECOND
from pygroups.wire.frame import HEADER, VERSION

SPLIT: Final = ord("S")
PART: Final = struct.Struct(">BBHH8sQ")
PARTS_MAX: Final = 4_096  # of one frame
DATAGRAM_LARGEST: Final = 65_507  # bytes that UDP over IPv4 carries at once
DATAGRAM_LEAST: Final = 576  # every IPv4 host takes packets of this size
UNFINISHED_MAX: Final = 8  # frames of one sender of which some parts lack
UNFINISHED_BYTES: Final = 16 << 20  # of their parts
UNFINISHED_COST: Final = 512  # bytes counted for a frame, beside its parts: even an empty one takes memory
PART_COST: Final = 128  # bytes counted for a part, beside its content
UNFINISHED_TIME: Final = 30 * SECOND
_NAMED: Final = struct.Struct(">4x8sQ")  # incarnation and counter in a frame's header


def split(frame: bytes, size: int) -> list[bytes]:
    """`frame` as datagrams of at most `size` bytes; none if that takes more than PARTS_MAX of them."""
    if len(frame) <= size:
        return [frame]
    room = size - PART.size
    count = -(-len(frame) // room)
    if count > PARTS_MAX:
        return []
    named = _NAMED.unpack_from(frame)
    return [
        PART.pack(SPLIT, VERSION, index, count, *named) + frame[index * room : (index + 1) * room]
        for index in range(count)
    ]


class FrameId(NamedTuple):
    """The fields that are equal in all parts of one frame."""

    sender: bytes  # an incarnation
    counter: int


class Unfinished:
    """The received parts of one frame."""

    __slots__ = ("begun_at", "count", "parts", "size")

    def __init__(self, count: int, begun_at: int) -> None:
        self.count = count
        self.begun_at = begun_at
        self.parts: dict[int, bytes] = {}
        self.size = UNFINISHED_COST


class Joiner:
    """Joins the parts of frames.

    A joiner keeps at most UNFINISHED_MAX frames and UNFINISHED_BYTES bytes of one sender, and `limit` bytes of all
    senders.  A joiner keeps no frame for longer than UNFINISHED_TIME.  The oldest frame is dropped to make room.
    `count` gets each reason for which a part or a frame is dropped.
    """

    def __init__(self, limit: int, count: Callable[[str], None]) -> None:
        self.limit = limit
        self.count = count
        self.kept_bytes = 0
        self.frames: dict[FrameId, Unfinished] = {}  # the oldest first
        self.senders: dict[bytes, dict[FrameId, None]] = {}  # the frames of each, the oldest first

    def add(self, datagram: memoryview, now: int) -> bytes | None:
        """The frame that `datagram` completes at `now` (microseconds), or None."""
        if len(datagram) <= PART.size:
            self.count("malformed parts")
            return None
        _, version, index, parts, sender, counter = PART.unpack_from(datagram)
        name = FrameId(sender, counter)
        frame = self.frames.get(name)
        if version != VERSION or not index < parts or not 1 < parts <= PARTS_MAX:
            self.count("malformed parts")
        elif frame is not None and frame.count != parts:
            self.count("contradicting parts")
        elif frame is not None and index in frame.parts:
            self.count("repeated parts")
        else:
            if frame is None:
                frame = self.frames[name] = Unfinished(parts, now)
                self.senders.setdefault(sender, {})[name] = None
                self.kept_bytes += frame.size
            self._keep(frame, index, bytes(datagram[PART.size :]))
            if len(frame.parts) == parts:
                self._forget(name)
                return b"".join([frame.parts[number] for number in range(parts)])
            self._make_room(sender, now)
        return None

    def _keep(self, frame: Unfinished, index: int, data: bytes) -> None:
        frame.parts[index] = data
        frame.size += len(data) + PART_COST
        self.kept_bytes += len(data) + PART_COST

    def _forget(self, name: FrameId) -> None:
        self.kept_bytes -= self.frames.pop(name).size
        own = self.senders[name.sender]
        del own[name]
        if not own:
            del self.senders[name.sender]

    def _make_room(self, sender: bytes, now: int) -> None:
        """Drop the oldest frames until every bound holds."""
        while self.frames and (
            self.kept_bytes > self.limit or next(iter(self.frames.values())).begun_at + UNFINISHED_TIME <= now
        ):
            self._give_up(next(iter(self.frames)))
        own = self.senders.get(sender, {})
        while len(own) > UNFINISHED_MAX or self._take_too_much(own):
            self._give_up(next(iter(own)))

    def _take_too_much(self, own: Iterable[FrameId]) -> bool:
        """Whether the frames of one sender take more than a sender may."""
        return self.kept_bytes > UNFINISHED_BYTES < sum([self.frames[name].size for name in own])

    def _give_up(self, name: FrameId) -> None:
        self._forget(name)
        self.count("frames with a lost part")


def is_frame(datagram: memoryview) -> bool:
    """Whether `datagram` may be a whole frame: it is long enough, and no part."""
    return len(datagram) > HEADER.size and datagram[0] != SPLIT


def sender_of(frame: memoryview | bytes) -> bytes:
    """The incarnation that the header of `frame` names, as eight bytes."""
    incarnation: bytes = _NAMED.unpack_from(frame)[0]
    return incarnation
