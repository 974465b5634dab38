"""The members that are in no further view, beside those that leave and those that are suspected."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.tables import Tables


class Outgoing:
    """Members of one view: excluded by policy, vouched for by an operator, or answered for by another process.  Only a
    group in which a majority decides has members of the last two kinds."""

    tables: ClassVar[Tables] = {
        "doubted": "members",
        "expelled": "members",
        "spoken_for": "members",
        "vouched": "members",
    }

    def __init__(self) -> None:
        self.expelled: dict[Address, str] = {}  # to be excluded by policy, and why
        self.doubted: dict[Address, str] = {}  # the same for members that are excluded only if they are silent
        self.vouched: dict[Address, None] = {}  # an operator vouches for their end
        self.spoken_for: dict[Address, Address] = {}  # have ended, and the processes that answer for them

    # -- questions

    def may_be_excluded(self, members: Iterable[Address]) -> bool:
        """Whether all of `members` are to be excluded by policy, at least if they are silent."""
        return all(member in self.expelled or member in self.doubted for member in members)

    def by_policy(self, heard: Container[Address]) -> dict[Address, str]:
        """The members that the next view excludes by policy if only the members in `heard` answered, and why."""
        silent = {member: why for member, why in self.doubted.items() if member not in heard}
        return {**silent, **self.expelled}

    # -- changes

    def expel(self, member: Address, why: str, *, if_silent: bool) -> None:
        """Exclude `member`, with `if_silent` only if it is silent.  The first reason counts."""
        (self.doubted if if_silent else self.expelled).setdefault(member, why)

    def answered(self, member: Address) -> None:
        """`member` answered: it is not silent."""
        self.doubted.pop(member, None)

    def vouch(self, member: Address) -> None:
        """An operator vouches that `member` has ended for good."""
        self.vouched[member] = None

    def speak(self, speaker: Address, former: Address) -> None:
        """From now on `speaker` answers for `former`, which has ended."""
        self.spoken_for[former] = speaker

    def stop_speaking(self, former: Address) -> None:
        """The process that answers for `former` may have ended; else it offers its answers again."""
        self.spoken_for.pop(former, None)

    def keep(self, members: Container[Address]) -> None:
        """A new view: forget former members, and the exclusions by policy."""
        self.expelled, self.doubted = {}, {}
        self.vouched = {member: None for member in self.vouched if member in members}
        self.spoken_for = {one: by for one, by in self.spoken_for.items() if one in members}
