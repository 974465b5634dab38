"""The leader's side of a view change: Ready, Collect, Propose, Install; and the handover of what was decided.

Whoever is ranked first among those it does not suspect leads.  All members have a Leader; most never use it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Contacts, VerifyLife
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.view import Ballot, ViewId

from . import decide
from .handover import Handover
from .heads import (
    Accept,
    Collect,
    CollectAck,
    Elsewhere,
    Install,
    InstallAck,
    Join,
    Low,
    Proposal,
    Propose,
    Ready,
    ReadyRsp,
    Refuse,
    Stuck,
)

if TYPE_CHECKING:
    from .machine import Gms


class Stage(Enum):
    """What an attempt waits for."""

    READY = "ready"  # who is there
    COLLECT = "collect"  # what they hold
    PROPOSE = "propose"  # that they hold everything up to the cut


class Attempt(msgspec.Struct):
    """One try at the next view."""

    ballot: Ballot
    stage: Stage
    since: int  # when the stage began
    joiners: dict[Address, str]
    ready: dict[Address, ReadyRsp] = {}
    asked: tuple[Address, ...] = ()  # who was sent Collect
    answers: dict[Address, CollectAck] = {}
    proposal: Proposal | None = None
    accepted: dict[Address, None] = {}


class Leader:
    """What a member does for its group while it leads; `gms` is the member."""

    def __init__(self, gms: Gms) -> None:
        self.gms = gms
        self.env = gms.env
        self.attempt: Attempt | None = None
        self.handover: Handover | None = None
        self.joiners: dict[Address, tuple[str, int]] = {}  # contact, and when it asked last
        self.leavers: dict[Address, None] = {}
        self.contested: dict[Address, Join] = {}  # a joiner under the name of this one, whose life is being verified
        self.answered: dict[Address, None] = {}  # those of them who answered, perhaps a question of before
        self.wanted = False  # somebody is bound and asked for an attempt
        self.told: ViewId | None = None  # the view that this member decided and told all who go on
        self.since = 0  # when the first of the joins and leaves came that wait now
        self.made: list[int] = []  # times of the last views in which somebody joined or left
        self.failures = 0  # attempts given up since the last view
        self.pause_until = 0

    # -- the queue: joins, leaves, and who is stuck

    def on_join(self, head: Join) -> None:
        """A joiner asks; what it does not fit in, and a name that is taken, it is told."""
        gms, view = self.gms, self.gms.view
        assert view is not None
        gms.below.append(Contacts({head.joiner: head.contact}))
        if head.joiner in view.members:
            return  # decided already, on its way
        if head.fingerprint != self.env.fingerprint:
            detail = f"the group is {self.env.fingerprint!r}, the joiner is {head.fingerprint!r}"
            gms.tell(head.joiner, Refuse("refused", detail[:255]))
            return
        former = self._former_life(head.joiner)
        if former is not None:
            self.contested[former] = head
            gms.below.append(VerifyLife(former))
            return
        if len(view.members) + len(self.joiners) >= MEMBERS_MAX and head.joiner not in self.joiners:
            self.env.drop("too many joiners")  # it asks again
            return
        self._queued()
        self.joiners[head.joiner] = (head.contact, self.env.now)

    def _former_life(self, joiner: Address) -> Address | None:
        """Another life under the joiner's name that may still be there."""
        view = self.gms.view
        assert view is not None
        for member in (*view.members, *self.joiners):
            if member.name == joiner.name and member != joiner and not self.gms.suspects.get(member, False):
                return member
        return None

    def former_life_answered(self, former: Address) -> None:
        """Only the second answer counts: the first may be to a question that was under way when it ended."""
        if former in self.contested and former not in self.answered:
            self.answered[former] = None
            self.gms.below.append(VerifyLife(former))
            return
        self.answered.pop(former, None)
        contender = self.contested.pop(former, None)
        if contender is not None:
            detail = f"the name {former.name!r} belongs to {former}, which is alive"
            self.gms.tell(contender.joiner, Refuse("name taken", detail))
            self.env.count("name taken")

    def former_life_ended(self, former: Address) -> None:
        self.joiners.pop(former, None)
        self.answered.pop(former, None)
        contender = self.contested.pop(former, None)
        if contender is not None:
            self._queued()
            self.joiners[contender.joiner] = (contender.contact, self.env.now)

    def on_leave(self, member: Address) -> None:
        self._queued()
        self.leavers[member] = None

    def _queued(self) -> None:
        if not self.joiners and not self.leavers:
            self.since = self.env.now

    def on_stuck(self, head: Stuck) -> None:
        self.gms.heard_of(head.ballot)
        self.wanted = True

    # -- what is to do

    def work(self) -> None:
        """Go on with whatever is under way, or begin what is due.  Called after everything that may change it."""
        gms = self.gms
        assert gms.view is not None
        leads = decide.leader(gms.view, gms.suspects) == self.env.me
        if leads and self.handover is None and gms.kept is not None and gms.kept.digest is not None:
            self.handover = Handover(gms, gms.kept.proposal)
            if self.told != gms.view.id:
                self.env.count("view handed on")
                self.handover.tell_old_members()  # whoever led before may have told only some
        if self.handover is not None:
            leaves = self.handover.view != gms.view.id  # this leader is not in the view that it decided
            if self.handover.go_on():
                self.handover = None
            if leaves:
                return
        if self.attempt is not None:
            self._go_on_with_attempt(leads)
        if not leads:
            self.joiners, self.leavers = {}, {}  # they ask whoever leads
        elif self.attempt is None:
            due = self._due()
            if due is not None and due <= self.env.now:
                self._start()
            elif due is not None:
                gms.wake_at(due)

    def _due(self) -> int | None:
        """When an attempt is to begin; None when nothing is to do."""
        gms, now = self.gms, self.env.now
        assert gms.view is not None
        if self.handover is not None and not self.handover.welcomed:
            return None  # the view that was decided last comes first
        if gms.part.bound is not None or self.wanted or any(member in gms.suspects for member in gms.view.members):
            return max(now, self.pause_until)
        self._forget_old_joiners()
        if not self.joiners and not self.leavers:
            return None
        config = self.env.config
        start = decide.when_to_start(self.since, config.batch, self.made, config.views_per_second)
        return max(start, self.pause_until)

    def _forget_old_joiners(self) -> None:
        """A joiner asks again and again; one that has stopped asking has gone."""
        oldest = self.env.now - 8 * self.env.config.join_retry
        self.joiners = {joiner: asked for joiner, asked in self.joiners.items() if asked[1] >= oldest}

    # -- an attempt

    def _start(self) -> None:
        gms, view = self.gms, self.gms.view
        assert view is not None
        self.wanted = False
        joiners = {} if gms.leaving else {joiner: contact for joiner, (contact, _) in self.joiners.items()}
        ballot = Ballot(decide.next_number(view, gms.highest), self.env.me)
        self.attempt = Attempt(ballot, Stage.READY, self.env.now, joiners)
        for member in (*view.members, *joiners):
            if member != self.env.me:
                gms.tell(member, Ready(ballot, view.id))
        self._go_on_with_attempt(True)

    def _go_on_with_attempt(self, leads: bool) -> None:
        attempt, now = self.attempt, self.env.now
        assert attempt is not None
        if not leads:
            self._give_up()
        elif attempt.stage is Stage.READY:
            self._go_on_with_ready(attempt)
        elif any(member in self.gms.suspects for member in attempt.asked):
            self._again(0)
        elif now >= attempt.since + self.env.config.flush_timeout:
            self._again(self._pause())
        else:
            self.gms.wake_at(attempt.since + self.env.config.flush_timeout)

    def _go_on_with_ready(self, attempt: Attempt) -> None:
        """Wait for those who are not suspected, and for joiners a while: a moment only if somebody is."""
        gms, view, me = self.gms, self.gms.view, self.env.me
        assert view is not None
        if any(m != me and m not in attempt.ready and m not in gms.suspects for m in view.members):
            return  # it answers, or it is going to be suspected
        silent = [joiner for joiner in attempt.joiners if joiner not in attempt.ready]
        hurry = any(member in gms.suspects for member in view.members)
        deadline = attempt.since + (self.env.config.batch if hurry else self.env.config.ready_timeout)
        if silent and self.env.now < deadline:
            gms.wake_at(deadline)
            return
        for joiner in silent:
            self.env.count("joiner silent")
            del attempt.joiners[joiner]
        if self._is_needed(attempt):
            self._collect(attempt)
        else:
            self.attempt = None

    def _is_needed(self, attempt: Attempt) -> bool:
        """Whether anything is left to do, now that all who are there have answered."""
        gms, view = self.gms, self.gms.view
        assert view is not None
        bound = gms.part.bound is not None or any(answer.bound is not None for answer in attempt.ready.values())
        return bound or bool(attempt.joiners or self.leavers) or any(m in gms.suspects for m in view.members)

    def on_ready_rsp(self, src: Address, head: ReadyRsp) -> None:
        gms, attempt = self.gms, self.attempt
        assert gms.view is not None
        if attempt is None or attempt.stage is not Stage.READY or head.ballot != attempt.ballot:
            return
        if gms.knows(src):
            if head.bound is not None:
                gms.heard_of(head.bound)
            if head.view != gms.view.id and not gms.give_installation(src, head.view):
                gms.ended(src)  # it is in a view that this one knows nothing of
                return
            gms.not_suspected(src)
            if head.leaving:
                self.leavers[src] = None
        elif head.view is not None:
            attempt.joiners.pop(src, None)  # somebody else took it in
            self.joiners.pop(src, None)
        attempt.ready[src] = head

    def _collect(self, attempt: Attempt) -> None:
        gms, view = self.gms, self.gms.view
        assert view is not None
        attempt.stage, attempt.since = Stage.COLLECT, self.env.now
        attempt.ballot = Ballot(decide.next_number(view, gms.highest), self.env.me)
        attempt.asked = tuple(member for member in view.members if member not in gms.suspects)
        gms.heard_of(attempt.ballot)
        for member in attempt.asked:
            gms.tell(member, Collect(attempt.ballot, view.id))
        gms.wake_at(attempt.since + self.env.config.flush_timeout)

    def on_collect_ack(self, src: Address, head: CollectAck) -> None:
        attempt = self.attempt
        if attempt is None or attempt.stage is not Stage.COLLECT or head.ballot != attempt.ballot:
            return
        if src in attempt.asked:
            attempt.answers[src] = head
            if len(attempt.answers) == len(attempt.asked):
                self._propose(attempt)

    def _propose(self, attempt: Attempt) -> None:
        """All asked have answered: the cut is the furthest that one of them holds, leavers included."""
        gms, view = self.gms, self.gms.view
        assert view is not None
        leaving = {m: None for m in attempt.asked if m in self.leavers or attempt.answers[m].leaving}
        go_on = tuple(member for member in attempt.asked if member not in leaving) or (self.env.me,)
        if self.env.me not in go_on:
            attempt.joiners = {}  # the digest they need is known only to those who install the view
        held = {member: answer.held for member, answer in attempt.answers.items()}
        cut, holders = decide.cut(held, view.members, self.env.me)
        attempt.stage, attempt.since = Stage.PROPOSE, self.env.now
        attempt.proposal = Proposal(
            attempt.ballot,
            view.id,
            decide.next_view(view, attempt.ballot, go_on, attempt.joiners),
            go_on,
            cut,
            holders,
            decide.stays_primary(view, gms.primary, attempt.asked),
            {member: attempt.answers[member].standing for member in go_on},
        )
        for member in attempt.asked:
            gms.tell(member, Propose(attempt.proposal))
        gms.wake_at(attempt.since + self.env.config.flush_timeout)

    def on_accept(self, src: Address, head: Accept) -> None:
        attempt = self.attempt
        if attempt is None or attempt.proposal is None or head.ballot != attempt.ballot:
            return
        attempt.accepted[src] = None
        if all(member in attempt.accepted for member in attempt.proposal.transitional):
            self._decided(attempt, attempt.proposal)

    def _decided(self, attempt: Attempt, proposal: Proposal) -> None:
        self.attempt, self.failures = None, 0
        for member in attempt.asked:
            if member != self.env.me:
                self.gms.tell(member, Install(proposal, None))
        if self.env.me in proposal.transitional:
            self.told = proposal.view.id
            self.gms.install(proposal, None)
        else:
            self.handover = Handover(self.gms, proposal)

    def on_low(self, head: Low) -> None:
        if self.attempt is not None and head.ballot == self.attempt.ballot:
            self.gms.heard_of(head.named)
            self._again(self._pause())

    def _again(self, pause: int) -> None:
        """This attempt leads nowhere: those asked stay bound until the next one, after a pause."""
        self.attempt = None
        self.failures += 1
        self.wanted = True
        self.pause_until = self.env.now + pause
        self.env.count("flush restarted")
        if pause:
            self.gms.wake_at(self.pause_until)

    def _pause(self) -> int:
        """Grows with failures and rank, so that two who lead do not meet again and again."""
        view = self.gms.view
        assert view is not None
        longest = min(self.env.config.flush_timeout, self.env.config.batch << min(self.failures, 10))
        return 1 + int(longest * (view.members.index(self.env.me) + self.env.rng.random()))

    def _give_up(self) -> None:
        """Somebody ranked before is back, and leads; if members are bound to this attempt, it must take over."""
        gms, attempt = self.gms, self.attempt
        assert gms.view is not None and attempt is not None
        self.attempt = None
        self.env.count("flush given up")
        first = decide.leader(gms.view, gms.suspects)
        gms.part.heard_leader()
        if attempt.stage is not Stage.READY and first is not None:
            gms.tell(first, Stuck(attempt.ballot, gms.view.id))

    def overtaken(self, ballot: Ballot) -> None:
        """This member was bound to somebody else's higher ballot: its own attempt is over."""
        if self.attempt is not None and self.attempt.stage is not Stage.READY and ballot > self.attempt.ballot:
            self.attempt = None
            self.env.count("flush given up")

    # -- after the decision

    def on_install_ack(self, src: Address, head: InstallAck) -> None:
        if self.handover is not None and head.view == self.handover.view:
            self.handover.acked[src] = None

    def on_elsewhere(self, src: Address, head: Elsewhere) -> None:
        """A member that went into another view counts as ended in this one."""
        self.joiners.pop(src, None)
        view = self.gms.view
        if view is not None and head.asked == view.id and src in view.members:
            self.gms.ended(src)

    # -- a new view

    def installed(self, changed: bool) -> None:
        """This member installed a view: what waited for the old one is over."""
        view = self.gms.view
        assert view is not None
        self.attempt, self.handover, self.wanted, self.failures = None, None, False, 0
        self.joiners = {joiner: asked for joiner, asked in self.joiners.items() if joiner not in view.members}
        self.leavers = {member: None for member in self.leavers if member in view.members}
        self.contested, self.answered, self.since = {}, {}, self.env.now
        if changed:
            self.made = [*self.made, self.env.now][-self.env.config.views_per_second :]
