"""Leading: the work of the first member that is not suspected.

All members have this part, and most never use it.  The leader first hands over the view that was decided last, and then
begins the next view change when one is due.
"""

from __future__ import annotations

from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.limits import PATIENCE_MAX
from pygroups.core.tables import Tables, under
from pygroups.core.view import ViewId

from ..decisions.answer_times import AnswerTimes
from ..decisions.proposal import Proposal
from ..heads import Elsewhere, InstallAck, ReadyRsp, Stuck
from ..member.accusing import Accusing
from ..member.answering import Answering
from ..member.confirming import Confirming
from ..member.other_views import OtherViews
from ..membership import Membership
from .admission import Admission
from .handover import Handover, Parting
from .regaining import Regaining
from .roll_call import Asker
from .verification import Verification
from .view_change import ViewChange


class Leading:
    """Joins and leaves that wait, the view change under way, and the handover of the view that was decided."""

    tables: ClassVar[Tables] = {
        **under("admission", Admission.tables),
        **under("change", ViewChange.tables),
        **under("confirming", Confirming.tables),
        **under("handover", Handover.tables),
        **under("times", AnswerTimes.tables),
        **under("verification", Verification.tables),
    }

    def __init__(
        self, membership: Membership, other_views: OtherViews, accusing: Accusing, answering: Answering
    ) -> None:
        self.membership = membership
        self.other_views = other_views
        self.accusing = accusing
        self.env = membership.env
        self.times = AnswerTimes(PATIENCE_MAX, self.env.config.connection_age)
        self.confirming = Confirming(membership, self.times)
        self.admission = Admission(membership, self.times)
        self.regaining = Regaining(membership, self.admission)
        asker = Asker(membership, self.times, accusing, self.admission)
        self.verification = Verification(asker)
        self.change = ViewChange(asker, self.verification, answering)
        self.handover: Handover | None = None
        self.told: ViewId | None = None  # the view that this member decided and sent to all members that go on

    # -- open work

    def work(self) -> None:
        """Go on with the work under way, or begin the work that is due.  Called after each event."""
        self.accusing.lead_again_if_heard()
        self.confirming.go_on()
        handed_over = self.other_views.kept is None or not self.membership.quorum.one_chain
        self.verification.question_the_leader(handed_over=handed_over)
        leads = self.membership.leads()
        self._hand_over_anew(leads)
        if self._go_on_handing_over():
            return
        if self.change.attempt is not None:
            self.change.go_on(leads=leads)
        if not leads:
            self.admission.forget()  # joiners and leavers ask the leader
            self.verification.settled()
        elif self.change.attempt is None:
            self._begin_if_due()

    def _begin_if_due(self) -> None:
        if self.handover is not None and not self.handover.welcomed:
            return  # the view that was decided last comes first
        due = self.change.due()
        if due is not None and due <= self.env.now:
            self.change.begin()
        elif due is not None:
            self.membership.wake_at(due)

    # -- the view that was decided last

    def _hand_over_anew(self, leads: bool) -> None:
        """A new leader that does not know that all members have the view hands the view over again."""
        kept = self.other_views.kept
        if leads and self.handover is None and kept is not None and kept.starts is not None:
            self.handover = self._new_handover(kept.proposal)
            if self.told != self.membership.current.id:
                self.env.count("view handed on")
                self.handover.tell_old_members()  # the leader before may have reached only some members

    def _go_on_handing_over(self) -> bool:
        """Go on with the handover.  Returns whether the handed view lacks this member.  Such a member only waits for
        the end of the handover."""
        handover = self.handover
        if handover is None:
            return False
        leaves = handover.view != self.membership.current.id
        was_overdue = handover.overdue
        if handover.go_on():
            self.handover = None
        if handover.overdue and not was_overdue:
            self.verification.ask_now()
        return leaves

    def _new_handover(self, proposal: Proposal) -> Handover:
        return Handover(self.membership, self.other_views, proposal, self.change.patience)

    def decided(self, proposal: Proposal) -> None:
        """This member decided `proposal`, and sends it to all members that go on."""
        self.told = proposal.view.id

    def goes_after_all(self, proposal: Proposal) -> None:
        """This member has no place in the decided view, and leaves when all members have the view."""
        self.handover = self._new_handover(proposal)

    def goes_after_enough(self, proposal: Proposal) -> None:
        """This member has no place in the decided view, and leaves when enough members have the view to go on alone."""
        self.membership.binding.follow(proposal)
        self.change.abandon()
        self.handover = Parting(self.membership, self.other_views, proposal, self.change.patience)
        self.handover.tell_old_members()

    def on_install_ack(self, src: Address, head: InstallAck) -> None:
        """`src` has installed a view."""
        if self.handover is not None and head.view == self.handover.view:
            self.handover.acknowledged(src)

    # -- answers and calls

    def on_ready_rsp(self, src: Address, head: ReadyRsp) -> None:
        """A member or a joiner is there, or is in another view."""
        membership, view = self.membership, self.membership.current
        if head.ballot.leader != self.env.me:
            self.env.drop("answer to the Ready of another process")
            return
        self.times.answered(src, self.env.now)
        self.confirming.on_ready_rsp(src, head)
        if not membership.knows(src):
            self._joiner_answers(src, head)
            return
        if head.ballot.number <= view.id.number:  # to a Ready from before this view
            membership.suspicions.answered(src)
            return
        if head.view != view.id and not self.other_views.give_installation(src, head.view):
            if self.other_views.was_here(head.view):
                # To a Ready from before this view, whose ballot was above this view's.
                membership.suspicions.answered(src)
            else:
                membership.suspicions.elsewhere(src)  # `src` is in a view that this member does not know
            return
        membership.suspicions.answered(src)
        if head.bound is not None:
            membership.heard_of(head.bound)
        if head.leaving:
            self.admission.leaves_too(src)
        self._take_answer(src, head)

    def _joiner_answers(self, src: Address, head: ReadyRsp) -> None:
        if head.view is not None:
            self.admission.remove(src)  # another group or leader took it in
            self.change.joined_elsewhere(src)
        else:
            self.admission.on_answer(src)
        self._take_answer(src, head)

    def _take_answer(self, src: Address, head: ReadyRsp) -> None:
        self.verification.on_ready_rsp(src, head)
        self.change.on_ready_rsp(src, head)

    def on_elsewhere(self, src: Address, head: Elsewhere) -> None:
        """A member that is in another view counts as ended in this one."""
        self.admission.remove(src)
        if self.membership.knows(src) and head.asked == self.membership.current.id:
            self.membership.suspicions.elsewhere(src)

    def on_stuck(self, head: Stuck) -> None:
        """A member is bound, and asks for an attempt."""
        self.membership.heard_of(head.ballot)
        self.membership.take_vouched(head.vouched)
        self.change.want()

    # -- a new view

    def installed(self, changed: bool) -> None:
        """This member installed a view, and the work for the old one is over; `changed` if members joined or
        left."""
        self.handover = None
        self.confirming.ends()
        self.change.installed()
        self.admission.installed(changed)
        self.verification.installed()
        self.regaining.installed()
        queued = (*self.admission.joiners, *self.admission.silent)
        self.times.keep((*self.membership.current.members, *queued))
