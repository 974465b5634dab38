"""The votes of STABLE: their heads, the counts of a member for them, and the combination of votes.

Pure: this file knows no clock and no layer.

Note: docs/layers/stable.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.events import Marks
from pygroups.core.limits import GAPS_MAX, MEMBERS_MAX, SLOWEST_MAX
from pygroups.core.run import Loose
from pygroups.core.tables import Tables
from pygroups.core.view import ViewId

from .vote_clock import BYTES, RUNS, WANTED, Reason

UNWANTED: Final = 1 << 62  # no message has this number

Number = Annotated[int, Meta(ge=0, le=1 << 62)]
Vector = Annotated[list[Number], Meta(max_length=MEMBERS_MAX)]  # one for each member of the view, in rank order
Ranks = Annotated[list[Number], Meta(max_length=SLOWEST_MAX)]  # of members in the view


class Vote(msgspec.Struct, Loose, array_like=True, tag=70):
    """A member to the coordinator (STABLE in design note 002): the positions that the member has delivered and
    consumed."""

    view: ViewId  # a vote of another view does not count in this one, even if the members are the same
    round: Number  # of this voter in this view; a later vote repeats or raises the numbers of an earlier one
    delivered: Vector  # per stream, the first seq not delivered
    seen: Vector  # per stream, one more than the highest seq known to exist
    numbers: Vector  # per origin, the number of the first message not delivered
    consumed: Vector  # per origin, the number of the first message not consumed
    urgent: bool = False  # so much is new that a sender may wait for it


class StabilityMsg(msgspec.Struct, Loose, array_like=True, tag=71):
    """The coordinator to all, or to a member that did not hear it (STABILITY in design note 002): the positions that
    all members have delivered and consumed."""

    view: ViewId
    round: Number  # of the coordinator in this view
    purge: Vector  # per stream, below which all members have delivered
    seen: Vector  # per stream, below which some member has or knows of everything
    delivered: Vector  # per origin, below which all members have delivered
    consumed: Vector  # per origin, below which all others have consumed
    slowest: Annotated[
        list[Ranks], Meta(max_length=MEMBERS_MAX)
    ] = []  # per origin, the members that have consumed least; not in each message
    idle: Vector = []  # with `slowest`: for how long each member has consumed nothing of the others, in microseconds


class Wanted(msgspec.Struct, Loose, array_like=True, tag=72):
    """A member to all: a sender at this member waits until its multicasts below `below` are stable.  A receiver votes
    as soon as it has delivered them."""

    below: Number


class Origin:
    """The messages of one origin: how far they were delivered and consumed here, and how far the votes reported this.

    This member's own messages count as consumed when they are delivered: a window waits for the applications of others.
    """

    __slots__ = (
        "bytes",
        "consumed",
        "consumed_bytes",
        "due",
        "gaps",
        "next",
        "own",
        "quantum",
        "read",
        "runs",
        "wanted",
        "wanted_last",
    )

    tables: ClassVar[Tables] = {
        "gaps": "gaps",
    }

    def __init__(self, start: int, quantum: int, own: bool) -> None:
        self.quantum = quantum  # bytes consumed between two votes
        self.own = own
        self.next = start  # the first number not delivered
        self.consumed = self.read = start  # `read`: as the application says, also of messages that do not count yet
        self.bytes = 0  # delivered since this member began to count
        self.consumed_bytes = 0  # of them consumed; between two known points by the mean size
        self.due = quantum  # a vote is due when they reach this
        self.runs = 0  # delivered since the last vote
        self.wanted = UNWANTED  # a vote is due when `next` reaches this: a sender waits for it
        self.wanted_last = UNWANTED  # and again when it reaches this
        self.gaps: dict[int, int] = {}  # by its first number, the number after each gap that is not consumed yet

    def deliver(self, first: int, count: int, size: int) -> None:
        """A run was delivered.  A run that an ordering layer above drops as repeated raises no mark."""
        if first == self.next:
            self.next += count
        self.bytes += size
        self.runs += 1
        if self.own:
            self.consumed, self.consumed_bytes = self.next, self.bytes
        elif self.read > self.consumed:
            self.consume(self.read)

    def consume(self, mark: int) -> bool:
        """Record that messages below `mark` are consumed.  Return whether the mark rose.

        UNIFORM may release a message in the turn in which the view ends.  It counts with the next view, and the
        application may have consumed it before.
        """
        if mark > self.read:
            self.read = mark
        if mark > self.next:
            mark = self.next
        if self.gaps:
            mark = self._over_gaps(mark)
        if mark <= self.consumed:
            return False
        share = (self.bytes - self.consumed_bytes) * (mark - self.consumed) // (self.next - self.consumed)
        self.consumed_bytes += share
        self.consumed = mark
        return True

    def skip_to(self, mark: int) -> None:
        """The messages below `mark` that this member has not delivered are never delivered here.  Such messages count
        as consumed together with the message before them."""
        if mark <= self.next:
            return
        self.gaps[self.next] = mark
        if len(self.gaps) > GAPS_MAX:
            del self.gaps[next(iter(self.gaps))]  # its messages count as consumed when a later message is consumed
        self.next = mark
        if self.own:
            self.consumed = mark
        elif self.consumed in self.gaps:
            self.consumed = self._over_gaps(self.consumed)

    def _over_gaps(self, mark: int) -> int:
        """`mark`, or the end of the gap that begins there."""
        for first in [first for first in self.gaps if first <= mark]:
            mark = max(mark, self.gaps.pop(first))
        return mark

    def want(self, below: int) -> None:
        """The origin waits until all members have delivered its messages below `below`."""
        if self.wanted == UNWANTED:
            self.wanted = self.wanted_last = below
        else:
            self.wanted, self.wanted_last = min(self.wanted, below), max(self.wanted_last, below)

    @property
    def presses(self) -> bool:
        """Whether a vote is due at once: a sender, or its window, waits for the news of this vote."""
        return self.consumed_bytes >= self.due or self.next >= self.wanted

    def reason(self, runs_due: int) -> Reason | None:
        """Why this member is to vote sooner than for any other news; `runs_due` is the reason RUNS, in runs."""
        if self.next >= self.wanted:
            return WANTED
        if self.consumed_bytes >= self.due:
            return BYTES
        return RUNS if self.runs >= runs_due else None

    def voted(self) -> None:
        """A vote leaves that reports all of these counts to the coordinator."""
        self.due = self.consumed_bytes + self.quantum
        self.runs = 0
        if self.next >= self.wanted:
            self.wanted = self.wanted_last = UNWANTED if self.next >= self.wanted_last else self.wanted_last


class Votes:
    """The last vote of each member of one view, at its coordinator.  `before` has the votes of the view before.  A
    member that was idle there counts as idle here until a vote shows that the member has consumed a message."""

    __slots__ = ("before", "last", "members", "moved", "since")

    tables: ClassVar[Tables] = {
        "before": "members",
        "before[]": "fixed",
        "before[][]": "members",
        "last": "members",
        "last[].consumed": "members",
        "last[].delivered": "members",
        "last[].numbers": "members",
        "last[].seen": "members",
        "members": "members",
        "moved": "members",
        "since": "members",
    }

    def __init__(self, members: Sequence[Address], before: Votes | None = None) -> None:
        self.members = tuple(members)
        self.last: dict[Address, Vote] = {}
        self.since: dict[Address, None] = {}  # the members that have voted since the last result
        self.moved: dict[Address, int] = {}  # per voter, when it last reported that it consumed a message of another
        self.before = {} if before is None else before.consumptions()  # of members that have not voted in this view

    def repeats(self, voter: Address, vote: Vote) -> bool:
        """Whether the network delivered this vote twice, or after a later vote."""
        return voter in self.last and vote.round <= self.last[voter].round

    def add(self, voter: Address, vote: Vote, now: int) -> bool:
        """Combine `vote` with the earlier votes of `voter`, lowering no number.  Return whether a number rose."""
        self.since[voter] = None
        before = self.last.get(voter)
        if before is None:
            self.last[voter] = vote
            moved, had = self.before.pop(voter, (now, {}))
            marks = [had.get(origin, UNWANTED) for origin in self.members]
            self.moved[voter] = now if self._has_moved(voter, marks, vote.consumed) else moved
            return True
        earlier = vectors(before)
        higher = delivered, seen, numbers, consumed = [
            _maxima(pair) for pair in zip(earlier, vectors(vote), strict=True)
        ]
        if self._has_moved(voter, before.consumed, consumed):
            self.moved[voter] = now
        self.last[voter] = Vote(vote.view, max(before.round, vote.round), delivered, seen, numbers, consumed)
        return higher != earlier

    def _has_moved(self, voter: Address, had: Sequence[int], consumed: Sequence[int]) -> bool:
        """Whether `voter` has consumed more of another member than it had.  The messages of `voter` itself count when
        they are delivered, also if `voter` reads nothing."""
        for origin, before, after in zip(self.members, had, consumed, strict=False):
            if after > before and origin != voter:
                return True
        return False

    def consumptions(self) -> dict[Address, tuple[int, Marks]]:
        """For each voter, the time when its marks of consumption last rose, and these marks."""
        return {
            voter: (at, dict(zip(self.members, self.last[voter].consumed, strict=True)))
            for voter, at in self.moved.items()
        }

    def idle(self, now: int) -> list[int]:
        """For how long each member, in rank order, has consumed no message of another one."""
        return [max(0, now - self.moved[member]) for member in self.members]

    def not_set(self) -> list[Address]:
        """The members whose vote in this view is missing."""
        return [member for member in self.members if member not in self.last]

    def all_set(self) -> bool:
        return len(self.last) == len(self.members)

    def combined(self, view: ViewId, number: int) -> StabilityMsg:
        """The votes of all members combined, as message `number`.  All must have voted."""
        assert self.all_set(), "stability without each member's vote"
        delivered, seen, numbers, consumed = zip(*map(vectors, self.last.values()), strict=True)
        return StabilityMsg(view, number, _minima(delivered), _maxima(seen), _minima(numbers), _minima(consumed))

    def all_have(self, rank: int, below: int) -> bool:
        """Whether all members have delivered the messages below number `below` of the member of this rank."""
        return self.all_set() and all(vote.numbers[rank] >= below for vote in self.last.values())

    def slowest(self) -> list[list[int]]:
        """Per origin the ranks of the members that have consumed least; [] if all have consumed the same of every
        origin."""
        columns = zip(*(vote.consumed for vote in map(self.last.__getitem__, self.members)), strict=True)
        found = [_lowest(column) for column in columns]
        return found if any(found) else []


def vectors(vote: Vote) -> list[list[int]]:
    """The four vectors of a vote."""
    return [vote.delivered, vote.seen, vote.numbers, vote.consumed]


def _minima(vectors: Sequence[list[int]]) -> list[int]:
    return list(map(min, zip(*vectors, strict=True)))


def _maxima(vectors: Sequence[list[int]]) -> list[int]:
    return list(map(max, zip(*vectors, strict=True)))


def _lowest(values: Sequence[int]) -> list[int]:
    low = min(values)
    if low == max(values):
        return []
    return [rank for rank, value in enumerate(values) if value == low][:SLOWEST_MAX]
