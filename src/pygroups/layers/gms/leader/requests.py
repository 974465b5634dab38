"""Requests to the leader: to join, to leave, to make another view.  A member that does not lead hands each request on
once."""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.driver_events import Contacts
from pygroups.core.events import JoinRefused
from pygroups.core.fingerprint import difference
from pygroups.core.limits import DETAIL_MAX

from ..heads import OTHER_SETTINGS, Join, LeaveReq, Refuse, ViewReq
from ..member.other_views import OtherViews
from ..membership import Membership, Phase
from .admission import Admission


class Requests:
    """The requests of this member, and those that it gets.  `admission` is the queue of the leader."""

    def __init__(self, membership: Membership, other_views: OtherViews, admission: Admission) -> None:
        self.membership = membership
        self.env = membership.env
        self.other_views = other_views
        self.admission = admission
        self.view_wanted = False  # the state here needs another provider

    def installed(self) -> None:
        """A new view: it names other providers."""
        self.view_wanted = False

    # -- this member asks

    def leave(self) -> None:
        """This process leaves the group, or stops trying to join it."""
        if self.membership.phase is not Phase.MEMBER:
            self.membership.left("left", "")
        else:
            self.ask_the_leader()

    def want_a_view(self) -> None:
        """Ask for a view with the same members."""
        self.view_wanted = True
        self.ask_the_leader()

    def ask_the_leader(self) -> None:
        """Repeat this member's requests to the leader: when another member may lead, and in each view."""
        membership, me = self.membership, self.env.me
        if membership.phase is not Phase.MEMBER or not (membership.leaving or self.view_wanted):
            return
        view, leader = membership.current, membership.leader()
        if membership.leaving and view.members == (me,):
            membership.left("left", "")
        elif leader is not None:
            membership.tell(leader, LeaveReq(view.id, me) if membership.leaving else ViewReq(view.id, me))

    # -- this member is asked

    def on_join(self, src: Address, head: Join) -> None:
        """A joiner asks.  Each member refuses a joiner whose profile, stack or limits differ, so the joiner learns from
        each member that it asks whether the settings are equal.  Otherwise the request is handed on to the leader, only
        once, because two members may disagree about the leader."""
        if self.membership.view is None:
            return
        if head.fingerprint != self.env.fingerprint:
            detail = difference(self.env.fingerprint, head.fingerprint)
            self.membership.below.append(Contacts({head.joiner: head.contact}))
            self.membership.tell(head.joiner, Refuse(OTHER_SETTINGS, detail[:DETAIL_MAX]))
            self.membership.above.append(JoinRefused(head.joiner, detail))
            return
        leader = self.membership.leader()
        if self._joined_with(head.joiner):
            # All members that went on have the view, and the member that was to inform the joiner may be gone.
            self.other_views.explain(head.joiner, None, asked=True)
        elif leader == self.env.me:
            self.admission.on_join(head)
        elif leader is not None and src == head.joiner:
            self.membership.tell(leader, head)

    def _joined_with(self, joiner: Address) -> bool:
        """Whether `joiner` joined with this view, as this member did, and perhaps has not got it."""
        kept, me = self.other_views.kept, self.env.me
        founded = kept is not None and kept.proposal.founds
        stayed = kept.proposal.going_on if kept is not None else (me,)
        return self.membership.knows(joiner) and (founded or me not in stayed)

    def on_request(self, src: Address, head: LeaveReq | ViewReq) -> None:
        """A member asks.  The asking member may suspect the leader wrongly, or not know which member leads."""
        membership = self.membership
        if not membership.knows(src):
            self.env.drop("request of a stranger to the leader")
            return
        if not membership.knows(head.member):
            return
        leader = membership.leader()
        if leader != self.env.me:
            if leader is not None and src == head.member:
                membership.tell(leader, head)
        elif isinstance(head, LeaveReq):
            self.admission.on_leave(head.member)
        elif head.view == membership.current.id:
            self.admission.on_view_wanted()
