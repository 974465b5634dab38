"""A proposal: the next view, and the earlier views that end with it.

On the wire a proposal is its difference to the earlier views (`heads.Difference`).  All members of a view have the same
list of its members, so a member that goes on gets the ranks of the members that go and the addresses of the joiners.  A
process in no earlier view gets the earlier views in full.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import msgspec

from pygroups.core.address import Address
from pygroups.core.errors import UNDECODABLE
from pygroups.core.events import Marks, NewView, Positions
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.standing import Standing
from pygroups.core.tables import Tables, under
from pygroups.core.view import UNBORN, AgreedView, Ballot, Lack, Lacks, Subgroup, ViewId

from ..heads import DECIDED, Difference, SideEnd
from .electors import Electorate


class Side(msgspec.Struct):
    """An earlier view that ends with a view change, and the members that come from it."""

    view: AgreedView
    members: tuple[Address, ...]  # the members that go on from the view, in its order
    cut: Positions  # per stream of the earlier view, the end of the runs that all of them hand up
    holders: dict[Address, Address]  # per stream, one that holds the cut
    marks: Marks = {}  # of a merge, at the cut; only if a member waits for a state or takes one

    @property
    def old(self) -> ViewId:
        """The id of the earlier view."""
        return self.view.id


class Proposal(msgspec.Struct):
    """The next view, and the sides that it comes from: one in a view change, several in a merge."""

    tables: ClassVar[Tables] = {**DECIDED, "sides[].members": "members_max"}

    ballot: Ballot  # under which it is to be accepted
    view: AgreedView
    sides: tuple[Side, ...]
    electors: tuple[Electorate, ...]  # that the view carries; () if it is primary
    standings: dict[Address, Standing] = {}  # of the members that go on
    expelled: dict[Address, str] = {}  # the members excluded by policy, each with the reason
    digest: dict[Address, tuple[int, int]] = {}  # of a merge: per origin the highest mark, and the index of its side
    lacks: Lacks | None = {}  # of a merge: the members that never deliver some messages; None: too many to tell
    winner: int | None = None  # of a merge: the side whose state all members take; None: each keeps its state

    def side_of(self, old: ViewId) -> Side | None:
        """The side that comes from the view `old`."""
        return next((side for side in self.sides if side.old == old), None)

    @property
    def primary(self) -> bool:
        """Whether the view is primary: see electors.py."""
        return not self.electors

    @property
    def founds(self) -> bool:
        """Whether it is the first view of its group."""
        return self.sides[0].old == UNBORN

    @property
    def merges(self) -> bool:
        """Whether several earlier views become one."""
        return len(self.sides) > 1

    @property
    def going_on(self) -> tuple[Address, ...]:
        """The members that go on from an earlier view.  The other members of the next view are joiners."""
        return tuple(member for side in self.sides for member in side.members)


class Installation(msgspec.Struct):
    """A decided proposal, and for joiners, where each origin starts; None as long as that is not known."""

    tables: ClassVar[Tables] = {
        "starts": "marks",
        **under("proposal", Proposal.tables),
    }

    proposal: Proposal
    starts: Marks | None


# -- to the other layers


def new_view(proposal: Proposal, side: Side | None, me: Address, starts: Marks | None) -> NewView:
    """The event of the decided `proposal` at `me`, which comes from `side`, or joins with this view.  The members that
    left are added when the view is entered."""
    before = proposal.going_on if side is None else side.view.members
    event = NewView(
        view=proposal.view,
        previous=None if side is None else side.old,
        transitional=(me,) if side is None else side.members,
        joined=tuple(member for member in proposal.view.members if member not in before),
        left=(),
        primary=proposal.primary,
        starts=starts,
        standings=proposal.standings,
        cut={} if side is None else side.cut,
        with_state=starts is not None,
        expelled=proposal.expelled,
    )
    if proposal.merges:
        event.subgroups = tuple(Subgroup(one.old, one.members, one.marks) for one in proposal.sides)
        event.digest, event.winner, event.lacks = proposal.digest, proposal.winner, proposal.lacks
    return event


# -- to the wire


def vector(positions: Mapping[Address, int], members: Sequence[Address]) -> list[int]:
    """The positions of the streams of `members`, in their order, without the zeros at the end."""
    found = [positions.get(member, 0) for member in members]
    while found and not found[-1]:
        found.pop()
    return found


def difference(proposal: Proposal, known: ViewId | None) -> Difference:
    """`proposal` for a receiver that has the view `known`, or none of the earlier views."""
    view, going_on = proposal.view, dict.fromkeys(proposal.going_on)
    contacts = zip(view.members, view.contacts, strict=True)
    standings: dict[int, Standing] = {}
    before: Standing | None = None
    for rank, member in enumerate(going_on):
        standing = proposal.standings.get(member, True)
        if standing != before:
            standings[rank] = before = standing
    return Difference(
        proposal.ballot,
        view.id,
        view.history,
        tuple(_end(side, known) for side in proposal.sides),
        {member: contact for member, contact in contacts if member not in going_on},
        proposal.electors,
        standings,
        proposal.expelled,
        proposal.digest,
        proposal.winner,
        _ranked(proposal.lacks, view.members),
    )


def _ranked(lacks: Lacks | None, members: Sequence[Address]) -> dict[Address, list[tuple[int, int, list[int]]]] | None:
    if not lacks:
        return None if lacks is None else {}
    ranks = {member: rank for rank, member in enumerate(members)}
    return {
        origin: [(lack.low, lack.high, [ranks[member] for member in lack.members]) for lack in of_origin]
        for origin, of_origin in lacks.items()
    }


def _end(side: Side, known: ViewId | None) -> SideEnd:
    members, going_on = side.view.members, dict.fromkeys(side.members)
    ranks = {member: rank for rank, member in enumerate(members)}
    cut = vector(side.cut, members)
    return SideEnd(
        side.old,
        None if side.old == known else side.view,
        [rank for rank, member in enumerate(members) if member not in going_on],
        cut,
        [ranks[side.holders[member]] for member in members[: len(cut)]],
        side.marks,
    )


def differences(proposal: Proposal, receivers: Iterable[Address]) -> Iterator[tuple[Address, Difference]]:
    """`proposal` for each of `receivers`: members of the earlier views, and processes that are in none of them."""
    known_sides = () if proposal.founds else proposal.sides  # no process is in the view before the first one
    views = {member: side.old for side in known_sides for member in side.view.members}
    made: dict[ViewId | None, Difference] = {}
    for receiver in receivers:
        known = views.get(receiver)
        if known not in made:
            made[known] = difference(proposal, known)
        yield receiver, made[known]


# -- from the wire


def proposal_of(difference: Difference, mine: AgreedView | None) -> Proposal | None:
    """The proposal that `difference` describes to a member of `mine`; None if it is invalid there."""
    found = [_side(end, mine) for end in difference.sides]
    sides = tuple(side for side in found if side is not None)
    if len(sides) < len(found):
        return None
    contacts: dict[Address, str] = {}
    since = dict.fromkeys(difference.joiners, difference.id.number)
    for side in sides:
        since |= {member: side.view.joined(member) for member in side.members}
        listen = dict(zip(side.view.members, side.view.contacts, strict=True))
        contacts |= {member: listen[member] for member in side.members}
    if len(sides) > 1:
        contacts = {member: contacts[member] for member in sorted(contacts)}
    contacts |= difference.joiners
    going_on = [member for side in sides for member in side.members]
    if not len(going_on) + len(difference.joiners) == len(contacts) <= MEMBERS_MAX:
        return None  # a member comes from two sides, or joins its own view
    standing: Standing = True
    standings: dict[Address, Standing] = {}
    for rank, member in enumerate(going_on):
        standings[member] = standing = difference.standings.get(rank, standing)
    joined = tuple(since[member] for member in contacts)
    view = AgreedView(difference.id, tuple(contacts), tuple(contacts.values()), difference.history, joined)
    if not _lack_something(difference, len(view.members)):
        return None
    lacks = _lacks(difference, view.members)
    rest = (difference.electors, standings, difference.expelled, difference.digest, lacks, difference.winner)
    return Proposal(difference.ballot, view, sides, *rest)


def _lack_something(difference: Difference, members: int) -> bool:
    """Whether each range of `lacks` has a number, and each rank is below `members`, the size of the merged view."""
    found = [lack for lacks in (difference.lacks or {}).values() for lack in lacks]
    return all(low < high and all(rank < members for rank in ranks) for low, high, ranks in found)


def _lacks(difference: Difference, members: Sequence[Address]) -> Lacks | None:
    if difference.lacks is None:
        return None
    return {
        origin: tuple([Lack(low, high, tuple([members[rank] for rank in ranks])) for low, high, ranks in lacks])
        for origin, lacks in difference.lacks.items()
    }


def _side(end: SideEnd, mine: AgreedView | None) -> Side | None:
    """The side that `end` describes.  None if the receiver does not have the view of the side, if a rank is not in this
    view, or if no member goes on."""
    view = mine if end.view is None else end.view
    if view is None or view.id != end.old or len(end.cut) != len(end.holders):
        return None
    members = view.members
    if len(end.cut) > len(members) or any(rank >= len(members) for rank in (*end.out, *end.holders)):
        return None
    gone = {members[rank]: None for rank in end.out}
    if len(gone) == len(members):
        return None
    cut = dict.fromkeys(members, 0) | dict(zip(members, end.cut, strict=False))
    holders = dict(zip(members, members, strict=True))
    holders |= {stream: members[rank] for stream, rank in zip(members, end.holders, strict=False)}
    return Side(view, tuple(member for member in members if member not in gone), cut, holders, end.marks)


def in_full(difference: Difference, view: AgreedView) -> Difference:
    """The same difference for a receiver that does not know `view`: with this view in full."""
    ends = [msgspec.structs.replace(end, view=view) if end.old == view.id else end for end in difference.sides]
    return msgspec.structs.replace(difference, sides=tuple(ends))


# -- in the journal


def text_of(proposal: Proposal) -> str:
    """The proposal as text, for a later incarnation of this process."""
    return base64.b85encode(msgspec.msgpack.encode(difference(proposal, None))).decode()


def difference_in(text: str) -> Difference | None:
    """The proposal in a text of `text_of`, with the earlier view in full; None for any other text."""
    try:
        return msgspec.msgpack.decode(base64.b85decode(text), type=Difference) if text else None
    except (*UNDECODABLE, ValueError):
        return None
