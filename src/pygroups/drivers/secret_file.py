"""The file of a group's secret: checked as ssh checks its keys, and read again when it has changed."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final

from pygroups.core.errors import UsageError
from pygroups.core.tables import Tables, under
from pygroups.wire.ring import RING_MAX, Ring, Secret, parse_ring

from .rate_limited import RateLimitedLog

LOGGER: Final = logging.getLogger("pygroups.drivers.secret")
LOOK_PAUSE: Final = 1.0  # seconds between two looks that unknown epochs cause
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class SecretFile:
    """Keeps a Secret equal to its file.  A file that cannot be used changes nothing, and is logged.

    `now`: the time in seconds.
    """

    tables: ClassVar[Tables] = {"seen": "fixed", **under("warn", RateLimitedLog.tables)}

    def __init__(self, path: Path, now: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.now = now
        self.secret = Secret(read_ring(path))
        self.secret.look = self.look_soon
        self.seen = _state(path)
        self.looked_at = -LOOK_PAUSE
        self.warn = RateLimitedLog(LOGGER)

    def look_soon(self) -> None:
        """Look at the file, at most once in LOOK_PAUSE."""
        if self.now() - self.looked_at >= LOOK_PAUSE:
            self.look()

    def look(self) -> bool:
        """Read the file again if it has changed.  Returns whether the keys have changed."""
        self.looked_at = self.now()
        if _state(self.path) == self.seen:
            return False
        try:
            return self.read()
        except UsageError as error:
            self.warn.warning(str(error), "the keys stay as they are: %s", error)
            return False

    def read(self) -> bool:
        """Read the file again.  Returns whether the keys have changed.  Raises UsageError if the file cannot be
        used."""
        self.seen = _state(self.path)
        changed = self.secret.replace(read_ring(self.path))
        if changed:
            LOGGER.info("the keys of %s have changed: %r", self.path, self.secret.ring)
        return changed

    def __repr__(self) -> str:
        return f"<SecretFile {str(self.path)!r}: {self.secret.ring!r}>"


def read_ring(path: Path) -> Ring:
    """The ring in the file at `path`.  Raises UsageError if the file is missing or malformed, or if other users have
    access to it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise UsageError(f"the secret {str(path)!r} cannot be read: {error.strerror or error}") from error
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(f"the secret {str(path)!r} is not a file")
        shut = _OTHERS if found.st_uid == os.geteuid() else stat.S_IRWXO  # another owner may give it to a group
        if found.st_mode & shut:
            raise UsageError(f"other users have access to the secret {str(path)!r}: run chmod 600 {path}")
        text = os.read(file, RING_MAX).decode()
    except UnicodeDecodeError:
        raise UsageError(f"the secret {str(path)!r} is not text: `pygroups secret new FILE` makes one") from None
    finally:
        os.close(file)
    return parse_ring(text, f"the secret {str(path)!r}")


def _state(path: Path) -> tuple[int, int, int, int] | None:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns
    return None
