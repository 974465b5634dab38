"""Joining: how a process that looks for a group comes into one, or founds it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from pygroups.core import events
from pygroups.core.layer import NEVER
from pygroups.core.view import Ballot, View

from .heads import Join, Refuse

if TYPE_CHECKING:
    from .machine import Gms

ASK_MAX = 3  # members that a joiner asks at once


class Phase(Enum):
    """Where a member stands in its life."""

    NEW = "new"
    JOINING = "joining"
    MEMBER = "member"
    GONE = "gone"


class Joining:
    """What a process does while it is a joiner; `gms` is the process."""

    def __init__(self, gms: Gms) -> None:
        self.gms = gms
        self.env = gms.env
        self.invited_until = NEVER  # a group is taking this joiner in; until then it founds none, and nobody does

    def ask_for_members(self) -> None:
        if self.invited_until <= self.env.now:
            self.invited_until = NEVER
            self.gms.below.append(events.Invited(False))
        self.gms.below.append(events.Find())
        self.gms.wake_at(self.env.now + self.env.config.join_retry)

    def invited(self) -> None:
        """A group asks this joiner whether it is there: it may be in that group's next view and not hear of it soon."""
        if self.gms.phase is Phase.JOINING:
            if self.invited_until == NEVER:
                self.gms.below.append(events.Invited(True))
            self.invited_until = self.env.now + 2 * self.env.config.flush_timeout

    def found(self, event: events.Found) -> None:
        gms, me = self.gms, self.env.me
        if gms.phase is not Phase.JOINING:
            return
        if event.may_found:
            if self.invited_until < NEVER:
                self.env.count("founding put off")
                return  # who invited it may be gone, and others may have the view that it is in: ask again
            view = View(Ballot(gms.highest + 1, me), (me,), (self.env.contact,))
            gms.enter(events.NewView(view, None, view.members, view.members, (), gms.primary, None))
            return
        members = sorted(event.members)
        self.env.rng.shuffle(members)
        gms.below.append(events.Contacts(event.members))
        for member in members[:ASK_MAX]:
            gms.tell(member, Join(me, self.env.contact, self.env.fingerprint))

    def on_refuse(self, head: Refuse) -> None:
        if self.gms.phase is Phase.JOINING:
            self.gms.left(head.reason, head.detail)
