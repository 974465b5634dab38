"""A view change at the leader: attempts begin, are carried out, and end.

attempt.py has the order of Ready, Collect, Propose and Install.  This file has the messages, timers and pauses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.layer import NEVER
from pygroups.core.limits import PATIENCE_MAX
from pygroups.core.merge_events import MergeFailed, MergeWanted
from pygroups.core.tables import Tables, under
from pygroups.core.view import Ballot

from ..decisions import decide
from ..decisions.attempt import ENDS, Attempt, Deed, Input, Stage
from ..decisions.merge_attempt import MergeAttempt
from ..decisions.proposal import Proposal, differences
from ..decisions.suspicion import UNANSWERED_MAX
from ..heads import Accept, Collect, CollectAck, CollectRefused, Fetches, Low, Propose, ReadyRsp, Stuck
from ..member.answering import Answering
from .roll_call import Asker, RollCall
from .verification import Verification


class ViewChange:
    """The attempt under way, and the failures of earlier ones."""

    tables: ClassVar[Tables] = {
        **under("attempt", MergeAttempt.tables),
        **under("roll", RollCall.tables),
    }

    def __init__(self, asker: Asker, verification: Verification, answering: Answering) -> None:
        self.asker = asker
        self.membership, self.admission = asker.membership, asker.admission
        self.env = asker.membership.env
        self.verification = verification
        self.answering = answering
        self.attempt: Attempt | None = None
        self.roll: RollCall | None = None  # of the attempt, in its first stage
        self.wanted = False  # a bound member asked for an attempt
        self.failures = 0  # attempts that failed since the last view
        self.late = 0  # the failed attempts in which an answer did not come in time
        self.pause_until = 0
        self.hurried_at = NEVER  # since when a stage does not wait longer after late attempts

    def installed(self) -> None:
        """This member installed a view."""
        self.attempt, self.roll = None, None
        self.wanted, self.failures, self.late = False, 0, 0

    def abandon(self) -> None:
        """A view is decided: no attempt of this member is wanted any more."""
        self.attempt = None

    # -- an attempt begins

    def want(self) -> None:
        """A bound member asks for an attempt."""
        self.wanted = True

    def due(self) -> int | None:
        """The time in microseconds when an attempt is to begin; None if nothing is to do."""
        membership, now = self.membership, self.env.now
        if membership.binding.decided is not None or not membership.reaches_enough():
            return None
        if self.answering.is_held_by_a_merge() and not self.wanted:
            return max(self.answering.released_at(), self.pause_until)
        anybody = any(member in membership.suspicions for member in membership.current.members)
        if membership.binding.ballot is not None or self.wanted or anybody or membership.outgoing.expelled:
            return max(now, self.pause_until)
        due = min(self.admission.due() or NEVER, self.verification.due)
        return None if due == NEVER else max(due, self.pause_until)

    def begin(self) -> None:
        """Send Ready to all members and joiners."""
        membership = self.membership
        self.verification.settled()
        self.wanted, self.hurried_at = False, NEVER
        waiting = {} if membership.leaving else self.admission.joiners
        joiners = {joiner: contact for joiner, (contact, _) in waiting.items()}
        ballot = membership.next_ballot()
        self.roll = RollCall(self.asker, ballot, membership.current.members, joiners)
        quorum, vouched, lost = membership.quorum, membership.outgoing.vouched, membership.binding.lost
        self.attempt = Attempt(membership.current, ballot, joiners, self.env.now, quorum, vouched, lost)
        self.go_on(leads=True)

    def begin_merge(self, wanted: MergeWanted, number: int = 1) -> None:
        """Send Collect to the members of several views that take part in a merge."""
        membership = self.membership
        membership.rise_above(wanted.highest)
        ballot = membership.next_ballot()
        membership.heard_of(ballot)
        self.hurried_at = NEVER
        choose = self.env.chooses
        self.attempt = attempt = MergeAttempt(membership.current, wanted, ballot, self.env.now, number, choose)
        for member in attempt.asked:
            membership.tell(member, Collect(ballot, attempt.view_of(member).id, wanted.merge))
        membership.wake_at(attempt.since + self.patience(attempt.asked))

    def heard_again(self, member: Address, others_until: int = 0) -> None:
        """`member` is heard again, so an attempt that failed without this member may succeed now.  Other members may
        follow until the given time."""
        self.hurry(member)
        self.failures, self.pause_until = 0, max(min(self.pause_until, self.env.now), others_until)
        self.membership.wake_at(self.pause_until)

    def end_pause(self, member: Address) -> None:
        """`member`, which left Ready unanswered, now answers, so the pause ends.  The patience of later attempts stays,
        because the member may be slow."""
        self.hurry(member)
        self.pause_until = min(self.pause_until, self.env.now)

    def shorten_pause(self) -> None:
        """A member that may have left Ready unanswered asks itself: the long pause of a leader with too few members
        ends.  Where only one direction works this happens all the time, so some pause stays."""
        self.pause_until = min(self.pause_until, self.env.now + self.env.config.flush_timeout)
        self.membership.wake_at(self.pause_until)

    def hurry(self, member: Address) -> None:
        """Let the stage under way end in a normal time: it waits without `member`, or for an answer of `member`, whose
        question may have been lost with a connection that was given up."""
        attempt = self.attempt
        waits = attempt is not None and attempt.stage in (Stage.COLLECT, Stage.PROPOSE)
        if waits and attempt is not None and (member not in attempt.asked or member in attempt.silent()):
            self.hurried_at = min(self.hurried_at, self.env.now)
            self.membership.wake_at(self._ends_at(attempt))

    def is_unheard(self) -> bool:
        """Whether most members left two Ready of the attempt under way unanswered."""
        return self.attempt is not None and self.roll is not None and self.roll.unheard >= UNANSWERED_MAX

    # -- the course of an attempt

    def go_on(self, *, leads: bool) -> None:
        """Check whether the attempt can go on, or has to end.  `leads` is True while this member still leads."""
        attempt = self.attempt
        assert attempt is not None
        if not leads:
            self._do(attempt.take(Input.OUTRANKED))
        elif attempt.stage is Stage.READY:
            self._call_the_roll(attempt)
        elif any(self.membership.is_missing(member) for member in attempt.asked):
            self._do(attempt.take(Input.SUSPECTED))
        elif self.env.now >= self._ends_at(attempt):
            self.late += 1
            for member in attempt.silent() if self.membership.outgoing.spoken_for else ():
                self.membership.outgoing.stop_speaking(member)
            self._do(attempt.late())
        else:
            self.membership.wake_at(self._ends_at(attempt))

    def _ends_at(self, attempt: Attempt) -> int:
        """The time at which the present stage has waited long enough for answers."""
        ends_at = attempt.since + self.patience(attempt.asked)
        if self.hurried_at == NEVER:
            return ends_at
        return min(ends_at, max(attempt.since, self.hurried_at) + self.patience(attempt.asked, late=0))

    def patience(self, members: Iterable[Address], late: int | None = None) -> int:
        """The time, in microseconds, that a stage waits for answers of `members`: longer after each late attempt."""
        config = self.env.config
        grown = config.flush_timeout << min(self.late if late is None else late, 10)
        return max(config.flush_timeout, min(max(grown, self.asker.times.patience(members)), PATIENCE_MAX))

    def _call_the_roll(self, attempt: Attempt) -> None:
        assert self.roll is not None
        if not self.roll.go_on():
            return
        for joiner in self.roll.silent_joiners():
            if joiner in attempt.joiners:
                self.env.count("joiner silent")
                attempt.goes_without(joiner)
                self.admission.left_unanswered(joiner)
        self.verification.leave_out_pairs()
        here = [member for member in attempt.view.members if not self.membership.is_missing(member)]
        if not self._is_wanted(attempt, self.roll):
            self._do(attempt.take(Input.CALM))
        else:
            enough = attempt.quorum.may_go_on(attempt.view, here, attempt.vouched)
            self._do(attempt.take(Input.WANTED if enough else Input.FEW))

    def _is_wanted(self, attempt: Attempt, roll: RollCall) -> bool:
        """Whether anything is left to do, now that the roll call is over."""
        membership, view = self.membership, self.membership.current
        answers = roll.answers.values()
        if membership.binding.ballot is not None or any(
            rsp.bound is not None and rsp.view == view.id for rsp in answers
        ):
            return True
        admission = self.admission
        wanted = bool(attempt.joiners or admission.leavers or admission.renewal or membership.outgoing.expelled)
        return wanted or any(member in membership.suspicions for member in view.members)

    # -- answers

    def on_ready_rsp(self, src: Address, head: ReadyRsp) -> None:
        """An answer to an earlier roll call of this view is an answer, too."""
        if self.attempt is not None and self.attempt.stage is Stage.READY and self.roll is not None:
            self.roll.on_answer(src, head)

    def joined_elsewhere(self, joiner: Address) -> None:
        """Another group, or another leader, took `joiner` in."""
        if self.attempt is not None:
            self.attempt.goes_without(joiner)

    def on_collect_ack(self, src: Address, head: CollectAck) -> None:
        """Pass CollectAck on to the attempt under way."""
        attempt = self.attempt
        if attempt is not None and src not in attempt.asked:
            self.env.drop("answer to no Collect")
        elif attempt is not None:
            self.membership.take_vouched(head.vouched)
            self._do(attempt.on_collect_ack(src, head, self.env.now))

    def on_accept(self, src: Address, head: Accept) -> Proposal | None:
        """Pass Accept on to the attempt under way.  Returns the proposal if this Accept decides it."""
        attempt = self.attempt
        if attempt is None:
            return None
        deed = attempt.on_accept(src, head, self.env.now)
        if deed is None:
            self.env.drop("answer to no Propose")
        self._do(deed)
        return attempt.proposal if deed is Deed.INSTALL else None

    def on_fetches(self, src: Address, head: Fetches) -> None:
        """Pass Fetches on to the attempt under way."""
        if self.attempt is None or src not in self.attempt.asked:
            self.env.drop("answer to no Propose")
        else:
            self._do(self.attempt.on_fetches(src, head, self.env.now))

    def on_low(self, src: Address, head: Low) -> None:
        """Pass Low on to the attempt under way.  Only a process that was asked can overtake it."""
        if self.attempt is None or src not in self.attempt.asked:
            self.env.drop("refusal of no Collect")
        elif head.ballot == self.attempt.ballot:
            self.membership.heard_of(head.named)
            self._do(self.attempt.on_low(head))

    def on_refused(self, src: Address, head: CollectRefused) -> None:
        """`src` takes no part in a merge."""
        if isinstance(self.attempt, MergeAttempt) and head.ballot == self.attempt.ballot:
            self._do(self.attempt.leave_out((src,)))

    def overtaken(self, ballot: Ballot) -> None:
        """This member answered the higher `ballot` of another leader."""
        if self.attempt is not None:
            self._do(self.attempt.overtaken(ballot))

    # -- deeds

    def _do(self, deed: Deed | None) -> None:
        attempt = self.attempt
        assert attempt is not None
        if deed is Deed.COLLECT:
            self._collect(attempt)
        elif deed is Deed.PROPOSE:
            self._propose(attempt)
        elif deed is Deed.INSTALL:
            assert attempt.proposal is not None
            self.attempt, self.failures = None, 0
            self.membership.tell_decided(attempt.asked, attempt.proposal)
        elif deed is Deed.AGAIN_LATER and isinstance(attempt, MergeAttempt) and (wanted := attempt.again()):
            self.env.count("merge tried again")
            self.begin_merge(wanted, attempt.number + 1)
        elif deed is Deed.AGAIN_NOW:
            self._again(0)
        elif deed is Deed.AGAIN_LATER:
            self._again(self._pause())
        elif deed is Deed.AGAIN_MUCH_LATER:
            config = self.env.config
            self._again(min(config.flush_timeout << min(self.failures, 10), PATIENCE_MAX))
        elif attempt.stage is Stage.GIVEN_UP:
            self._give_up(attempt, hands_on=deed is Deed.HAND_ON)
        elif attempt.stage is Stage.OVERTAKEN:
            self.attempt = None
            self.env.count("flush given up")
        elif attempt.stage is Stage.UNNEEDED:
            self.attempt = None
        if isinstance(attempt, MergeAttempt) and attempt.stage in ENDS and attempt.stage is not Stage.DECIDED:
            self._merge_ended(attempt)

    def _collect(self, attempt: Attempt) -> None:
        membership, view = self.membership, self.membership.current
        here = (member for member in view.members if not membership.is_missing(member))
        attempt.collects(membership.next_ballot(), here, self.env.now)
        membership.heard_of(attempt.ballot)
        for member in attempt.asked:
            membership.tell(member, Collect(attempt.ballot, view.id, None, tuple(membership.outgoing.vouched)))
        membership.wake_at(attempt.since + self.patience(attempt.asked))

    def _propose(self, attempt: Attempt) -> None:
        membership = self.membership
        leavers, expelled = self.admission.leavers, membership.outgoing.by_policy(attempt.asked)
        proposal = attempt.proposes(self.env.me, leavers, self.env.now, expelled)
        for member, difference in differences(proposal, attempt.asked):
            membership.tell(member, Propose(difference))
        membership.wake_at(attempt.since + self.patience(attempt.asked))

    def _again(self, pause: int) -> None:
        """The attempt failed: its members stay bound until the next one, after a pause."""
        self.attempt = None
        self.failures += 1
        self.wanted = True
        self.pause_until = self.env.now + pause
        self.env.count("flush restarted")
        if pause:
            self.membership.wake_at(self.pause_until)

    def _merge_ended(self, attempt: MergeAttempt) -> None:
        """No merged view came of `attempt`, and it is not tried again: report this to MERGE2."""
        if not isinstance(self.attempt, MergeAttempt):
            self.env.count("merge failed")
            self.membership.below.append(MergeFailed(attempt.wanted.merge))

    def _pause(self) -> int:
        """The pause grows with failures and with the rank of this member, so that two leaders do not collide again."""
        longest = min(self.env.config.flush_timeout, self.env.config.batch << min(self.failures, 10))
        rank = decide.rank(self.membership.current, self.membership.suspicions, self.env.me)
        return 1 + int(longest * (rank + self.env.rng.random()))

    def _give_up(self, attempt: Attempt, *, hands_on: bool) -> None:
        """Another member leads again.  If members are bound to this attempt, the other member must take over."""
        membership = self.membership
        self.attempt = None
        self.env.count("flush given up")
        self.answering.heard_leader()
        first = membership.leader()
        if hands_on and first is not None:
            membership.tell(first, Stuck(attempt.ballot, membership.current.id))
