"""Writes a member's journal: each call writes one frame, unbuffered, so that kill -9 loses no written record."""

import contextlib
import errno
import fcntl
import logging
import os
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from .ending import LOST, Ending, ending_of
from .errors import JournalError
from .frames import Header, Record, encode_frame, frame_of, rows_of, segment_beginning
from .schema import FIELDS, LOCK_NAME, PREFIX, PRIMARY, SEGMENT_SUFFIX, is_segment

SEGMENT_BYTES: Final = 64 << 20
SEGMENTS_MAX: Final = 1_000_000  # in one incarnation, because the names of the files have 6 digits
RETRY_US: Final = 1_000_000  # time between a failed write and the next try
RESERVE: Final = bytes(4_096)  # content of the lock file: on a full disk its page becomes room for one last record
LOGGER: Final = logging.getLogger("pygroups.journal")
_STAGE_AT: Final = len(PREFIX) + FIELDS["flush"].index("stage")
_DETAIL_AT: Final = len(PREFIX) + FIELDS["flush"].index("detail")
_NEXT_AT: Final = len(PREFIX) + FIELDS["flush"].index("next_number")  # the creator stands behind it
_VIEW_AT: Final = PREFIX.index("view")
UNKNOWN_VERSION: Final = "unknown"  # of the software that writes, for people; a reader goes by the preamble


class JournalEncoder:
    """Encodes records as the bytes of segments, and numbers them. The encoder uses no files."""

    def __init__(
        self,
        group: str,
        member: str,
        incarnation: str,
        profile: str,
        *,
        host: str,
        boot_id: str,
        version: str,
        services: Iterable[str],
    ) -> None:
        self._identity = (group, member, incarnation, profile, version, host, boot_id)
        self._services = sorted(services)
        self._repeats = PRIMARY in self._services
        self._in_force: dict[str, list[Any]] = {}  # the records that a new segment repeats, by kind or stage
        self.index = 0  # number of the next record

    def beginning(self) -> bytes:
        """The preamble and header frame of a new segment."""
        return segment_beginning(Header(*self._identity, in_force=self.in_force, services=self._services))

    def frame(self, records: Sequence[Record], time_us: int, mono_us: int) -> bytes:
        """One frame with `records`. The records use up their numbers even if the frame does not reach a disk."""
        rows = rows_of(records, self.index, time_us, mono_us)
        self.index += len(rows)
        if self._repeats:
            self.remember(rows)
        return frame_of(rows)

    def remember(self, rows: Sequence[list[Any]]) -> None:
        """Store the records in force: the last view, the accepted record that led to it, and the last collect and
        accepted records after it.  A later view that another process installed for this incarnation is an `installed`
        record with a detail."""
        for row in rows:
            stage = row[_STAGE_AT] if row[0] == "flush" else None
            if row[0] == "view":
                self._in_force = {**self._made(row[_VIEW_AT]), "view": row}
            elif stage in ("collect", "accepted"):
                self._in_force[stage] = row
            elif stage == "installed" and row[_DETAIL_AT]:
                before = {kind: old for kind, old in self._in_force.items() if kind == "view"}
                self._in_force = before | self._made(row[_NEXT_AT : _NEXT_AT + 2]) | {stage: row}

    def _made(self, view: Sequence[Any]) -> dict[str, list[Any]]:
        """The accepted record that led to this view."""
        accepted = self._in_force.get("accepted")
        return {} if accepted is None or accepted[_NEXT_AT : _NEXT_AT + 2] != [*view] else {"made": accepted}

    @property
    def in_force(self) -> list[list[Any]]:
        """The records that a new segment repeats, in the order in which they were written."""
        return list(self._in_force.values())


