"""The messages of a late-join handler on disk, so that its next process has them, too.

A folder has segments, each a beginning and records.  A record is its length, a checksum, and an array: when the run
arrived, its origin, its numbers and its body.  Nothing is used that was not checked: a segment counts up to its first
record with another length, checksum or form.  The segments of one folder take at most DISK bytes; the oldest leave
first.  One process at a time uses a folder.  Note: docs/layers/pbcast.md.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta
from xxhash import xxh32_intdigest

from pygroups.core.address import Address
from pygroups.core.errors import UNDECODABLE
from pygroups.core.limits import BODY_MAX, RUN_MESSAGES_MAX
from pygroups.core.run import Run, payloads_of
from pygroups.core.tables import Tables

DISK: Final = 64 << 20  # bytes of all segments
SEGMENTS_MAX: Final = 256  # each start begins one
SEGMENT: Final = 8 << 20  # bytes of one segment, after which the next one begins
BEGINNING: Final = b"pygroups late messages 1\n"
HEAD: Final = struct.Struct("<II")  # the length of a record, and its checksum
RECORD_MAX: Final = BODY_MAX + 1_024

Number = Annotated[int, Meta(ge=1, le=1 << 62)]
Stored = tuple[Run, int]  # a run, and microseconds since it arrived


class Record(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A run on disk."""

    at: Annotated[int, Meta(ge=0, le=1 << 62)]  # when it arrived, by the wall clock, in microseconds
    origin: Address
    first: Number
    count: Annotated[int, Meta(ge=1, le=RUN_MESSAGES_MAX)]
    body: Annotated[bytes, Meta(max_length=BODY_MAX)]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Record).decode


class LateStore:
    """The folder of one handler.  After the first error of the disk, which `warn` gets, the store writes no more, and
    the handler keeps its messages in memory alone."""

    tables: ClassVar[Tables] = {"others": SEGMENTS_MAX, "stored": "nothing"}

    def __init__(self, folder: Path, now: int, warn: Callable[[str], None]) -> None:
        self.folder = folder
        self.warn = warn
        self.lock = self.file = -1
        self.number = self.size = 0  # of the segment that is written
        self.others: dict[int, int] = {}  # the bytes of the other segments, the oldest first
        self.stored: Sequence[Stored] = ()  # what the folder had, in the order of arrival
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._take()
            self.others = dict(_segments(folder))
            self._remove(DISK)
            self.stored = _in_order([one for number in self.others for one in _read(_path(folder, number), now)])
            self._begin()
        except OSError as error:
            self._give_up(error)

    def _take(self) -> None:
        self.lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _begin(self) -> None:
        """Begin a segment, and remove the oldest ones for which no room is left."""
        if self.file >= 0:
            os.close(self.file)
            self.file, self.others[self.number] = -1, self.size
        self._remove(DISK - SEGMENT)
        self.number = 1 + max(self.others, default=0)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self.file = os.open(_path(self.folder, self.number), flags, 0o600)
        self.size = 0
        self._append(BEGINNING)

    def _remove(self, room: int) -> None:
        while self.others and (sum(self.others.values()) > room or len(self.others) >= SEGMENTS_MAX):
            oldest = next(iter(self.others))
            del self.others[oldest]
            _path(self.folder, oldest).unlink(missing_ok=True)

    def _append(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            written = os.write(self.file, left)
            self.size += written
            left = left[written:]

    def write(self, runs: Sequence[Run], now: int) -> None:
        """Write runs that have arrived at `now` (microseconds of the wall clock)."""
        if self.file < 0:
            return
        try:
            for run in runs:
                assert run.origin is not None
                body = _encode(Record(now, run.origin, run.first, run.count, bytes(run.body)))
                if self.size + HEAD.size + len(body) > SEGMENT:
                    self._begin()
                self._append(HEAD.pack(len(body), xxh32_intdigest(body)) + body)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        busy = isinstance(error, BlockingIOError)
        why = "another process uses the folder" if busy else error.strerror or str(error)
        self.close()
        self.warn(
            f"messages for members that come late are kept in memory alone, and not in {self.folder}: {why}; "
            "if this process ends, they are lost"
        )

    def close(self) -> None:
        """Write no more, and let another process use the folder.  A second call has no effect."""
        for descriptor in (self.file, self.lock):
            if descriptor >= 0:
                os.close(descriptor)
        self.file = self.lock = -1


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:08}.late"


def _segments(folder: Path) -> Iterator[tuple[int, int]]:
    """The segments of a folder by number, and the bytes of each."""
    names = sorted([path.stem for path in folder.glob("*.late") if path.stem.isdecimal() and len(path.stem) == 8])
    for name in names:
        yield int(name), _path(folder, int(name)).stat().st_size


def _read(path: Path, now: int) -> Iterator[Stored]:
    """The records of a segment, up to the first one that is not whole."""
    with path.open("rb") as file:
        data = file.read(SEGMENT)
    if not data.startswith(BEGINNING):
        return
    at = len(BEGINNING)
    while at + HEAD.size <= len(data):
        length, checksum = HEAD.unpack_from(data, at)
        body = data[at + HEAD.size : at + HEAD.size + length]
        at += HEAD.size + length
        if length > RECORD_MAX or len(body) < length or xxh32_intdigest(body) != checksum:
            return
        try:
            record = _decode(body)
        except UNDECODABLE:
            return
        origin = record.origin
        run = Run(origin, None, (), origin, record.first, 0, record.count, record.body, origin, record.first)
        if payloads_of(run) is None:
            return
        yield run, max(0, now - record.at)


def _in_order(stored: Sequence[Stored]) -> list[Stored]:
    """The runs whose numbers are above those of all earlier ones of their origin."""
    nexts: dict[Address, int] = {}
    found = []
    for run, age in stored:
        assert run.origin is not None
        if run.first >= nexts.get(run.origin, 1):
            nexts[run.origin] = run.next
            found.append((run, age))
    return found
