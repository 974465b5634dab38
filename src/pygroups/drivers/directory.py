"""Members of one machine find each other in a folder; the kernel says which of them live, and who may found a group.

Each process has an entry there, a file named after its address, and holds a lock on it for life: an entry whose lock
is free is a dead one's, and is removed.  Whoever holds the group's lock may found it if there is no member; it keeps
the lock until it has announced itself.  So processes that start at the same moment end in one group.
Note: docs/decisions/0041.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from pygroups.core.address import Address, parse_address
from pygroups.core.errors import NotBuilt, UsageError
from pygroups.core.events import Event, Found
from pygroups.core.limits import SECOND, TEXT_MAX, Config

from .forks import watched

ENTRY_MAX: Final = 1_024  # bytes of an entry; what is longer was not written by us
LOCK_NAME: Final = "lock"  # no entry can have this name: there is no @ in it
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class Entry(msgspec.Struct):
    """What a process says of itself."""

    member: bool
    contact: Annotated[str, Meta(max_length=TEXT_MAX)]
    invited: bool = False  # a group is taking it in: it may be a member before it says so


class Place(NamedTuple):
    """A folder under which groups have theirs."""

    root: Path
    private: bool  # it must be this user's alone; not asked of a folder that the user chose


def parse_discovery(text: str | None) -> Place:
    """Where to look for others; UsageError for what cannot be read, NotBuilt for other ways than a folder."""
    if text is None:
        return default_place()
    kind, colon, rest = text.partition(":")
    if kind == "dir" and colon and rest:
        return Place(Path(rest), private=False)
    if kind == "dir":
        raise UsageError(f"discovery {text!r} names no folder: write dir:/path/to/folder")
    raise NotBuilt(f"discovery {text!r} is not built yet: leave it out, or use dir:/path/to/folder")


def default_place() -> Place:
    """A folder of this user alone, on this machine."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    usable = bool(runtime) and Path(runtime).is_absolute() and os.access(runtime, os.W_OK | os.X_OK)
    return Place(Path(runtime if usable else tempfile.gettempdir()) / f"pygroups-{os.geteuid()}", private=True)


