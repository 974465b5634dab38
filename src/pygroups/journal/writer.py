"""Writes a member's journal: each call writes one frame, unbuffered, so that kill -9 loses no written record."""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from .frames import Frame, Header, Record, frame_of, rows_of, segment_beginning, walk
from .schema import FIELDS, LOCK_NAME, PREFIX, SEGMENT_SUFFIX

SEGMENT_BYTES: Final = 64 << 20
_STAGE_AT: Final = len(PREFIX) + FIELDS["flush"].index("stage")
UNKNOWN_VERSION: Final = "unknown"  # of the software that writes, for people; a reader goes by the preamble


class JournalError(OSError):
    """The journal cannot be opened or written. The message has the file and the reason."""


class JournalEncoder:
    """Encodes records as the bytes of segments, and numbers them. It uses no files."""

    def __init__(
        self, group: str, member: str, incarnation: str, profile: str, *, host: str, boot_id: str, version: str
    ) -> None:
        self._identity = (group, member, incarnation, profile, version, host, boot_id)
        self._repeats = profile.startswith("uniform")
        self._in_force: dict[str, list[Any]] = {}  # view, collect, accepted: the records that a new segment repeats
        self.index = 0  # number of the next record

    def beginning(self) -> bytes:
        """The preamble and header frame of a new segment."""
        return segment_beginning(Header(*self._identity, in_force=list(self._in_force.values())))

    def frame(self, records: Sequence[Record], time_us: int, mono_us: int) -> bytes:
        """One frame with `records`. They use up their numbers even if the frame does not reach a disk."""
        rows = rows_of(records, self.index, time_us, mono_us)
        self.index += len(rows)
        if self._repeats:
            self.remember(rows)
        return frame_of(rows)

    def remember(self, rows: Sequence[list[Any]]) -> None:
        """Store the records in force: the last view, and the last collect and accepted records after it."""
        for row in rows:
            if row[0] == "view":
                self._in_force = {"view": row}
            elif row[0] == "flush" and row[_STAGE_AT] in ("collect", "accepted"):
                self._in_force[row[_STAGE_AT]] = row


class MemoryJournal:
    """A journal in memory, in one segment, which can be saved. The simulator writes many."""

    def __init__(
        self,
        group: str,
        member: str,
        incarnation: str,
        profile: str,
        *,
        host: str = "simulated",
        boot_id: str = "simulated",
        version: str = UNKNOWN_VERSION,
    ) -> None:
        self.group = group
        self.life = f"{member}@{incarnation}"
        self._encoder = JournalEncoder(group, member, incarnation, profile, host=host, boot_id=boot_id, version=version)
        self._data = bytearray(self._encoder.beginning())

    def write(self, records: Sequence[Record], time_us: int, mono_us: int) -> None:
        """Append one frame with `records`; times in microseconds."""
        if records:
            self._data += self._encoder.frame(records, time_us, mono_us)

    def getvalue(self) -> bytes:
        """The segment so far."""
        return bytes(self._data)

    def save(self, root: Path) -> Path:
        """Write the segment to `root/<group>/<name>@<incarnation>/`, and return that folder."""
        folder = root / self.group / self.life
        folder.mkdir(parents=True, exist_ok=True)
        segment_path(folder, 0).write_bytes(self._data)
        return folder


class JournalWriter:
    """The journal of one life on a disk, in `root/<group>/<member>@<incarnation>/`, locked against other processes.

    An existing journal is continued in a new segment, with the next index. `segment_bytes`: the size after which a new
    segment begins. With `fsync` every write reaches the disk before the call returns. Raises JournalError if the folder
    cannot be used, or if another process holds its lock.
    """

    def __init__(
        self,
        root: Path,
        group: str,
        member: str,
        incarnation: str,
        profile: str,
        *,
        host: str,
        boot_id: str,
        version: str = UNKNOWN_VERSION,
        segment_bytes: int = SEGMENT_BYTES,
        fsync: bool = False,
    ) -> None:
        self.folder = Path(root) / group / f"{member}@{incarnation}"
        self.lost = 0  # records that could not be written
        self._encoder = JournalEncoder(group, member, incarnation, profile, host=host, boot_id=boot_id, version=version)
        self._segment_bytes = segment_bytes
        self._fsync = fsync
        self._failing = False
        self._file = -1
        self._size = 0
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.folder / LOCK_NAME)
        except OSError as error:
            raise JournalError(f"the journal in {self.folder} cannot be opened: {_why(error)}") from error
        try:
            self._segment = _resume(self.folder, self._encoder)
            self._begin_segment()
        except OSError as error:
            os.close(self._lock)
            raise JournalError(f"the journal in {self.folder} cannot be opened: {_why(error)}") from error

    @property
    def next_index(self) -> int:
        """The number of the next record."""
        return self._encoder.index

    def write(self, records: Sequence[Record], time_us: int, mono_us: int) -> None:
        """Append `records` in one frame; when this returns, a kill loses none of them.

        Times in microseconds: the wall clock, the monotonic clock. Raises JournalError when the disk refuses, once for
        each outage; while it lasts, further calls only count in `lost`. ValueError: a record does not fit the schema.
        """
        if not records:
            return
        frame = self._encoder.frame(records, time_us, mono_us)
        try:
            if self._size >= self._segment_bytes:
                self._begin_segment()
            self._append(frame)
        except OSError as error:
            self.lost += len(records)
            if not self._failing:
                self._failing = True
                raise JournalError(f"the journal in {self.folder} cannot be written: {_why(error)}") from error
        else:
            self._failing = False

    def close(self) -> None:
        """Close the file and release the lock. A second call has no effect."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _begin_segment(self) -> None:
        """Begin a new segment. If its start cannot be written, the journal stays unchanged."""
        path = segment_path(self.folder, self._segment)
        beginning = self._encoder.beginning()
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o640)
        try:
            _write_all(file, beginning)
        except OSError:
            os.close(file)
            path.unlink()
            raise
        if self._file >= 0:
            os.close(self._file)
        self._file, self._size = file, len(beginning)
        self._segment += 1

    def _append(self, frame: bytes) -> None:
        """Write all of `frame` or nothing, because a part of a frame would be damage in the middle of a segment."""
        try:
            _write_all(self._file, frame)
            if self._fsync:
                os.fsync(self._file)
        except OSError:
            good, self._size = self._size, self._segment_bytes  # a new segment next, unless the half can be cut off
            os.ftruncate(self._file, good)
            self._size = good
            raise
        self._size += len(frame)


def segment_path(folder: Path, number: int) -> Path:
    """The file of a life's segment `number`, counted from 0."""
    return folder / f"{number:06d}{SEGMENT_SUFFIX}"


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _locked(path: Path) -> int:
    """The open lock file. Raises BlockingIOError if a living process holds the lock."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


def _why(error: OSError) -> str:
    if isinstance(error, BlockingIOError):
        return "another process is writing it"
    return error.strerror or str(error)


def _resume(folder: Path, encoder: JournalEncoder) -> int:
    """Set `encoder` to continue the journal in `folder`. Returns the number of the next segment.

    Only the last readable segment matters: it has the highest index, and its header has the records in force.
    """
    segments = sorted(folder.glob(f"*{SEGMENT_SUFFIX}"))
    for path in reversed(segments):
        seen = False
        for part in walk(path.read_bytes()):
            if isinstance(part, Header):
                encoder.remember(part.in_force)
            elif isinstance(part, Frame) and part.records:
                encoder.index = part.records[-1][1] + 1
                encoder.remember(part.records)
                seen = True
        if seen:
            break
    return int(segments[-1].stem) + 1 if segments else 0
