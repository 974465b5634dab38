"""Processes in another view: the reply of a member to a process that names a view other than the member's own.

The process may lack the installation of this view, and gets it.  The others may have gone on without the process
(Excluded).  The process may be in a view that this member has accepted and lacks (Stuck: this member asks for the
installation).  Or the process is in a view of its own (Elsewhere).  `reply` finds the reply in two tables: `REPLIES`,
and `IN_ONE_CHAIN` for groups in which no two views follow one view.

Two more replies concern the view of this member: `give_decided` below, and former_lives.py, where a process answers
for a member that has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

from pygroups.core.address import Address
from pygroups.core.events import AllInstalled, Marks
from pygroups.core.tables import Tables, under
from pygroups.core.view import AgreedView, Ballot, ViewId

from ..decisions.proposal import Installation, Proposal, difference
from ..heads import Elsewhere, Excluded, Install, Stuck
from ..membership import Membership

PAST_MAX = 256  # earlier views that are remembered, for the replies to stale members
FORMER_MAX = 4_096  # former members of which the last view is remembered, however long ago it was


class Theirs(Enum):
    """The view that the other process names, as this member sees it."""

    SAME = "this view"
    NONE = "no view yet: the process joins"
    EARLIER = "one that this member has left behind"
    ON_THE_WAY = "one that this member has accepted and not installed"
    NEVER = "one that cannot follow this one"
    UNKNOWN = "one that may follow this one"
    EARLIER_IN_CHAIN = "an earlier one, in which this member never was"
    LATER_IN_CHAIN = "a later one that this member does not know"


class Reply(Enum):
    """The reply to the other process."""

    NOTHING = "nothing"
    INSTALL = "the installation of this view"
    INSTALL_AND_STARTS = "the installation of this view, with where each origin starts"
    EXCLUDED = "that the other members continued without the process"
    STUCK = "that this member lacks the installation of that view"
    ELSEWHERE = "that this member is in another view"


class Row(NamedTuple):
    """A row of a table; None fits either answer."""

    theirs: Theirs
    is_member: bool | None  # of this view
    holds: bool | None  # this member holds an installation that the other one lacks
    asked: bool | None  # the other one asks something of this member; else it is only heard
    reply: Reply


REPLIES: Final = (
    Row(Theirs.SAME, None, None, None, Reply.NOTHING),
    Row(Theirs.NONE, None, True, None, Reply.INSTALL_AND_STARTS),
    Row(Theirs.NONE, None, False, None, Reply.NOTHING),
    Row(Theirs.EARLIER, True, True, None, Reply.INSTALL),
    Row(Theirs.EARLIER, True, False, None, Reply.NOTHING),  # the installation is on its way to it
    Row(Theirs.EARLIER, False, False, None, Reply.EXCLUDED),
    Row(Theirs.ON_THE_WAY, None, None, None, Reply.STUCK),
    Row(Theirs.NEVER, None, True, None, Reply.INSTALL),  # this member joined: it was never in the view before this one
    Row(Theirs.NEVER, None, False, None, Reply.ELSEWHERE),
    Row(Theirs.UNKNOWN, None, None, True, Reply.ELSEWHERE),
    Row(Theirs.UNKNOWN, None, None, False, Reply.NOTHING),  # the view may be the next one, on its way
)
"""The replies in any group."""

IN_ONE_CHAIN: Final = (
    Row(
        Theirs.EARLIER, False, True, None, Reply.INSTALL
    ),  # the member is left out, and stays until enough members have this view
    Row(Theirs.EARLIER_IN_CHAIN, None, True, None, Reply.INSTALL),
    Row(Theirs.EARLIER_IN_CHAIN, True, False, None, Reply.ELSEWHERE),
    Row(Theirs.EARLIER_IN_CHAIN, False, False, None, Reply.EXCLUDED),  # this view follows, without the member
    Row(Theirs.LATER_IN_CHAIN, True, None, True, Reply.STUCK),  # that view was decided without this member's answer
    Row(Theirs.LATER_IN_CHAIN, False, None, True, Reply.ELSEWHERE),
    Row(Theirs.LATER_IN_CHAIN, None, None, False, Reply.NOTHING),
)
"""The further replies where no two views follow one view."""


def reply(theirs: Theirs, *, is_member: bool, holds: bool, asked: bool) -> Reply:
    """The reply of the only row that fits."""
    facts = (is_member, holds, asked)
    (row,) = [
        row
        for row in (*REPLIES, *IN_ONE_CHAIN)
        if row.theirs is theirs and all(cell in (None, fact) for cell, fact in zip(row[1:4], facts, strict=True))
    ]
    return row.reply


def cannot_follow(view: AgreedView, id: ViewId) -> bool:
    """Whether no member of `view` can be on its way to the view `id`: ids rise, and only members lead to the next."""
    return id < view.id or id.leader not in view.members


class OtherViews:
    """The earlier views that this member knows, and the installation of its present view."""

    tables: ClassVar[Tables] = {
        "elsewhere": "members",
        "expelled": FORMER_MAX,
        "last_view_of": FORMER_MAX,
        "past": PAST_MAX,
        **under("kept", Installation.tables),
    }

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.kept: Installation | None = None  # the installation of this view, until all are known to have it
        self.past: dict[ViewId, None] = {}  # views this member was in
        self.last_view_of: dict[Address, ViewId] = {}  # the last view that a former member shared with this one
        self.elsewhere: dict[Address, int] = {}  # members that named a later view, and when they did first
        self.expelled: dict[Address, str] = {}  # former members that were excluded by policy, and why

    # -- changes

    def entered(
        self, old: AgreedView | None, view: AgreedView, expelled: Mapping[Address, str] = MappingProxyType({})
    ) -> None:
        """`view` follows `old` here; members in `expelled` were excluded by policy."""
        self.elsewhere = {}
        if old is None:
            return
        self.past[old.id] = None
        if len(self.past) > PAST_MAX:
            del self.past[next(iter(self.past))]
        for member in old.members:
            if member not in view.members:
                self.last_view_of.pop(member, None)
                self.last_view_of[member] = old.id
                if member in expelled:
                    self.expelled[member] = expelled[member]
        while len(self.last_view_of) > FORMER_MAX:
            oldest = next(iter(self.last_view_of))
            del self.last_view_of[oldest]
            self.expelled.pop(oldest, None)

    def keep(self, proposal: Proposal, starts: Marks | None) -> None:
        """Keep the installation of the view that this member is about to enter."""
        self.kept = Installation(proposal, starts)

    def starts_are(self, marks: Marks) -> None:
        """Add the start of each origin for joiners, which is known only when the view is installed here."""
        if self.kept is not None:
            self.kept = Installation(self.kept.proposal, marks)

    def forget_installation(self) -> None:
        """All members have the installation of this view: it may be forgotten, and so may the runs of the old view."""
        self.kept = None
        if self.membership.quorum.keeps_past_streams:
            self.membership.above.append(AllInstalled(self.membership.current.id))

    # -- questions

    def was_here(self, theirs: ViewId | None) -> bool:
        """Whether this member has left the view `theirs` behind.  Each member of this view has then left `theirs`
        behind too.  With None, for a process that has no view, the result is True: each member has joined since."""
        return theirs is None or theirs in self.past

    def explain(self, member: Address, theirs: ViewId | None, *, asked: bool) -> None:
        """Reply to `member`, which names the view `theirs`, or None if `member` has no view yet.  The tables above
        contain the replies."""
        if self.membership.view is not None:
            is_member, seen = self.membership.knows(member), self._seen(member, theirs)
            holds = self._holds_for(member, theirs) or self._holds_for_left_out(member, theirs)
            answer = reply(seen, is_member=is_member, holds=holds, asked=asked)
            self._send(member, theirs, answer)

    def note_elsewhere(self, member: Address, theirs: ViewId) -> bool:
        """`member` of this view names the view `theirs`.  Returns whether it has gone on without this member.

        Ids rise at each member, so `member` never comes back to this view.  The installation of `theirs` may be on its
        way here, if this member accepted it; any other one has no place for this member.  The answers of this member
        may not reach `member`, which then learns nothing and cannot be asked: frames of it arrive, and it counts as
        gone after `flush_timeout`.
        """
        membership = self.membership
        view, now = membership.view, membership.env.now
        if view is None or not membership.knows(member) or theirs <= view.id or self.membership.may_come_to(theirs):
            return False
        return now >= self.elsewhere.setdefault(member, now) + membership.env.config.flush_timeout

    def give_decided(self, member: Address, theirs: ViewId) -> bool:
        """Send the decided successor of this view, which is not installed here, to a member that still leads or asks in
        this view.  Returns whether the successor was sent."""
        membership, decided = self.membership, self.membership.binding.decided
        if decided is None or theirs != membership.current.id:
            return False
        if not membership.knows(member) or member == membership.env.me:
            return False
        membership.tell(member, Install(difference(decided, theirs), None))
        return True

    def give_installation(self, member: Address, theirs: ViewId | None) -> bool:
        """Send the installation of this view to `member` if `member` lacks this installation.  Returns whether `member`
        lacks it."""
        lacks = self._holds_for(member, theirs)
        if lacks:
            self._send(member, theirs, Reply.INSTALL_AND_STARTS if theirs is None else Reply.INSTALL)
        return lacks

    def _seen(self, member: Address, theirs: ViewId | None) -> Theirs:
        """The first entry of `Theirs` that is true."""
        view = self.membership.current
        is_last_shared = member not in view.members and self.last_view_of.get(member) == theirs
        if theirs is None:
            return Theirs.NONE
        if theirs == view.id:
            return Theirs.SAME
        if theirs in self.past or is_last_shared:
            return Theirs.EARLIER
        if self.membership.binding.is_on_the_way_to(theirs):
            return Theirs.ON_THE_WAY
        one_chain = self.membership.quorum.one_chain
        if one_chain and theirs < view.id:
            return Theirs.EARLIER_IN_CHAIN
        if cannot_follow(view, theirs):
            return Theirs.NEVER
        return Theirs.LATER_IN_CHAIN if one_chain else Theirs.UNKNOWN

    def _holds_for(self, member: Address, theirs: ViewId | None) -> bool:
        """Whether `member` lacks the installation of this view, and this member has kept it."""
        kept = self.kept
        if kept is None or not self.membership.knows(member):
            return False
        if theirs is None:
            return kept.proposal.founds or member not in kept.proposal.going_on
        side = kept.proposal.side_of(theirs)
        return side is not None and member in side.members

    def _holds_for_left_out(self, member: Address, theirs: ViewId | None) -> bool:
        """Whether this member has kept the installation of this view, and `member` is left out of it and waits: where
        views are one chain, it stays until enough members of this view have the installation."""
        kept = self.kept
        if kept is None or theirs is None or self.membership.knows(member):
            return False
        return self.membership.quorum.one_chain and kept.proposal.side_of(theirs) is not None

    def _send(self, member: Address, theirs: ViewId | None, answer: Reply) -> None:
        tell, here = self.membership.tell, self.membership.current.id
        kept = self.kept
        if answer is Reply.INSTALL_AND_STARTS and kept is not None:
            tell(member, Install(difference(kept.proposal, None), kept.starts))
        elif answer is Reply.INSTALL and kept is not None:
            tell(member, Install(difference(kept.proposal, theirs), None))
        elif theirs is not None and answer is Reply.EXCLUDED:
            tell(member, Excluded(theirs, self.expelled.get(member, "")))
        elif theirs is not None and answer is Reply.STUCK:
            tell(member, Stuck(Ballot(*theirs), here))
        elif theirs is not None and answer is Reply.ELSEWHERE:
            tell(member, Elsewhere(here, theirs))
