"""The votes of STABLE: what is said on the wire, and how votes are combined.  Nothing here knows a clock or a layer.

Note: docs/layers/stable.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.run import Loose
from pygroups.core.view import ViewId

Number = Annotated[int, Meta(ge=0, le=1 << 62)]
Vector = Annotated[list[Number], Meta(max_length=MEMBERS_MAX)]  # one for each member of the view, in rank order


class Vote(msgspec.Struct, Loose, array_like=True, tag=70):
    """A member to the coordinator (the seed's STABLE message): this far I am."""

    view: ViewId  # a vote of another view says nothing about this one, whoever its members were
    round: Number  # of this voter in this view; a later vote repeats or raises what an earlier one said
    delivered: Vector  # per stream, the first seq not delivered
    seen: Vector  # per stream, beyond the highest seq received or heard of
    numbers: Vector  # per origin, the number of the first message not delivered
    consumed: Vector  # per origin, the number of the first message not consumed
    urgent: bool = False  # so much is new that a sender may wait for it


class StabilityMsg(msgspec.Struct, Loose, array_like=True, tag=71):
    """The coordinator to all (the seed's STABILITY message), or to one that did not hear it: this far all are."""

    view: ViewId
    round: Number  # of the coordinator in this view
    purge: Vector  # per stream, below which all members have delivered
    seen: Vector  # per stream, below which some member has or knows of everything
    delivered: Vector  # per origin, below which all members have delivered
    consumed: Vector  # per origin, below which all others have consumed


class Origin:
    """How far the messages of one origin got here, and how far the coordinator was told they did.

    Of the own messages what is delivered counts as consumed: a window waits for the applications of others.
    """

    __slots__ = ("bytes", "consumed", "consumed_bytes", "due", "next", "own", "quantum", "runs")

    def __init__(self, start: int, quantum: int, own: bool) -> None:
        self.quantum = quantum  # bytes consumed between two votes
        self.own = own
        self.next = start  # the first number not delivered
        self.consumed = start
        self.bytes = 0  # delivered since this member began to count
        self.consumed_bytes = 0  # of them consumed; between two known points by the mean size
        self.due = quantum  # a vote is due when they reach this
        self.runs = 0  # delivered since the last vote

    def deliver(self, first: int, count: int, size: int) -> None:
        """A run was delivered.  What an ordering layer above drops as repeated moves nothing."""
        if first == self.next:
            self.next += count
        self.bytes += size
        self.runs += 1
        if self.own:
            self.consumed, self.consumed_bytes = self.next, self.bytes

    def consume(self, mark: int) -> bool:
        """The application has consumed everything below `mark`.  Whether that is news."""
        mark = min(mark, self.next)
        if mark <= self.consumed:
            return False
        share = (self.bytes - self.consumed_bytes) * (mark - self.consumed) // (self.next - self.consumed)
        self.consumed_bytes += share
        self.consumed = mark
        return True

    def voted(self) -> None:
        """The coordinator is told all this now."""
        self.due = self.consumed_bytes + self.quantum
        self.runs = 0


class Votes:
    """The last vote of each member of one view, at its coordinator."""

    __slots__ = ("last", "members", "since")

    def __init__(self, members: Sequence[Address]) -> None:
        self.members = tuple(members)
        self.last: dict[Address, Vote] = {}
        self.since: dict[Address, None] = {}  # who has voted since all were last told

    def repeats(self, voter: Address, vote: Vote) -> bool:
        """Whether the network brought a vote twice, or after a later one."""
        return voter in self.last and vote.round <= self.last[voter].round

    def add(self, voter: Address, vote: Vote) -> bool:
        """Combine `vote` with what `voter` said before: nothing is lowered.  Whether it brings anything new."""
        self.since[voter] = None
        before = self.last.get(voter)
        if before is None:
            self.last[voter] = vote
            return True
        said = vectors(before)
        higher = delivered, seen, numbers, consumed = [_maxima(pair) for pair in zip(said, vectors(vote), strict=True)]
        self.last[voter] = Vote(vote.view, max(before.round, vote.round), delivered, seen, numbers, consumed)
        return higher != said

    def not_set(self) -> list[Address]:
        """Who has not voted in this view."""
        return [member for member in self.members if member not in self.last]

    def all_set(self) -> bool:
        return len(self.last) == len(self.members)

    def combined(self, view: ViewId, number: int) -> StabilityMsg:
        """What all of them say together, as message `number`.  Only when all have voted."""
        assert self.all_set(), "stability without everybody's vote"
        delivered, seen, numbers, consumed = zip(*map(vectors, self.last.values()), strict=True)
        return StabilityMsg(view, number, _minima(delivered), _maxima(seen), _minima(numbers), _minima(consumed))


def vectors(vote: Vote) -> list[list[int]]:
    """All that a vote says."""
    return [vote.delivered, vote.seen, vote.numbers, vote.consumed]


def _minima(vectors: Sequence[list[int]]) -> list[int]:
    return list(map(min, zip(*vectors, strict=True)))


def _maxima(vectors: Sequence[list[int]]) -> list[int]:
    return list(map(max, zip(*vectors, strict=True)))
