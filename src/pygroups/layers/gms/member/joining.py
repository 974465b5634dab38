"""Joining: a process finds a group and asks to join, or founds a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pygroups.core import driver_events, events
from pygroups.core.address import Address
from pygroups.core.layer import NEVER
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.tables import Tables
from pygroups.core.view import AgreedView, ViewId

from ..heads import OTHER_SETTINGS, Join, Refuse
from ..membership import Membership, Phase

ASK_MAX = 3  # members that a joiner asks at once
DOUBLINGS = 2  # of the pause between two searches: many joiners that wait must not keep the group busy


class Joining:
    """The search of a joiner for a group: it finds members, asks them to join, or founds the group."""

    tables: ClassVar[Tables] = {
        "apart": "members_max",
        "asked": "found",
        "found": "found",
    }

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.env = membership.env
        self.invited_until = NEVER  # an invited joiner founds no group until then
        self.searches = 0
        self.found: dict[Address, None] = {}  # the members that this search found
        self.asked: dict[Address, None] = {}  # the members that this search asked
        self.has_asked = False  # some member, in any search
        self.apart: dict[Address, str] = {}  # processes with other settings, and the difference: they are not asked

    def ask_for_members(self) -> None:
        """Ask discovery for the members of the group, and again after `join_retry`, later after twice and four times
        as long."""
        if self._end_if_refused():
            return
        self.found, self.asked = {}, {}
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
            if self._end_if_refused():
                return None
            if self.is_invited:
                self.env.count("founding put off")
                return None  # the members that invited this joiner may be gone, and others may have a view with it
            id = ViewId(membership.highest + 1, me)
            view = AgreedView(id, (me,), (self.env.contact,), membership.new_history(), (id.number,))
            return events.NewView(
                view=view,
                previous=None,
                transitional=view.members,
                joined=view.members,
                left=(),
                primary=membership.primary,
                starts=None,
            )
        membership.below.append(driver_events.Contacts(event.members))
        new = sorted(event.members)
        self.env.rng.shuffle(new)
        self.found |= dict.fromkeys(new)
        self._ask(new)
        return None

    def _ask(self, members: Iterable[Address]) -> None:
        """Ask some of `members` to join, if they may have the settings of this joiner."""
        for member in [member for member in members if member not in self.apart][:ASK_MAX]:
            self.asked[member], self.has_asked = None, True
            self.membership.tell(member, Join(self.env.me, self.env.contact, self.env.fingerprint))

    # -- refusals

    def on_refuse(self, src: Address, head: Refuse) -> None:
        """A group refused this joiner, or a member with other settings did.  A member refuses other settings itself;
        with a taken name the leader refuses, to which another member handed the request on."""
        others = head.reason == OTHER_SETTINGS
        wanted = src in self.asked if others else self.has_asked
        if self.membership.phase is not Phase.JOINING or not wanted:
            self.env.drop("refusal of no request")
        elif others:
            self.stays_apart(src, head.detail)
        else:
            self.membership.left(head.reason, head.detail)

    def stays_apart(self, peer: Address, detail: str) -> None:
        """`peer` has other settings, or another version of the wire.  Another member that was found may be in a group
        with the settings of this joiner."""
        if self.membership.phase is not Phase.JOINING:
            return
        self.apart[peer] = detail
        if len(self.apart) > MEMBERS_MAX:
            del self.apart[next(iter(self.apart))]
        unasked = [member for member in self.found if member not in self.asked and member not in self.apart]
        self._ask(unasked[:1])

    def _end_if_refused(self) -> bool:
        """End the join if the last search found only members with other settings.  Returns whether it ended.  The
        refusal of a single member does not end the join, because some members may not have been found yet."""
        if not self.apart or any(member not in self.apart for member in self.found):
            return False
        self.membership.left(OTHER_SETTINGS, next(iter(self.apart.values())))
        return True