class MemoryJournal:
    """A journal in memory, in one segment, which can be saved to a folder.  The simulator writes many such journals."""

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
        services: Iterable[str] = (),
    ) -> None:
        self.group = group
        self.life = f"{member}@{incarnation}"
        self._encoder = JournalEncoder(
            group, member, incarnation, profile, host=host, boot_id=boot_id, version=version, services=services
        )
        self._data = bytearray(self._encoder.beginning())
        self._outage = False

    def write(self, records: Sequence[Record], time_us: int, mono_us: int) -> None:
        """Append one frame with `records`; times in microseconds."""
        if records:
            self._outage = False
            self._data += self._encoder.frame(records, time_us, mono_us)

    def lose(self, records: Sequence[Record], time_us: int, mono_us: int) -> None:
        """Lose `records` as a full disk does: they use up their numbers, and the first loss leaves a record behind
        it."""
        self._encoder.frame(records, time_us, mono_us)
        if not self._outage:
            self._outage = True
            self._data += self._encoder.frame([loss("simulated")], time_us, mono_us)

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
    """The journal of one member on a disk, in `root/<group>/<member>@<incarnation>/`, locked against other processes.

    `services`: what the member's stack gives (core/services.py); the audit judges what follows from them.
    An existing journal is continued in a new segment, with the next index. `segment_bytes`: the size after which a new
    segment begins. `keep`: the number of segments that stay; each new segment removes the oldest ones beyond it. With
    `fsync` every write reaches the disk before the call returns. With `later` the first segment begins at the first
    write. Raises JournalError if the folder cannot be used, or if another process holds its lock.
    """

    tables: ClassVar[dict[str, str]] = {  # its containers, with the names of their limits: see core/tables.py
        "_encoder._identity": "fixed",
        "_encoder._in_force": "fixed",
        "_encoder._in_force[]": "fixed",
        "_encoder._in_force[][]": "members_max",
        "_encoder._services": "fixed",
        "_kept": "segments",
    }

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
        services: Iterable[str] = (),
        segment_bytes: int = SEGMENT_BYTES,
        keep: int = SEGMENTS_MAX,
        fsync: bool = False,
        later: bool = False,
    ) -> None:
        self.folder = Path(root) / group / f"{member}@{incarnation}"
        self.lost = 0  # records that could not be written
        self._encoder = JournalEncoder(
            group, member, incarnation, profile, host=host, boot_id=boot_id, version=version, services=services
        )
        self._segment_bytes = segment_bytes
        self._keep = keep
        self._fsync = fsync
        self._outage_from: int | None = None  # the value of `lost` at the start of the outage that lasts
        self._retry_at = 0  # time of the next try during an outage, on the monotonic clock
        self._file = -1
        self._size = 0  # of the whole frames
        self._sound = True  # behind them nothing stands, and the file has a name
        try:
            for folder in (self.folder.parent, self.folder):  # their names and files are for this user alone
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _locked(self.folder / LOCK_NAME)
        except OSError as error:
            raise JournalError(f"the journal in {self.folder} cannot be opened: {_why(error)}") from error
        try:
            self._kept = deque(_numbers_in(self.folder))  # the numbers of the segments, the current one last
            found = ending_of(self.folder) if self._kept else Ending()
            self._encoder.index = found.next_index
            self._encoder.remember(found.rows)
            self.continues = found.profile  # the profile of the journal that was there; "": there was none
            self.whole = found.whole  # False: records are missing at the end of that journal
            if later:
                self._sound = False
            else:
                self._begin_segment()
        except OSError as error:
            os.close(self._lock)
            raise JournalError(f"the journal in {self.folder} cannot be opened: {_why(error)}") from error

    @property
    def in_force(self) -> list[list[Any]]:
        """The last view, the accepted record that led to it, and the last collect and accepted records after it."""
        return self._encoder.in_force

    @property
    def next_index(self) -> int:
        """The number of the next record."""
        return self._encoder.index

    def write(self, records: Sequence[Record], time_us: int, mono_us: int) -> None:
        """Append `records` in one frame.  After the return a kill of the process loses none of the records.

        Times in microseconds: the wall clock, the monotonic clock.  Raises JournalError when the disk refuses, once for
        each outage.  During an outage the writer tries again once a second, and counts all other records in `lost`.  A
        record of the loss stands behind the first lost records, if the disk accepts that record.  Otherwise the loss
        would look like the end of the process.  Raises ValueError for a record that does not fit the schema.
        """
        if not records:
            return
        if self._outage_from is not None and mono_us < self._retry_at:
            self._encoder.frame(records, time_us, mono_us)
            self.lost += len(records)
            return
        try:
            try:
                if self._size >= self._segment_bytes or not self._sound:
                    self._begin_segment()  # before the encoder takes the records: its header repeats earlier ones
            finally:
                frame = self._encoder.frame(records, time_us, mono_us)  # also uses up the numbers of lost records
            self._append(frame)
        except OSError as error:
            lost_before, self.lost = self.lost, self.lost + len(records)
            self._retry_at = mono_us + RETRY_US
            if self._outage_from is None:
                self._outage_from = lost_before
                self._record_loss(_why(error), time_us, mono_us)
                raise JournalError(f"the journal in {self.folder} cannot be written: {_why(error)}") from error
        else:
            if self._outage_from is not None:
                self._end_outage(self.lost - self._outage_from)

    def _record_loss(self, why: str, time_us: int, mono_us: int) -> None:
        """Write a record behind the lost ones, so that the hole in the index shows even if no other record follows."""
        frame = encode_frame([loss(why)], self._encoder.index, time_us, mono_us)
        for room in ("in the last page", "in place of the reserve"):
            if not self._sound:
                return
            with contextlib.suppress(OSError):  # the outage itself is reported
                if room == "in place of the reserve":
                    os.ftruncate(self._lock, 0)
                self._append(frame)
                self._encoder.index += 1
                return

    def _end_outage(self, missing: int) -> None:
        LOGGER.warning("the journal in %s is written again; %d records are missing", self.folder, missing)
        self._outage_from = None
        with contextlib.suppress(OSError):  # the disk has hardly any room: the end of the next outage tries again
            os.pwrite(self._lock, RESERVE, 0)

    def close(self) -> None:
        """Close the file and release the lock. A second call has no effect."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _begin_segment(self) -> None:
        """Begin a new segment, then remove the old segments beyond `keep`. If the start of the new segment cannot be
        written, the journal stays unchanged."""
        number = self._kept[-1] + 1 if self._kept else 0
        if number >= SEGMENTS_MAX:
            raise OSError(
                errno.EFBIG, f"the journal has used all {SEGMENTS_MAX:,} segment numbers: restart the process"
            )
        path = segment_path(self.folder, number)
        beginning = self._encoder.beginning()
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o640)
        try:
            _write_all(file, beginning)
            if self._fsync:
                os.fsync(file)
                _sync_folder(self.folder)
        except OSError:
            os.close(file)
            with contextlib.suppress(FileNotFoundError):  # another program has removed it
                path.unlink()
            raise
        before, self._file, self._size, self._sound = self._file, file, len(beginning), True
        self._kept.append(number)
        if before >= 0:
            os.close(before)
        self._remove_old()

    def _remove_old(self) -> None:
        while len(self._kept) > self._keep:
            path = segment_path(self.folder, self._kept[0])
            try:
                path.unlink(missing_ok=True)
            except OSError as error:  # no record is lost; the next new segment tries again
                LOGGER.warning("the old segment %s of a journal cannot be removed: %s", path, _why(error))
                return
            self._kept.popleft()

    def _append(self, frame: bytes) -> None:
        """Write all of `frame` or nothing, because a part of a frame would be damage in the middle of a segment.

        If the write fails and leaves the segment in doubt, the next write begins a new segment.
        """
        if os.fstat(self._file).st_nlink == 0:  # the system takes writes to a removed file, and keeps none of them
            self._sound = False
            raise FileNotFoundError(errno.ENOENT, f"{segment_path(self.folder, self._kept[-1]).name} was removed")
        try:
            _write_all(self._file, frame)
            if self._fsync:
                os.fsync(self._file)
        except OSError:
            self._sound = False
            with contextlib.suppress(OSError):  # the first error is the one to report
                os.ftruncate(self._file, self._size)
                self._sound = True
            raise
        self._size += len(frame)


def is_free(folder: Path) -> bool:
    """Whether no process holds the lock of the incarnation in `folder`, so that the incarnation has ended."""
    try:
        os.close(_locked(folder / LOCK_NAME))
    except OSError:
        return False
    return True


def loss(why: str) -> Record:
    """The record that stands behind lost records."""
    return ("drop", None, {"reason": LOST, "detail": why})


def segment_path(folder: Path, number: int) -> Path:
    """The file of a member's segment `number`, counted from 0."""
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
        os.pwrite(lock, RESERVE, 0)
    except OSError:
        os.close(lock)
        raise
    return lock


def _why(error: OSError) -> str:
    if isinstance(error, BlockingIOError):
        return "another process writes this journal"
    return error.strerror or str(error)


def _sync_folder(folder: Path) -> None:
    """Make the names of new files in `folder` survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _numbers_in(folder: Path) -> list[int]:
    """The numbers of the segments in `folder`, ascending."""
    return sorted(int(path.stem) for path in folder.iterdir() if is_segment(path.name))
