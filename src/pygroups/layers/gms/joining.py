"""Joining: a process finds a group and asks to join, or founds a group."""

from __future__ import annotations

from pygroups.core import driver_events, events
from pygroups.core.layer import NEVER
from pygroups.core.view import AgreedView, ViewId

from .heads import Join, Refuse
from .membership import Membership, Phase

ASK_MAX = 3  # members that a joiner asks at once
DOUBLINGS = 2  # of the pause between two searches: many joiners that wait must not keep the group busy


class Joining:
    """The search of a joiner for a group: it finds members, asks them to join, or founds the group."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.env = membership.env
        self.invited_until = NEVER  # an invited joiner founds no group until then
        self.searches = 0

    def ask_for_members(self) -> None:
        """Ask discovery for the members of the group, and again after `join_retry`, later after twice and four times
        as long."""
        if self.invited_until <= self.env.now:
            self.invited_until = NEVER
            self.membership.below.append(events.Invited(False))
        self.membership.below.append(driver_events.Find(members_only=self.env.expect > 0))
        doublings = (
            0 if self.env.expect else min(self.searches, DOUBLINGS)
        )  # founders that expect each other do not wait
        self.membership.wake_at(self.env.now + (self.env.config.join_retry << doublings))
        self.searches += 1

    @property
    def is_invited(self) -> bool:
        """Whether a group may have taken this joiner in."""
        return self.invited_until < NEVER

    def invited(self) -> None:
        """A group sent Ready to this joiner.  The joiner may be in the next view of that group and learn this late."""
        if self.membership.phase is Phase.JOINING:
            if not self.is_invited:
                self.membership.below.append(events.Invited(True))
            self.invited_until = self.env.now + 2 * self.env.config.flush_timeout

    def on_found(self, event: driver_events.Found) -> events.NewView | None:
        """The answer of discovery: ask members to be admitted, or found a group.  Returns the first view of a new
        group."""
        membership, me = self.membership, self.env.me
        if membership.phase is not Phase.JOINING:
            return None
        if event.may_found:
            if self.is_invited:
                self.env.count("founding put off")
                return None  # those that invited it may be gone, and others may have a view with it
            id = ViewId(membership.highest + 1, me)
            view = AgreedView(id, (me,), (self.env.contact,), membership.new_history())
            return events.NewView(
                view=view,
                previous=None,
                transitional=view.members,
                joined=view.members,
                left=(),
                primary=membership.primary,
                starts=None,
            )
        members = sorted(event.members)
        self.env.rng.shuffle(members)
        membership.below.append(driver_events.Contacts(event.members))
        for member in members[:ASK_MAX]:
            membership.tell(member, Join(me, self.env.contact, self.env.fingerprint))
        return None

    def on_incompatible(self, event: driver_events.Incompatible) -> None:
        """A member cannot read what this joiner sends.  A process that has a view drops what it cannot read."""
        if self.membership.phase is Phase.JOINING:
            self.membership.left("refused", event.detail)

    def on_refuse(self, head: Refuse) -> None:
        """The group refused this joiner."""
        if self.membership.phase is Phase.JOINING:
            self.membership.left(head.reason, head.detail)
