"""What a group agrees on: its members in rank order, under an id that is used once."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from .address import Address


class Ballot(NamedTuple):
    """One attempt to change a view: above every number its leader has heard of; compared as a pair."""

    number: int
    leader: Address

    def __str__(self) -> str:
        return f"{self.number}:{self.leader}"


ViewId = Ballot  # a view's id is the ballot under which it was first proposed, so no two proposals share one


class View(msgspec.Struct, frozen=True, array_like=True):
    """The members, those who stayed first in their old order, then the joiners.  The first one coordinates."""

    id: ViewId
    members: tuple[Address, ...]
    contacts: tuple[str, ...]  # where each member listens, in the same order

    @property
    def coordinator(self) -> Address:
        return self.members[0]

    def contact(self, member: Address) -> str:
        """Where `member` listens: "host:port" on sockets, a name in the simulator."""
        return self.contacts[self.members.index(member)]
