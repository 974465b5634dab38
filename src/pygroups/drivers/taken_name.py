"""A name for a process that is given none, where a majority decides each view: that of a process that has crashed.

The workers of a web server are started alike, so a program cannot name them.  With the name of a crashed worker, and
the same folder for the journal, a new worker answers for the former incarnation (former_life.py).  A name is a file in
the folder of the group, which its process locks.  Note: docs/drivers.md.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pygroups.core.address import NAME

from .discovery.entries import is_at
from .forks import watched

SUFFIX: Final = ".name"
LOCK: Final = "names.lock"  # of the folder, while a process chooses
ATTEMPTS: Final = 100  # to get that lock; a process that has it for longer is stopped
PAUSE_S: Final = 0.02


class TakenName:
    """The name of this process, which no other process of the folder takes before its end."""

    def __init__(self, path: Path, file: int) -> None:
        self.name = path.stem
        self._path = path
        self._file: int | None = file
        watched(self)

    def release(self, *, left: bool) -> None:
        """Another process may take the name, unless this one has left its group in an orderly way: then nobody has to
        answer for it.  A second call has no effect."""
        if self._file is not None and left:
            with suppress(OSError):  # the folder is gone
                self._path.unlink()
        self.forked()

    def forked(self) -> None:
        """Close the lock, in a forked child its copy."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def take_name(folder: Path, another: Callable[[], str]) -> TakenName:
    """Take the name of a crashed process in `folder`, or a new one from `another`.

    If no process with such a name lives, the group has ended: all names are forgotten, because the new processes begin
    a new group and may be fewer.  Raises OSError if the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _alone_in(folder) as is_alone:
        known = [path for path in sorted(folder.glob(f"*{SUFFIX}")) if NAME.fullmatch(path.stem)]
        free = [taken for path in known if is_alone and (taken := _taken(path)) is not None]
        found = free.pop(0) if 0 < len(free) < len(known) else None
        for name in free:
            name.release(left=found is None)
        return found or _new(folder, another)


def _new(folder: Path, another: Callable[[], str]) -> TakenName:
    name = another()
    while (taken := _taken(folder / f"{name}{SUFFIX}")) is None:  # a living process took it from an earlier one
        name = f"{another()}-{secrets.token_hex(3)}"
    return taken


def _taken(path: Path) -> TakenName | None:
    """None if a living process has the name, or if its process has left at this moment."""
    file = _locked(path)
    if file is not None and not is_at(file, path):
        os.close(file)
        file = None
    return None if file is None else TakenName(path, file)


@contextmanager
def _alone_in(folder: Path) -> Iterator[bool]:
    """Whether no other process chooses a name in the folder meanwhile."""
    for _ in range(ATTEMPTS):
        if (file := _locked(folder / LOCK)) is not None:
            try:
                yield True
            finally:
                os.close(file)
            return
        time.sleep(PAUSE_S)
    yield False


def _locked(path: Path) -> int | None:
    """The open and locked file, or None if another process has locked it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(file)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return file
