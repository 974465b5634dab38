"""Handover: a decided view on its way to all of its members, first those that go on, then the joiners.

A joiner that got the view first could be the only process that knows the view.  A new leader of a view that does not
know that all members have the view hands it over again.  A member that has the view already only acknowledges it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.limits import PATIENCE_MAX
from pygroups.core.tables import Tables, under
from pygroups.core.view import ViewId

from ..decisions import decide
from ..decisions.proposal import Proposal, difference
from ..heads import Done, Install
from ..member.other_views import OtherViews
from ..membership import Membership

Patience = Callable[[Iterable[Address]], int]  # how long to wait for an answer of these


class Handover:
    """This member hands over the decided `proposal`."""

    tables: ClassVar[Tables] = {
        "acked": "members_max",
        **under("proposal", Proposal.tables),
    }

    def __init__(self, membership: Membership, other_views: OtherViews, proposal: Proposal, patience: Patience) -> None:
        self.membership = membership
        self.other_views = other_views
        self.env = membership.env
        self.proposal = proposal
        self.patience = patience
        self.acked: dict[Address, None] = {}
        self.welcomed = False  # the joiners were sent the view
        self.overdue = False  # some members that go on took too long to acknowledge, and are not waited for
        self.since = self.env.now  # when the last acknowledgement came

    @property
    def view(self) -> ViewId:
        return self.proposal.view.id

    def tell_old_members(self) -> None:
        """Send the installation to the members that go on."""
        self.membership.tell_decided(self.proposal.going_on, self.proposal)

    def go_on(self) -> bool:
        """Take every step that is possible now.  Returns True when this member's part in the handover is over."""
        membership, other_views = self.membership, self.other_views
        if self._wait():
            return False
        if membership.view is None or self.view != membership.view.id:
            self.env.count("leader left with its view")
            # This member leaves, or is excluded, with the view, and the members that go on have it.
            side = self.proposal.side_of(membership.current.id)
            policy = self.proposal.expelled.get(self.env.me, "")
            cut = None if side is None else side.cut
            membership.left("left" if membership.leaving else "excluded", "", cut, policy)
            return True
        kept, members = other_views.kept, membership.view.members
        if kept is None:
            return True  # another member reports that it has handed the view over to all
        if not self.welcomed:
            self.welcomed = True
            assert kept.starts is not None
            joiners = tuple(m for m in self.proposal.view.members if m not in self.proposal.going_on)
            membership.tell_others(joiners, Install(difference(kept.proposal, None), kept.starts))
        if any(not membership.suspicions.is_over(member) for member in self._silent(members)):
            return False  # a member that is only suspected may be alive and lack the installation
        other_views.forget_installation()
        membership.tell_others(members, Done(self.view))
        return True

    def _wait(self) -> bool:
        """Wait for the members that go on.  A member that takes too long is asked Ready instead.  Returns whether this
        member still waits."""
        config, suspicions = self.env.config, self.membership.suspicions
        missing = tuple(m for m in self._silent(self.proposal.going_on) if m not in suspicions)
        if not missing or self.overdue:
            return False
        until = self.since + max(self.patience(missing), config.heartbeat_timeout + config.verify_timeout)
        if self.env.now >= until:
            self.env.count("installation left unanswered", len(missing))
            self.overdue = True
        else:
            self.membership.wake_at(until)
        return not self.overdue

    def acknowledged(self, member: Address) -> None:
        """`member` has installed the view."""
        self.acked[member], self.since = None, self.env.now

    def _silent(self, members: tuple[Address, ...]) -> list[Address]:
        """The others of `members` that have not acknowledged the view."""
        return [member for member in members if member != self.env.me and member not in self.acked]


class Parting(Handover):
    """A handover where a majority decides, at a member that has no place in the view.

    Such a member may be the only one that knows the decision.  The member stays until enough members of the view have
    the installation to go on without it.  Until then the member repeats the installation.
    """

    repeats = 0

    def _wait(self) -> bool:
        if decide.is_majority(self.proposal.view, self.acked, self.membership.outgoing.vouched):
            return False
        config, silent = self.env.config, self.membership.suspicions.known
        repeat_at = self.since + min(2 * config.flush_timeout << min(self.repeats, 10), PATIENCE_MAX)
        if self.env.now >= repeat_at:
            self.repeats, self.since = self.repeats + 1, self.env.now
            missing = tuple(m for m in self._silent(self.proposal.view.members) if m not in silent)
            self.membership.tell_decided(missing, self.proposal)
        self.membership.wake_at(max(repeat_at, self.env.now + 2 * config.flush_timeout))
        return True
