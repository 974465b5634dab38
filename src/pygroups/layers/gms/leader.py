"""The leader's side of a view change: Ready, Collect, Propose, Install; and the handover of what was decided.

Whoever is ranked first among those it does not suspect leads.  All members have a Leader; most never use it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from pygroups.core.address import Address
from pygroups.core.layer import NEVER
from pygroups.core.view import Ballot, ViewId

from . import decide
from .admission import Admission
from .handover import Handover
from .heads import (
    Accept,
    Collect,
    CollectAck,
    Elsewhere,
    Fetches,
    Install,
    InstallAck,
    Low,
    Proposal,
    Propose,
    ReadyRsp,
    Stuck,
)
from .roll import AnswerTimes, RollCall
from .verification import Verification

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
    since: int  # when the stage began, or an answer came in it
    joiners: dict[Address, str]
    roll: RollCall
    asked: tuple[Address, ...] = ()  # who was sent Collect
    answers: dict[Address, CollectAck] = {}
    proposal: Proposal | None = None
    accepted: dict[Address, None] = {}


class Leader:
    """What a member does for its group while it leads; `gms` is the member."""

    def __init__(self, gms: Gms) -> None:
        self.gms = gms
        self.env = gms.env
        self.admission = Admission(gms)
        self.verification = Verification(gms)
        self.attempt: Attempt | None = None
        self.handover: Handover | None = None
        self.times = AnswerTimes(gms.env.config.patience_max)
        self.wanted = False  # somebody is bound and asked for an attempt
        self.told: ViewId | None = None  # the view that this member decided and told all who go on
        self.failures = 0  # attempts given up since the last view
        self.late = 0  # those of them in which an answer did not come in time
        self.pause_until = 0

    def on_stuck(self, head: Stuck) -> None:
        self.gms.heard_of(head.ballot)
        self.wanted = True

    # -- what is to do

    def work(self) -> None:
        """Go on with whatever is under way, or begin what is due.  Called after everything that may change it."""
        gms = self.gms
        assert gms.view is not None
        self._is_heard_again()
        self.verification.question_the_leader()
        leads = decide.leader(gms.view, gms.suspicions) == self.env.me
        kept = gms.elsewhere.kept
        if leads and self.handover is None and kept is not None and kept.digest is not None:
            self.handover = Handover(gms, kept.proposal)
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
            self.admission.forget()  # they ask whoever leads
            self.verification.due = NEVER
        elif self.attempt is None:
            due = self._due()
            if due is not None and due <= self.env.now:
                self._start()
            elif due is not None:
                gms.wake_at(due)

    def most_are_deaf(self) -> None:
        """Most leave Ready unanswered.  If they say that they do not hear this member, the next in rank has to lead,
        which may hear it well and would never know."""
        gms = self.gms
        assert gms.view is not None
        leads = decide.leader(gms.view, gms.suspicions) == self.env.me  # who does not may only ask those before it
        if leads and gms.suspicions.is_unheard(self.env.me, gms.view.members):
            self.env.count("unheard leader gives way")
            gms.suspicions.gives_way(self.env.me)
            gms.accusing.tell()

    def _is_heard_again(self) -> None:
        gms, me = self.gms, self.env.me
        assert gms.view is not None
        if me in gms.suspicions and not gms.suspicions.is_unheard(me, gms.view.members):
            gms.suspicions.heard(me)
            gms.accusing.tell()

    def next_ballot(self) -> Ballot:
        assert self.gms.view is not None
        return Ballot(decide.next_number(self.gms.view, self.gms.highest), self.env.me)

    def _due(self) -> int | None:
        """When an attempt is to begin; None when nothing is to do."""
        gms, now = self.gms, self.env.now
        assert gms.view is not None
        if self.handover is not None and not self.handover.welcomed:
            return None  # the view that was decided last comes first
        if gms.part.bound is not None or self.wanted or any(m in gms.suspicions for m in gms.view.members):
            return max(now, self.pause_until)
        due = min(self.admission.due() or NEVER, self.verification.due)
        return None if due == NEVER else max(due, self.pause_until)

    # -- an attempt

    def _start(self) -> None:
        gms, view = self.gms, self.gms.view
        assert view is not None
        self.wanted, self.verification.due = False, NEVER
        waiting = {} if gms.leaving else self.admission.joiners
        joiners = {joiner: contact for joiner, (contact, _) in waiting.items()}
        ballot = self.next_ballot()
        roll = RollCall(gms, ballot, view.members, joiners)
        self.attempt = Attempt(ballot, Stage.READY, self.env.now, joiners, roll)
        self._go_on_with_attempt(True)

    def _go_on_with_attempt(self, leads: bool) -> None:
        attempt = self.attempt
        assert attempt is not None
        if not leads:
            self._give_up()
        elif attempt.stage is Stage.READY:
            self._go_on_with_ready(attempt)
        elif any(member in self.gms.suspicions for member in attempt.asked):
            self._again(0)
        elif self.env.now >= attempt.since + self.patience(attempt.asked):
            self.late += 1
            self._again(self._pause())
        else:
            self.gms.wake_at(attempt.since + self.patience(attempt.asked))

    def patience(self, members: tuple[Address, ...]) -> int:
        """How long a stage waits for an answer of these: longer after each attempt that came too late."""
        config = self.env.config
        grown = config.flush_timeout << min(self.late, 10)
        return max(config.flush_timeout, min(max(grown, self.times.patience(members)), config.patience_max))

    def _go_on_with_ready(self, attempt: Attempt) -> None:
        if not attempt.roll.is_complete():
            return
        for joiner in attempt.roll.silent_joiners():
            if joiner in attempt.joiners:
                self.env.count("joiner silent")
                del attempt.joiners[joiner]
                self.admission.left_unanswered(joiner)
        self.verification.leave_out_pairs()
        if self._is_needed(attempt):
            self._collect(attempt)
        else:
            self.attempt = None

    def _is_needed(self, attempt: Attempt) -> bool:
        """Whether anything is left to do, now that all who are there have answered."""
        gms, view = self.gms, self.gms.view
        assert view is not None
        answers = attempt.roll.answers.values()
        if gms.part.bound is not None or any(rsp.bound is not None and rsp.view == view.id for rsp in answers):
            return True
        admission = self.admission
        wanted = bool(attempt.joiners or admission.leavers or admission.renewal)
        return wanted or any(member in gms.suspicions for member in view.members)

    def on_ready_rsp(self, src: Address, head: ReadyRsp) -> None:
        gms, view = self.gms, self.gms.view
        assert view is not None
        if head.ballot.leader != self.env.me:
            self.env.drop("answer to somebody else's Ready")
            return
        self.times.answered(src, self.env.now)
        if not gms.knows(src):
            self._joiner_answers(src, head)
            return
        if head.ballot.number <= view.id.number:  # to a Ready from before this view
            gms.suspicions.answered(src)
            return
        if head.view != view.id and not gms.elsewhere.give_installation(src, head.view):
            if gms.elsewhere.was_here(head.view):
                gms.suspicions.answered(src)  # to a Ready from before this view, whose ballot was above this view's
            else:
                gms.suspicions.elsewhere(src)  # it is in a view that this one knows nothing of
            return
        gms.suspicions.answered(src)
        if head.bound is not None:
            gms.heard_of(head.bound)
        if head.leaving:
            self.admission.leavers[src] = None
        self._count(src, head)

    def _joiner_answers(self, src: Address, head: ReadyRsp) -> None:
        if head.view is not None:
            self.admission.is_elsewhere(src)  # somebody else took it in
            if self.attempt is not None:
                self.attempt.joiners.pop(src, None)
        else:
            self.admission.has_answered(src)
        self._count(src, head)

    def _count(self, src: Address, head: ReadyRsp) -> None:
        """An answer to an earlier roll call of this view is an answer, too."""
        question = self.verification.question
        if question is not None:
            question.answers[src] = head
        if self.attempt is not None and self.attempt.stage is Stage.READY:
            self.attempt.roll.answers[src] = head

    def _collect(self, attempt: Attempt) -> None:
        gms, view = self.gms, self.gms.view
        assert view is not None
        attempt.stage, attempt.since = Stage.COLLECT, self.env.now
        attempt.ballot = Ballot(decide.next_number(view, gms.highest), self.env.me)
        attempt.asked = tuple(member for member in view.members if member not in gms.suspicions)
        gms.heard_of(attempt.ballot)
        for member in attempt.asked:
            gms.tell(member, Collect(attempt.ballot, view.id))
        gms.wake_at(attempt.since + self.patience(attempt.asked))

    def on_collect_ack(self, src: Address, head: CollectAck) -> None:
        attempt = self.attempt
        if attempt is None or attempt.stage is not Stage.COLLECT or head.ballot != attempt.ballot:
            return
        if src in attempt.asked:
            attempt.answers[src], attempt.since = head, self.env.now
            if len(attempt.answers) == len(attempt.asked):
                self._propose(attempt)

    def _propose(self, attempt: Attempt) -> None:
        """All asked have answered: the cut is the furthest that one of them holds, leavers included."""
        gms, view = self.gms, self.gms.view
        assert view is not None
        leaving = {m: None for m in attempt.asked if m in self.admission.leavers or attempt.answers[m].leaving}
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
        gms.wake_at(attempt.since + self.patience(attempt.asked))

    def on_accept(self, src: Address, head: Accept) -> None:
        attempt = self.attempt
        if attempt is None or attempt.proposal is None or head.ballot != attempt.ballot:
            return
        attempt.accepted[src], attempt.since = None, self.env.now
        if all(member in attempt.accepted for member in attempt.proposal.transitional):
            self._decided(attempt, attempt.proposal)

    def on_fetches(self, src: Address, head: Fetches) -> None:
        """It gets what it misses, and would get no more by another attempt."""
        attempt = self.attempt
        if attempt is None or attempt.proposal is None or head.ballot != attempt.ballot:
            return
        if src in attempt.asked and src not in attempt.accepted:
            attempt.since = self.env.now

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
        """Grows with failures and with the rank among those not suspected, so that two who lead do not meet again."""
        assert self.gms.view is not None
        longest = min(self.env.config.flush_timeout, self.env.config.batch << min(self.failures, 10))
        rank = decide.rank(self.gms.view, self.gms.suspicions, self.env.me)
        return 1 + int(longest * (rank + self.env.rng.random()))

    def _give_up(self) -> None:
        """Somebody ranked before is back, and leads; if members are bound to this attempt, it must take over."""
        gms, attempt = self.gms, self.attempt
        assert gms.view is not None and attempt is not None
        self.attempt = None
        self.env.count("flush given up")
        first = decide.leader(gms.view, gms.suspicions)
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
            self.handover.acknowledged(src)

    def on_elsewhere(self, src: Address, head: Elsewhere) -> None:
        """A member that went into another view counts as ended in this one."""
        self.admission.is_elsewhere(src)
        view = self.gms.view
        if view is not None and head.asked == view.id and src in view.members:
            self.gms.suspicions.elsewhere(src)

    # -- a new view

    def installed(self, changed: bool) -> None:
        """This member installed a view: what waited for the old one is over."""
        view = self.gms.view
        assert view is not None
        self.attempt, self.handover = None, None
        self.wanted, self.failures, self.late = False, 0, 0
        self.admission.installed(changed)
        self.verification.installed()
        self.times.keep((*view.members, *self.admission.joiners, *self.admission.silent))
