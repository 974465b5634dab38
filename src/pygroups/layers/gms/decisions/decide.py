"""The decisions of a view change as pure functions: the leader, the end of the old view, the next view."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from hashlib import blake2b

from pygroups.core.address import Address
from pygroups.core.events import Positions
from pygroups.core.limits import SECOND
from pygroups.core.view import HISTORY_DIGITS, AgreedView, Ballot, ViewId

from .electors import Electorate, ended_of, latest, with_ended, without
from .proposal import Proposal, Side


def leader(view: AgreedView, suspects: Container[Address]) -> Address | None:
    """The first member that is not suspected; None if all are suspected."""
    return next((member for member in view.members if member not in suspects), None)


def leader_without(view: AgreedView, suspects: Container[Address], member: Address) -> Address | None:
    """The member that would lead if `member` were suspected, too."""
    return next((m for m in view.members if m != member and m not in suspects), None)


def before(view: AgreedView, suspects: Container[Address], me: Address) -> tuple[Address, ...]:
    """The members before `me` that are not suspected.  The first of them leads."""
    return tuple(member for member in view.members[: view.members.index(me)] if member not in suspects)


def rank(view: AgreedView, suspects: Container[Address], me: Address) -> int:
    """The number of members before `me` that are not suspected."""
    return len(before(view, suspects, me))


def left_out(pairs: Sequence[tuple[Address, Address]], members: Sequence[Address]) -> list[Address]:
    """One member of each pair that cannot reach each other: the one in most pairs, of equals the one of lower rank."""
    out: list[Address] = []
    left = list(pairs)
    while left:
        involved = [member for pair in left for member in pair]
        goes = max(members, key=lambda member: (involved.count(member), members.index(member)))
        out.append(goes)
        left = [pair for pair in left if goes not in pair]
    return out


def next_number(view: AgreedView, highest: int) -> int:
    """The number of a new ballot.  The number is above every known or used number, so no two proposals share a
    ballot."""
    return max(view.id.number, highest) + 1


def cut(
    held: Mapping[Address, Sequence[int]], members: Sequence[Address], leader: Address
) -> tuple[Positions, dict[Address, Address]]:
    """The end of the old view: per stream the furthest position that a member holds, and a member that holds it.
    `held` has positions in the order of `members`, without the zeros at the end.

    On a tie the leader is the holder, then the first member in the view: all members that answered can reach the
    leader, and the owner of the stream may be cut off from some of them for as long as the fault lasts.
    """
    ends: Positions = dict.fromkeys(members, 0)
    holders = dict(zip(members, members, strict=True))
    for member in (leader, *members):
        for stream, end in zip(members, held.get(member, ()), strict=False):
            if end > ends[stream]:  # so the first of equals is the holder
                ends[stream], holders[stream] = end, member
    return ends, holders


def holder_of(rank: int, end: int, held: Mapping[Address, Sequence[int]]) -> Address | None:
    """The first member that holds the stream of the member with this rank up to `end`; None if no member does."""
    return next((one for one, positions in held.items() if (*positions[rank : rank + 1], 0)[0] >= end), None)


def next_history(old: AgreedView, ballot: Ballot) -> str:
    """The id of a history that begins after `old` under `ballot`: no other ballot gives the same."""
    return blake2b(f"{old.history} {ballot}".encode(), digest_size=HISTORY_DIGITS // 2).hexdigest()


def next_view(
    old: AgreedView,
    ballot: Ballot,
    go_on: Sequence[Address],
    joiners: Mapping[Address, str],
    history: str | None = None,
) -> AgreedView:
    """The members that go on, in their old order, then the joiners by address.  The id is made of the ballot.  With
    `history` None the next view has the history of the old view."""
    joining = sorted(joiners)
    contacts = [old.contact(member) for member in go_on] + [joiners[member] for member in joining]
    members, history = (*go_on, *joining), old.history if history is None else history
    since = (*[old.joined(member) for member in go_on], *[ballot.number for _ in joining])
    return AgreedView(ViewId.of(ballot), members, tuple(contacts), history, since)


def makes_sense(proposal: Proposal, side: Side, me: Address, held: Mapping[Address, int]) -> bool:
    """Whether `me` holds the streams of which it is the holder, and each mark of a merge is of one of its sides."""
    sides = len(proposal.sides)
    wins = proposal.winner is None or (proposal.merges and proposal.winner < sides)
    return (
        wins
        and all(index < sides for _, index in proposal.digest.values())
        and all(side.holders[stream] != me or held.get(stream, 0) >= end for stream, end in side.cut.items())
    )


def electors_of_next(
    ballot: Ballot,
    known: Iterable[Electorate],
    here: Container[Address],
    left: Container[Address] = (),
    ended: Container[Address] = (),
    *,
    alone: bool = False,
) -> tuple[Electorate, ...]:
    """The electors that the view of `ballot` carries; () if it is primary.

    The view needs a majority of each of the electors in `known`, without the members that `left`.  If no other process
    of the group seems to exist (`alone`), all of them, and all that followed them, are enough, but those that have
    `ended` for certain.  A view with a lower id than electors is not primary: otherwise the order of ids would not be
    the order of primary views.
    """
    needed = with_ended(without(latest(known), left), ended)
    over = ended_of(needed)
    electing = [one.view for one in needed if one.kind in ("formed", "proposed")]
    newest = all(one.id < ViewId.of(ballot) for one in electing)
    most = all(is_majority(one, here) for one in electing) and bool(electing)
    every = all(member in here or member in over for one in needed for member in one.view.members)
    return () if newest and (most or (alone and every)) else needed


def is_majority(view: AgreedView, some: Container[Address], vouched: Container[Address] = ()) -> bool:
    """Whether `some` contains more than half of the members of `view`, or half of them with the first one.

    `vouched`: members that an operator vouches for are left out of the count.  If vouched members counted as accepting,
    they would count on each side of a split, and both sides could go on (0124).  Processes outside the view do not
    count.
    """
    rest = [member for member in view.members if member not in vouched]
    here = [member for member in rest if member in some]
    return 2 * len(here) > len(rest) or (2 * len(here) == len(rest) and here[:1] == rest[:1])


def when_to_start(since: int, batch: int, made: Sequence[int], per_second: int) -> int:
    """The time when joins and leaves that wait since `since` may begin a view change.

    Joins and leaves are gathered for `batch`, and make no more than `per_second` views within a second.  `made` holds
    the times of the last such views, oldest first.  All times are in microseconds.
    """
    earliest = since + batch
    if len(made) >= per_second:
        earliest = max(earliest, made[-per_second] + SECOND)
    return earliest
