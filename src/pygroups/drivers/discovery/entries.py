"""The files in a group's folder: one entry for each process, with a lock that the kernel keeps until the process
ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from pygroups.core.address import Address, parse_address
from pygroups.core.errors import UNDECODABLE, UsageError
from pygroups.core.limits import TEXT_MAX

from ..handshake import Unopened, plain_entry

ENTRY_MAX: Final = 1_024  # bytes of an entry; pygroups writes no longer ones
LOCK_NAME: Final = "lock"  # no entry has this name, because the name of an entry contains @
NO_ENTRY: Final = (errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EACCES)  # removed, a link, a socket, not readable
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class Entry(msgspec.Struct):
    """The entry of a process: the facts that it publishes."""

    member: bool
    contact: Annotated[str, Meta(max_length=TEXT_MAX)]
    invited: bool = False  # a group is admitting the process, which may be a member before it announces this
    transport: str = "tcp"  # members with different transports cannot reach each other


UNOPENED: Final = Entry(member=False, contact="")
"""The entry of a living process that has another secret, or that only one of the two processes has."""


def text_of(entry: Entry) -> bytes:
    """The text of an entry.  The text has the same length for members and others, so that one write replaces the whole
    text."""
    longest = msgspec.json.encode(Entry(member=False, contact=entry.contact, transport=entry.transport))
    return msgspec.json.encode(entry).ljust(len(longest))


def address_of(name: str) -> Address | None:
    """The address of the process whose entry has this name; None for other files."""
    try:
        return parse_address(name)
    except UsageError:
        return None


def written(folder: Path, me: Address, text: bytes) -> int:
    """The open file of a new entry.  The file is locked before it gets its name, so no process sees the file without a
    lock."""
    nameless = folder / f".{me}"
    file = _made_and_locked(nameless)
    try:
        os.write(file, text)
        nameless.rename(folder / str(me))
    except OSError:
        os.close(file)
        raise
    return file


Opening = Callable[[bytes, Address], bytes | memoryview]  # the text in an entry of this process; raises Unopened


def living(path: Path, invitation_s: float, opened: Opening = plain_entry) -> Entry | None:
    """The entry at `path` if its process lives; otherwise the entry is removed.  UNOPENED: `opened` cannot open it.

    An invitation older than `invitation_s` does not count, because its process is stopped.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _FLAGS)
    except OSError as error:
        if error.errno in NO_ENTRY:
            return None
        raise  # the process may live, although its entry cannot be read now
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        entry = _entry(os.read(file, ENTRY_MAX), path.name, opened)
        if entry is not None and entry.invited and time.time() - os.fstat(file).st_mtime > invitation_s:
            entry.invited = False
        return entry
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return None
    finally:
        os.close(file)


def is_at(file: int, path: Path) -> bool:
    """Whether the open `file` is the file at `path`."""
    try:
        there = path.lstat()
    except OSError:
        return False
    return os.path.samestat(there, os.fstat(file))


def founders_lock(folder: Path) -> int | None:
    """The open lock file of the group, or None while another process holds it."""
    path = folder / LOCK_NAME
    lock = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_at(lock, path):  # otherwise it was removed before the lock, and another process may hold a new one
            return lock
    except BlockingIOError:
        pass
    except OSError:
        os.close(lock)
        raise
    os.close(lock)
    return None


def remove_empty_group(folder: Path) -> None:
    """Remove the folder of a group in which only the lock file is left.  Raises OSError if the folder cannot be
    removed.

    The lock file is removed under its own lock, so no founder holds it.  A process that opened the file before finds
    that the file has lost its name, and makes a new one.  The folder stays if a process has written an entry meanwhile.
    """
    lock = founders_lock(folder)
    if lock is None:
        return
    try:
        if os.listdir(folder) == [LOCK_NAME]:
            (folder / LOCK_NAME).unlink()
            folder.rmdir()
    finally:
        os.close(lock)


def own_folder(path: Path) -> None:
    """Make the folder `path` if it is missing.  Raises OSError if the path is a link, or if another user has access."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, f"{path} is not a folder")
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f"{path} belongs to another user")
    if found.st_mode & _OTHERS:
        raise PermissionError(errno.EPERM, f"other users have access to {path}: run chmod 700 {path}")


def _made_and_locked(path: Path) -> int:
    """A new open and locked file with this name.

    A process that sees the file before it is locked takes it for the file of an ended process, locks it and removes it.
    Then this function makes another file.  This function does not wait for the other process, which may be stopped.
    """
    while True:
        path.unlink(missing_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file).st_nlink:
                return file
        os.close(file)


def _entry(data: bytes, name: str, opened: Opening) -> Entry | None:
    address = address_of(name)
    try:
        return None if address is None else msgspec.json.decode(opened(data, address), type=Entry)
    except Unopened:
        return UNOPENED
    except UNDECODABLE:
        return None
