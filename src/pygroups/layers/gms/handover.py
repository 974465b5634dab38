"""A decided view on its way to all of its members: first those who go on, then the joiners.

A joiner that were told first could be the only one who knows the view.  Whoever comes to lead a view and does not know
that everybody has it hands it over again: an installation that is there already is only acknowledged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygroups.core.address import Address
from pygroups.core.view import ViewId

from .heads import Done, Install, Proposal

if TYPE_CHECKING:
    from .machine import Gms


class Handover:
    """`proposal` was decided; `gms` is the member that hands it over."""

    def __init__(self, gms: Gms, proposal: Proposal) -> None:
        self.gms = gms
        self.proposal = proposal
        self.acked: dict[Address, None] = {}
        self.welcomed = False  # the joiners were told
        self.overdue = False  # some who go on have not acknowledged for too long, and are not waited for
        self.since = gms.env.now  # when the last acknowledgement came

    @property
    def view(self) -> ViewId:
        return self.proposal.view.id

    def tell_old_members(self) -> None:
        for member in self.proposal.transitional:
            if member != self.gms.env.me:
                self.gms.tell(member, Install(self.proposal, None))

    def go_on(self) -> bool:
        """Do what can be done now; True when this member has nothing more to do for this view."""
        gms = self.gms
        if self._is_waited_for():
            return False
        if gms.view is None or self.view != gms.view.id:
            self.gms.env.count("leader left with its view")
            # This leader leaves with the view it decided, and all who go on have it.
            gms.left("left", "", self.proposal.cut)
            return True
        if gms.elsewhere.kept is None:
            return True  # somebody else has handed it over to all, and said so
        joiners = tuple(m for m in self.proposal.view.members if m not in self.proposal.transitional)
        if not self.welcomed:
            self.welcomed = True
            assert gms.elsewhere.kept.digest is not None
            for joiner in joiners:
                if joiner != gms.env.me:
                    gms.tell(joiner, gms.elsewhere.kept)
        if any(not gms.suspicions.may_be_forgotten(member) for member in self._silent(gms.view.members)):
            return False  # who is only suspected may be there, and come to lack what nobody keeps any more
        gms.elsewhere.kept = None
        for member in gms.view.members:
            if member != gms.env.me:
                gms.tell(member, Done(self.view))
        return True

    def _is_waited_for(self) -> bool:
        """Whether somebody who goes on may still acknowledge; who does not for too long is asked Ready instead."""
        gms, config = self.gms, self.gms.env.config
        silent = self._silent(self.proposal.transitional)
        missing = tuple(member for member in silent if member not in gms.suspicions)
        if not missing or self.overdue:
            return False
        until = self.since + max(gms.leader.patience(missing), config.heartbeat_timeout + config.verify_timeout)
        if gms.env.now >= until:
            gms.env.count("installation left unanswered", len(missing))
            self.overdue = True
            gms.leader.verification.due = gms.env.now
        else:
            gms.wake_at(until)
        return not self.overdue

    def acknowledged(self, member: Address) -> None:
        self.acked[member], self.since = None, self.gms.env.now

    def _silent(self, members: tuple[Address, ...]) -> list[Address]:
        """The others of these who have not said that they have the view."""
        return [member for member in members if member != self.gms.env.me and member not in self.acked]
