"""The addresses of members in a file, so that a process that starts again finds members where they were before.

The file has the contacts of the members of the last views, with the times when they were last in a view.  An address
that is outdated costs one question that is refused or stays without an answer.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from pygroups.core.errors import UNDECODABLE, UsageError
from pygroups.core.limits import TEXT_MAX

from ..contacts import Contact, parse_contact
from .entries import own_folder

REMEMBERED_MAX: Final = 64  # addresses; the oldest are forgotten
AGE_MAX: Final = 7 * 24 * 3_600  # seconds after which an address is forgotten
FILE_MAX: Final = 64 << 10  # bytes; pygroups writes no longer ones
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH

Times = dict[Annotated[str, Meta(max_length=TEXT_MAX)], float]


class Remembered:
    """The addresses that one group had, in the file `<folder>/<group>.json`."""

    def __init__(self, folder: Path, group: str) -> None:
        self.folder = folder
        self.path = folder / f"{group}.json"

    def open(self) -> list[Contact]:
        """The addresses.  Raises UsageError if the folder cannot be used."""
        try:
            with contextlib.suppress(FileExistsError):
                self.folder.mkdir(0o700, parents=True)
            own_folder(self.folder)
        except OSError as error:
            raise UsageError(
                f"addresses of members cannot be kept in {self.folder}: {error.strerror or error}; "
                "give another folder in discovery='cache:/path'"
            ) from error
        return [contact for text in self._read() if (contact := _contact(text)) is not None]

    def _read(self) -> Times:
        """The addresses of the file, the newest first.  A file that is missing or invalid has none."""
        try:
            file = os.open(self.path, os.O_RDONLY | _FLAGS)
        except OSError:
            return {}
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _WRITABLE_BY_OTHERS:
                return {}
            return _newest(times_in(os.read(file, FILE_MAX)))
        except OSError:
            return {}
        finally:
            os.close(file)

    def write(self, contacts: Iterable[str]) -> None:
        """Note that these contacts are in the view now.  Raises OSError."""
        now = time.time()
        times = _newest({**self._read(), **dict.fromkeys(contacts, now)})
        new = self.folder / f".{self.path.name}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            new.unlink()
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
        try:
            os.write(file, msgspec.json.encode(times))
        finally:
            os.close(file)
        new.rename(self.path)


def times_in(data: bytes) -> Times:
    """The addresses in the bytes of a file, each with the time at which it was in a view; none if they are invalid."""
    try:
        return msgspec.json.decode(data, type=Times)
    except UNDECODABLE:
        return {}


def _newest(times: Times) -> Times:
    oldest = time.time() - AGE_MAX
    fresh = sorted([entry for entry in times.items() if entry[1] > oldest], key=lambda entry: (-entry[1], entry[0]))
    return dict(fresh[:REMEMBERED_MAX])


def _contact(text: str) -> Contact | None:
    try:
        return parse_contact(text)
    except UsageError:
        return None
