"""The folder in which members find each other: one for each user and host, or a folder that the user names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from pygroups.core.errors import NotBuilt, UsageError

# The environment has no influence: processes of one user must find each other even if their environments differ.
# Other users may write to /tmp too, so the folder below it is used only if it is a real folder of this user alone.
MEETING_ROOT: Final = Path("/tmp")


class Place(NamedTuple):
    """A folder with one folder for each group."""

    root: Path
    private: bool  # only this user may have access; not required of a folder that the user chose


def default_place() -> Place:
    """The folder of this user on this machine, which does not depend on the environment."""
    return Place(MEETING_ROOT / f"pygroups-{os.geteuid()}", private=True)


def parse_discovery(text: str | None) -> Place:
    """The folder for `discovery`.  Raises UsageError for invalid text, and NotBuilt for other kinds of discovery."""
    if text is None:
        return default_place()
    if not isinstance(text, str):
        raise UsageError(f"discovery {text!r} is not text: write dir:/path/to/folder")
    kind, colon, rest = text.partition(":")
    if kind == "dir" and colon and rest:
        return Place(Path(rest), private=False)
    if kind == "dir":
        raise UsageError(f"discovery {text!r} names no folder: write dir:/path/to/folder")
    raise NotBuilt(f"discovery {text!r} is not built yet: leave it out, or use dir:/path/to/folder")
