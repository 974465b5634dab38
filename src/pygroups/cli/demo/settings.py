"""The settings of a demo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .feeds import Feed


class DemoSettings(NamedTuple):
    """The settings of a demo, from the command line."""

    feeds: Sequence[Feed]
    out: Path
    members: int
    seed: int
    kill: bool
    audit: bool
    profile: str = "total"

    def names(self) -> list[str]:
        """The members' names: A, B, C ..."""
        return [chr(ord("A") + number) for number in range(self.members)]
