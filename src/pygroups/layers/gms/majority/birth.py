"""Birth: the first view of a group in which a majority decides, without a lock.

`expect` is the number of all processes that may take part in the birth.  More than half of them decide the first view,
by the steps of a view change: one of them calls the others (Call), each answer binds its sender to a ballot, the caller
proposes a view of all that answered, and the view is decided when more than half of `expect` have accepted it.  A
proposal that an answer reports may have been decided: it is repeated, even if some of its members have ended.

A process that has heard of a living group takes part in no birth.  Without `expect` the directory's lock decides which
process founds the group: see joining.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.driver_events import Contacts, Found
from pygroups.core.layer import NEVER
from pygroups.core.limits import MEMBERS_MAX, PATIENCE_MAX
from pygroups.core.run import Loose
from pygroups.core.tables import Tables, under
from pygroups.core.view import UNBORN, AgreedView, Ballot, ViewId

from ..decisions.proposal import Proposal, Side, difference, proposal_of
from ..heads import Difference, Fingerprint
from ..membership import Membership, Phase
from .rebirth import Rebirth

Expect = Annotated[int, Meta(ge=1, le=MEMBERS_MAX)]


class Call(msgspec.Struct, Loose, array_like=True, tag=57):
    """To a process that looks for the group: take part in the birth that the sender leads."""

    ballot: Ballot
    fingerprint: Fingerprint
    expect: Expect


class Called(msgspec.Struct, Loose, array_like=True, tag=58):
    """The answer to Call, and to First under a ballot that is too low."""

    ballot: Ballot  # of the Call
    bound: Ballot  # to which the sender is bound; above `ballot`: it takes no part in that attempt
    accepted: Difference | None = None  # the first view that the sender accepted last


class First(msgspec.Struct, Loose, array_like=True, tag=59):
    """Leader of a birth to all that answered: accept this first view."""

    difference: Difference


class Taken(msgspec.Struct, Loose, array_like=True, tag=63):
    """The answer to First: accepted."""

    ballot: Ballot


class Lives(msgspec.Struct, Loose, array_like=True, tag=64):
    """The answer to Call of a process that has heard of a living group, or is a member."""

    ballot: Ballot


HEADS: Final = (Call, Called, First, Taken, Lives)


def is_enough(expect: int, some: Collection[Address]) -> bool:
    """Whether `some` are more than half of the processes that may take part.  Two such sets have one in common."""
    return 2 * len(some) > expect


def first_view(
    ballot: Ballot, answers: Mapping[Address, Proposal | None], contacts: Mapping[Address, str], history: str
) -> Proposal:
    """The proposal for the first view.  If answers report accepted proposals, this is the one with the highest ballot,
    now under the new `ballot`.  Otherwise this is a view of all processes that answered, by address, which begins
    `history`."""
    reported = [accepted for accepted in answers.values() if accepted is not None]
    if reported:
        last = max(reported, key=lambda proposal: proposal.ballot)
        return msgspec.structs.replace(last, ballot=ballot)
    members = tuple(sorted(answers))
    listen = tuple(contacts[member] for member in members)
    before, view = (AgreedView(id, members, listen, history) for id in (UNBORN, ViewId.of(ballot)))
    return Proposal(ballot, view, (Side(before, members, {}, {}),), electors=())


class BirthAttempt:
    """One attempt of this process to lead the birth."""

    tables: ClassVar[Tables] = {
        "accepted": "known",
        "answers": "known",
        "contacts": "known",
        **under("answers[]", Proposal.tables),
        **under("proposal", Proposal.tables),
    }

    def __init__(self, ballot: Ballot, contacts: dict[Address, str], until: int) -> None:
        self.ballot = ballot
        self.contacts = contacts  # of all that are called, this process included
        self.until = until  # when it goes on with the answers so far, or fails
        self.lives = False  # a process that was called has heard of a living group
        self.answers: dict[Address, Proposal | None] = {}  # the first view that each accepted last
        self.proposal: Proposal | None = None
        self.accepted: dict[Address, None] = {}

    def take_answer(self, src: Address, accepted: Proposal | None) -> bool:
        """Take the answer of `src`.  Returns whether it was the last one."""
        self.answers[src] = accepted
        return len(self.answers) == len(self.contacts)

    def finds_a_group(self, src: Address) -> None:
        """`src` has heard of a living group.  Only processes that accepted a first view go on."""
        self.contacts.pop(src, None)
        self.lives = True
        self.answers = {one: accepted for one, accepted in self.answers.items() if accepted is not None}

    def proposes(self, proposal: Proposal, until: int) -> None:
        """`proposal` is sent to all that answered, which accept it until the given time."""
        self.proposal, self.until = proposal, until

    def accepts(self, src: Address) -> None:
        """`src` has accepted the proposal."""
        if src in self.contacts:
            self.accepted[src] = None


class Birth:
    """The part of this process in the birth of its group."""

    tables: ClassVar[Tables] = {
        "seekers": "members_max",
        **under("accepted", Proposal.tables),
        **under("attempt", BirthAttempt.tables),
    }

    def __init__(self, membership: Membership, rebirth: Rebirth) -> None:
        self.membership = membership
        self.rebirth = rebirth
        self.env = membership.env
        self.bound: Ballot | None = None
        self.accepted: Proposal | None = None
        self.looked = False  # discovery has answered once
        self.group_found = False  # its last answer named a member of a living group: the next one may come late
        self.group_heard_at = -NEVER  # when discovery, or another process, named a member of a living group
        self.seekers: dict[Address, tuple[str, int]] = {}  # other processes without a view: contact, and when heard of
        self.since = NEVER  # when enough of them were known
        self.leader_heard_at = -NEVER
        self.attempt: BirthAttempt | None = None
        self.failures = 0
        self.pause_until = 0

    @property
    def is_open(self) -> bool:
        """Whether this process may take part: it has no view, and heard of no living group.  A process that accepted a
        first view takes part all the same: the living group may be the group of that view, and may have lost the link
        to this process before the view was sent."""
        forgotten = self.env.now > self.group_heard_at + 2 * self.env.config.join_retry
        unheard = self.looked and not self.group_found and forgotten
        if self.membership.phase is not Phase.JOINING or self.rebirth.missing():
            return False
        return unheard or self.accepted is not None

    # -- the others

    def found(self, event: Found) -> None:
        """Discovery names members of a living group, and other processes without a view."""
        now, oldest = self.env.now, self.env.now - 2 * self.env.config.join_retry
        self.looked, self.group_found = True, bool(event.members)
        if event.members:
            self.group_heard_at = now
        known = {one: heard for one, heard in self.seekers.items() if heard[1] >= oldest and one not in event.seekers}
        latest = {**{one: (contact, now) for one, contact in event.seekers.items()}, **known}
        self.seekers = dict(islice(latest.items(), MEMBERS_MAX))
        if not is_enough(self.env.expect, (self.env.me, *self.seekers)):
            self.since = NEVER
        elif self.since == NEVER:
            self.since = now
        self.membership.below.append(Contacts({one: contact for one, (contact, _) in self.seekers.items()}))

    # -- this process leads

    def go_on(self) -> None:
        """Begin an attempt when it is time, or go on with the one under way.  Sets the timer."""
        attempt, now = self.attempt, self.env.now
        if not self.is_open:
            self.attempt = None
        elif attempt is None:
            begin_at = self._begin_at()
            if begin_at <= now:
                self._begin()
            elif begin_at < NEVER:
                self.membership.wake_at(begin_at)
        elif now >= attempt.until:
            self._timeout(attempt)
        else:
            self.membership.wake_at(attempt.until)

    def _begin_at(self) -> int:
        """The time when this process may begin an attempt.  The first process by address begins at once.  Each other
        process begins a while later, unless that process hears of an attempt."""
        if self.since == NEVER:
            return NEVER
        patience = self.env.config.flush_timeout
        rank = sum(one < self.env.me for one in self.seekers)
        return max(self.since + rank * patience, self.leader_heard_at + (1 + rank) * patience, self.pause_until)

    def _begin(self) -> None:
        membership, env = self.membership, self.env
        ballot = Ballot(membership.highest + 1, env.me)
        contacts = {env.me: env.contact, **{one: contact for one, (contact, _) in self.seekers.items()}}
        self.attempt = BirthAttempt(ballot, contacts, env.now + env.config.ready_timeout)
        env.count("births begun")
        for one in sorted(self.seekers):
            membership.tell(one, Call(ballot, env.fingerprint, env.expect))
        self.on_call(env.me, Call(ballot, env.fingerprint, env.expect))
        membership.wake_at(env.now + env.config.ready_timeout)

    def _timeout(self, attempt: BirthAttempt) -> None:
        """Go on without the silent processes; fail if too few processes have answered."""
        if attempt.proposal is None and is_enough(self.env.expect, attempt.answers):
            self._propose(attempt)
        else:
            self._fail()

    def _fail(self) -> None:
        self.env.count("births that failed")
        self._pause()

    def _pause(self) -> None:
        """Begin the next attempt of this process after a random pause.  The longest pause grows with each failed
        attempt."""
        config = self.env.config
        self.attempt, self.failures = None, self.failures + 1
        longest = min(config.flush_timeout << min(self.failures, 10), PATIENCE_MAX)
        self.pause_until = self.env.now + config.ready_timeout + int(longest * self.env.rng.random())
        self.membership.wake_at(self.pause_until)

    def on_called(self, src: Address, head: Called) -> None:
        """An answer, or a refusal that names a higher ballot."""
        attempt = self.attempt
        self.membership.heard_of(head.bound)
        if attempt is None or head.ballot != attempt.ballot or src not in attempt.contacts:
            return
        if head.bound > attempt.ballot:
            self._fail()
        elif attempt.proposal is None and (head.accepted is not None or not attempt.lives):
            accepted = None if head.accepted is None else proposal_of(head.accepted, None)
            if (accepted is None) != (head.accepted is None):
                self.env.drop("invalid proposal")
                return
            if attempt.take_answer(src, accepted):
                self._propose(attempt)

    def _without_the_ended(self, attempt: BirthAttempt) -> dict[Address, Proposal | None]:
        """The answers, without the first views whose members have all ended: no process can ever install these."""
        ended = self.rebirth.have_ended
        return {
            src: None if accepted is None or ended(accepted.view.members) else accepted
            for src, accepted in attempt.answers.items()
        }

    def _propose(self, attempt: BirthAttempt) -> None:
        answers, history = self._without_the_ended(attempt), self.membership.new_history()
        proposal = first_view(attempt.ballot, answers, attempt.contacts, history)
        attempt.proposes(proposal, self.env.now + self.env.config.flush_timeout)
        self.membership.wake_at(attempt.until)
        first = First(difference(proposal, None))
        for one in sorted(attempt.answers):
            if one != self.env.me:
                self.membership.tell(one, first)
        self.on_first(self.env.me, first)

    def on_taken(self, src: Address, head: Taken) -> Proposal | None:
        """`src` has accepted; returns the first view when it is decided."""
        attempt = self.attempt
        if attempt is None or attempt.proposal is None or head.ballot != attempt.ballot:
            return None
        attempt.accepts(src)
        if not is_enough(self.env.expect, attempt.accepted):
            return None
        self._pause()  # if the view does not name this process
        return attempt.proposal

    # -- this process is called

    def on_call(self, src: Address, head: Call) -> None:
        """Be bound to the ballot, unless this process is bound to a higher one.  The record is written before the
        answer leaves."""
        membership = self.membership
        membership.heard_of(head.ballot)
        if head.fingerprint != self.env.fingerprint or head.expect != self.env.expect or head.ballot.leader != src:
            self.env.drop("birth of another profile")
        elif membership.phase is Phase.JOINING and not self.looked:
            self.env.drop("birth before this process has looked for members")
        elif not self.is_open:
            membership.tell(src, Lives(head.ballot))
        else:
            self._hears(src)
            if self.bound is None or head.ballot > self.bound:
                self.bound = head.ballot
                self._record("collect")
            accepted = None if self.accepted is None else difference(self.accepted, None)
            self.membership.tell(src, Called(head.ballot, self.bound, accepted))

    def on_lives(self, src: Address, head: Lives) -> None:
        """There is a living group.  Only processes that accepted a first view may go on with the birth."""
        attempt = self.attempt
        if attempt is None or head.ballot != attempt.ballot:
            return
        if self.accepted is None:
            self.group_heard_at = self.env.now
            self._fail()
        elif attempt.proposal is None:
            attempt.finds_a_group(src)

    def on_first(self, src: Address, head: First) -> None:
        """Accept the first view, unless this process is bound to a higher ballot."""
        ballot, proposal = head.difference.ballot, proposal_of(head.difference, None)
        self.membership.heard_of(ballot)
        right = proposal is not None and proposal.founds and ballot.leader == src
        if not self.is_open or proposal is None or not right or self.rebirth.is_given_up(proposal.view):
            self.env.drop("first view of a group that is not wanted")
            return
        self._hears(src)
        if self.bound is not None and ballot < self.bound:
            self.membership.tell(src, Called(ballot, self.bound))
            return
        self.bound, self.accepted = ballot, proposal
        self._record("accepted", proposal)
        self.membership.tell(src, Taken(ballot))

    def _hears(self, src: Address) -> None:
        if src != self.env.me:
            self.leader_heard_at = self.env.now

    # -- the first view

    def ends(self) -> None:
        """This process has a view."""
        self.attempt, self.bound, self.accepted, self.seekers = None, None, None, {}

    def _record(self, stage: str, proposal: Proposal | None = None) -> None:
        side = None if proposal is None else proposal.sides[0]
        self.membership.binding.record(stage, proposal, side, self.bound)