class Directory:
    """One process's place in the folder of its group.  `happened` is called with Found."""

    def __init__(self, place: Place, group: str, me: Address, config: Config) -> None:
        self.place = place
        self.folder = place.root / group
        self.me = me
        self.config = config
        self.invitation_s = 4 * config.flush_timeout / SECOND  # so long is an invitation believed; it says so anew
        self.happened: Callable[[Event], None]
        self.count: Callable[[str], None]
        self.path = self.folder / str(me)
        self.entry = -1  # the open entry, with its lock
        self.founding = -1  # the group's lock, while this process holds it
        self.said = Entry(member=False, contact="")
        self.retry: asyncio.TimerHandle | None = None
        watched(self)

    def open(self, contact: str) -> None:
        """Write the entry.  UsageError when the folder cannot be used, or belongs to somebody else."""
        self.said = Entry(member=False, contact=contact)
        try:
            self._write_entry()
        except OSError as error:
            why = error.strerror or str(error)
            raise UsageError(f"members cannot find each other in {self.folder}: {why}") from error

    def close(self) -> None:
        """Be found no more."""
        if self.retry is not None:
            self.retry.cancel()
            self.retry = None
        self._may_found_no_more()
        self.said = Entry(member=False, contact="")
        if self.entry >= 0:
            with contextlib.suppress(OSError):  # whatever became of the folder, the rest of the member must close
                self.path.unlink()
            os.close(self.entry)
            self.entry = -1

    def forked(self) -> None:
        """In a child the entry and the locks are the parent's: let go of the copies, and remove nothing."""
        for file in (self.entry, self.founding):
            if file >= 0:
                os.close(file)
        self.entry = self.founding = -1
        self.said = Entry(member=False, contact="")

    # -- the own entry

    def announce(self, member: bool, invited: bool = False) -> None:
        """Say whether this process is a member now, or is being taken in.

        Whoever was to found the group lets go of its lock by it.
        """
        self.said.member, self.said.invited = member, invited
        if self.entry < 0:
            return  # refresh() will say it
        os.pwrite(self.entry, self._text(), 0)
        self._may_found_no_more()

    def refresh(self) -> None:
        """Keep the entry young, so that nobody tidies it away; write it anew if somebody did."""
        if not self.said.contact:
            return
        if self.entry >= 0 and self.path.exists():
            os.utime(self.entry)
            return
        if self.entry >= 0:
            os.close(self.entry)
            self.entry = -1
        try:
            self._write_entry()
        except OSError:
            self.count("directory entries that could not be written anew")

    def _write_entry(self) -> None:
        """Locked before it has its name: nobody sees a living process's entry without a lock."""
        if self.place.private:
            _own_folder(self.place.root)
        with contextlib.suppress(FileExistsError):
            self.place.root.mkdir(0o700, parents=True)
        _own_folder(self.folder)
        nameless = self.folder / f".{self.me}"
        self.entry = _made_and_locked(nameless)
        os.write(self.entry, self._text())
        nameless.rename(self.path)

    def _text(self) -> bytes:
        """Of the same length for members and others, so that one write replaces all of it."""
        longest = msgspec.json.encode(Entry(member=False, contact=self.said.contact))
        return msgspec.json.encode(self.said).ljust(len(longest))

    # -- the others

    def find(self) -> None:
        """Look who is there; Found follows, at once or when it is clear who founds the group."""
        if self.retry is not None:
            self.retry.cancel()
            self.retry = None
        self.refresh()
        members, invited = self._others()
        if members:
            self._may_found_no_more()
            self.happened(Found(members, False))
        elif not invited and self._may_found():
            members, invited = self._others()  # somebody may have founded it since
            if members or invited:
                self._may_found_no_more()
            self.happened(Found(members, not members and not invited))
        else:
            loop = asyncio.get_running_loop()
            self.retry = loop.call_later(self.config.lock_retry / SECOND, self.find)

    def members(self) -> dict[Address, str]:
        """The living members of the group and where each listens, by address; removes what the dead left."""
        return self._others()[0]

    def _others(self) -> tuple[dict[Address, str], bool]:
        """The other members; and whether a group is taking somebody in who does not say yet that it is one."""
        found, invited = {}, False
        for name in sorted(os.listdir(self.folder)):
            address = _address(name)
            if address is None or address == self.me:
                continue
            entry = self._living(name)
            if entry is not None and entry.member:
                found[address] = entry.contact
            elif entry is not None:
                invited = invited or entry.invited
        return found, invited

    def _living(self, name: str) -> Entry | None:
        try:
            file = os.open(self.folder / name, os.O_RDONLY | os.O_NONBLOCK | _FLAGS)
        except OSError:  # it has just gone, or is a link
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            entry = _entry(os.read(file, ENTRY_MAX))
            if entry is not None and entry.invited and time.time() - os.fstat(file).st_mtime > self.invitation_s:
                entry.invited = False  # its process stands still: the others do not wait for it
            return entry
        else:
            (self.folder / name).unlink(missing_ok=True)
            return None
        finally:
            os.close(file)

    # -- founding

    def _may_found(self) -> bool:
        if self.founding >= 0:
            return True
        lock = os.open(self.folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self.founding = lock
        return True

    def _may_found_no_more(self) -> None:
        if self.founding >= 0:
            os.close(self.founding)
            self.founding = -1


def _own_folder(path: Path) -> None:
    """Make `path` if it is not there; OSError when it is a link, another user's, or open to others."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "it is no folder")
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f"{path} belongs to another user")
    if found.st_mode & _OTHERS:
        raise PermissionError(errno.EPERM, f"other users may use {path}; chmod 700 closes it")


def _made_and_locked(path: Path) -> int:
    """A new open file of this name, and its lock.

    Whoever sees it before it is locked takes it for a dead one's, holds it for a moment, and removes it: then another
    one is made.  Nobody is waited for, because whoever holds it may have been stopped just then.
    """
    while True:
        path.unlink(missing_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file).st_nlink:
                return file
        os.close(file)


def _address(name: str) -> Address | None:
    try:
        return parse_address(name)
    except UsageError:
        return None


def _entry(text: bytes) -> Entry | None:
    try:
        return msgspec.json.decode(text, type=Entry)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
