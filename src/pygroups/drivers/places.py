"""Where groups have their folders: one place for each user and host, or a folder that the user names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from pygroups.core.errors import NotBuilt, UsageError

# No part of the environment is asked: processes of one user whose environments differ must find each other.
# Others may write here too, so what lies below is used only if it is a real folder of this user alone.
MEETING_ROOT: Final = Path("/tmp")


class Place(NamedTuple):
    """A folder under which groups have theirs."""

    root: Path
    private: bool  # it must be this user's alone; not asked of a folder that the user chose


def default_place() -> Place:
    """The folder of this user on this machine, whatever the environment says."""
    return Place(MEETING_ROOT / f"pygroups-{os.geteuid()}", private=True)


def parse_discovery(text: str | None) -> Place:
    """Where to look for others; UsageError for what cannot be read, NotBuilt for other ways than a folder."""
    if text is None:
        return default_place()
    if not isinstance(text, str):
        raise UsageError(f"discovery {text!r} is no text: write dir:/path/to/folder")
    kind, colon, rest = text.partition(":")
    if kind == "dir" and colon and rest:
        return Place(Path(rest), private=False)
    if kind == "dir":
        raise UsageError(f"discovery {text!r} names no folder: write dir:/path/to/folder")
    raise NotBuilt(f"discovery {text!r} is not built yet: leave it out, or use dir:/path/to/folder")
