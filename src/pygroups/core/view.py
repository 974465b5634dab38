"""A view: the members of a group in rank order, under an id that is used only once."""

from __future__ import annotations

from collections.abc import Container
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from .address import Address
from .limits import MEMBERS_MAX, TEXT_MAX

Contact = Annotated[str, Meta(max_length=TEXT_MAX)]
HISTORY_DIGITS: Final = 16  # of the id of a history


Number = Annotated[int, Meta(ge=0, le=1 << 62)]


class Ballot(NamedTuple):
    """The id of one attempt to change a view.  The number of a ballot is above every number that its leader knows.

    Ballots are compared as pairs.
    """

    number: Number
    leader: Address

    def __str__(self) -> str:
        return f"{self.number}:{self.leader}"

    def __repr__(self) -> str:
        return f"Ballot({self})"


class ViewId(NamedTuple):
    """The id of a view: the number and the leader of the ballot under which the view was first proposed.

    So no two proposals share an id.  Ids are compared as pairs.  At each member a later view has a higher id.
    """

    number: Number
    leader: Address

    @classmethod
    def of(cls, ballot: Ballot) -> ViewId:
        """The id of the view that is first proposed under `ballot`."""
        return cls(*ballot)

    def __str__(self) -> str:
        return f"{self.number}:{self.leader}"

    def __repr__(self) -> str:
        return f"ViewId({self})"


UNBORN: Final = ViewId(0, Address("-", "0"))  # stands for the view before the first one of a group


class MergeId(NamedTuple):
    """The id of one try to merge views: a counter of its leader, and the leader.  See layers/merge2/layer.py."""

    number: Number
    leader: Address

    def __str__(self) -> str:
        return f"{self.number}:{self.leader}"

    def __repr__(self) -> str:
        return f"MergeId({self})"


class AgreedView(msgspec.Struct, frozen=True, array_like=True):
    """The members: first the remaining members in their old order, then the joiners.  The first member coordinates."""

    id: ViewId
    members: Annotated[tuple[Address, ...], Meta(min_length=1, max_length=MEMBERS_MAX)]
    contacts: Annotated[tuple[Contact, ...], Meta(max_length=MEMBERS_MAX)]  # where each listens, in the same order
    history: Annotated[str, Meta(max_length=HISTORY_DIGITS)] = ""  # where a majority decides: drawn for the first view
    since: Annotated[tuple[Number, ...], Meta(max_length=MEMBERS_MAX)] = ()  # the number of the view with which each
    # joined, in the same order; () of a view whose members all founded the group

    def __post_init__(self) -> None:
        """Raise ValueError for an impossible view; a decoder reports the error as malformed data."""
        if len(self.contacts) != len(self.members):
            raise ValueError("a view needs one contact for each member")
        if len(dict.fromkeys(self.members)) != len(self.members):
            raise ValueError("a member is in the view twice")
        if self.since and len(self.since) != len(self.members):
            raise ValueError("a view needs the number of one join for each member")

    @property
    def coordinator(self) -> Address:
        return self.members[0]

    def contact(self, member: Address) -> str:
        """The contact of `member`: "host:port" on sockets, a name in the simulator."""
        return self.contacts[self.members.index(member)]

    def without(self, left: Container[object]) -> AgreedView | None:
        """The same view with only its members that are not in `left`; None if it has no such member."""
        kept = [rank for rank, member in enumerate(self.members) if member not in left]
        if len(kept) in (0, len(self.members)):
            return self if kept else None
        members = tuple([self.members[rank] for rank in kept])
        contacts = tuple([self.contacts[rank] for rank in kept])
        since = tuple([self.since[rank] for rank in kept]) if self.since else ()
        return AgreedView(self.id, members, contacts, self.history, since)

    def joined(self, member: Address) -> int:
        """The number of the view with which `member` joined: its first view, or an earlier one of the group that it
        founded."""
        return self.since[self.members.index(member)] if self.since else 0


Merged = dict[Address, tuple[int, int]]  # per origin, its highest mark in a merge, and the subgroup that has this mark


class Lack(NamedTuple):
    """Members of a merged view that announced the messages [low, high) of an origin as a gap, or joined after them."""

    low: int
    high: int
    members: tuple[Address, ...]


Lacks = dict[Address, tuple[Lack, ...]]  # per origin


class Subgroup(msgspec.Struct, frozen=True):
    """The members of a merged view that come from one earlier view."""

    view: ViewId  # the earlier one
    members: tuple[Address, ...]
    marks: dict[
        Address, int
    ] = {}  # at the end of the earlier view; only if a member of the merged view waits for a state or takes one
