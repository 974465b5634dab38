"""Blocking: a member that cannot reach enough of its view stops, where a majority decides.

The member stops as if it were bound to an attempt, informs the application (`Blocked`), and looks for members outside
of its view, because all members that it knows may have ended.  The next view unblocks the member, or a member of a
later view answers that the others went on without it.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.driver_events import Contacts, Find, Found
from pygroups.core.events import Blocked, Stop, Unblocked
from pygroups.core.layer import NEVER
from pygroups.core.limits import PATIENCE_MAX
from pygroups.core.suspicion_events import HeartbeatOf
from pygroups.core.tables import Tables
from pygroups.core.view import ViewId

from ..heads import Excluded, Stuck
from ..layer import Gms
from ..member.joining import ASK_MAX
from ..membership import Phase

COMPLAINTS: Final = 2  # of a bound member without an answer, before it counts as blocked


class Blocking:
    """Whether this member is blocked, and the members that it asks then."""

    tables: ClassVar[Tables] = {"ahead": "members", "lacking": "members", "others": ASK_MAX}

    def __init__(self, gms: Gms) -> None:
        self.gms = gms
        self.env = gms.env
        self.blocked = False  # and the application knows it
        self.ahead: dict[Address, None] = {}  # members of this view that are heard in a later one
        self.lacking: dict[Address, ViewId] = {}  # members that lack runs of this decided view, as they said last
        self.look_at = 0  # when a blocked member looks for members outside its view
        self.looks = 0  # how often it did
        self.others: dict[Address, None] = {}  # the processes that this member asked
        self.heard_at = NEVER  # when the first member was heard again; NEVER: none since the last suspicion

    # -- blocked, and unblocked

    def check(self) -> None:
        """Stop this member, and tell the application, if it cannot reach enough of its view."""
        gms = self.gms
        if gms.phase is not Phase.MEMBER or self.blocked:
            return
        members, bound = gms.current.members, gms.binding.ballot is not None
        missing = [m for m in members if m != self.env.me and m in gms.suspicions]
        missing += [m for m in self.ahead if not bound and m not in missing]
        unheard = bound and gms.answering.complaints >= COMPLAINTS
        unheard |= gms.leading.change.is_unheard()
        here = [member for member in members if member not in missing]
        if gms.quorum.may_go_on(gms.current, here, ()) and not unheard:
            return
        self.blocked = True
        self.env.count("blocked")
        if not bound:
            self._stop_alone()
        self.looks, self.look_at = 0, self.env.now + self.env.config.flush_timeout
        names = ", ".join(str(member) for member in missing) or "a leader of the view change"
        gms.above.append(Blocked(f"a majority of the {len(members)} members of the view is needed; missing: {names}"))

    def _stop_alone(self) -> None:
        """Bind this member to a ballot of its own.  The member hands up no message any more, and never resumes its
        view."""
        gms = self.gms
        ballot = gms.next_ballot()
        gms.heard_of(ballot)
        gms.binding.bind(ballot)
        gms.answering.heard_leader()
        gms.above.append(Stop(ballot))

    def give_up_what_is_lost(self) -> None:
        """Give up a decided view for which this member lacks runs, if all members that may hold them have ended.  The
        other members lack them, too."""
        gms, decided, lacks = self.gms, self.gms.binding.decided, self.gms.binding.lacks()
        if decided is None or decided.view.id != lacks:
            return
        others = [one for one in gms.current.members if one != self.env.me]
        if all(gms.suspicions.is_over(one) or self.lacking.get(one) == lacks for one in others):
            self.env.count("decided view given up")
            gms.binding.give_up(decided)

    def hears_of_a_lack(self, member: Address, head: Stuck) -> None:
        """`member` is bound, and may lack runs of a decided view."""
        self.lacking.pop(member, None)
        if head.lacks is not None and self.gms.knows(member) and head.view == self.gms.current.id:
            self.lacking[member] = head.lacks
            self.give_up_what_is_lost()

    def suspects_more(self) -> None:
        """A further member is suspected: the cut goes on."""
        self.heard_at = NEVER

    def heard_again(self, member: Address) -> int:
        """The time until which a leader that was blocked waits for further members, now that `member` is heard again.

        After an outage connections come back one after another.  A view of the first majority would exclude the members
        that are heard a moment later.
        """
        gms, now = self.gms, self.env.now
        silent = [m for m in gms.current.members if m in gms.suspicions and not gms.suspicions.is_over(m)]
        if not self.blocked or silent in ([], [member]):
            return now
        self.heard_at = min(self.heard_at, now)
        return self.heard_at + self.env.config.verify_timeout

    def heartbeat(self, event: HeartbeatOf) -> None:
        """A heartbeat of a member of this view may name a later view."""
        if self.gms.knows(event.member) and event.view > self.gms.current.id:
            self.ahead[event.member] = None
            self.lacking.pop(event.member, None)

    def enters(self) -> None:
        """This member is about to enter a view."""
        if self.blocked:
            self.blocked = False
            self.gms.above.append(Unblocked())
        self.ahead, self.lacking, self.others, self.heard_at = {}, {}, {}, NEVER

    # -- members outside of the view

    def look_if_due(self) -> None:
        """Find members of the group that are in no view with this one."""
        if self.gms.phase is not Phase.MEMBER or not self.blocked or self.env.now < self.look_at:
            return
        config = self.env.config
        self.gms.below.append(Find())
        self.look_at = self.env.now + min(config.flush_timeout << min(self.looks, 10), PATIENCE_MAX)
        self.looks += 1

    def set_timer(self) -> None:
        """Wake up for the next look."""
        if self.blocked and self.gms.phase is Phase.MEMBER:
            self.gms.wake_at(self.look_at)

    def found(self, found: Found) -> tuple[Address, ...]:
        """Ask some of the members that discovery found, and return them.  A member of a later view answers that the
        others went on without this member."""
        gms, binding = self.gms, self.gms.binding
        contacts = {member: contact for member, contact in found.members.items() if not gms.knows(member)}
        if not self.blocked or binding.ballot is None or not contacts:
            return ()
        members = sorted(contacts)
        self.env.rng.shuffle(members)
        self.others = dict.fromkeys(members[:ASK_MAX])
        gms.below.append(Contacts({member: contacts[member] for member in self.others}))
        for member in self.others:
            gms.tell(member, Stuck(binding.ballot, gms.current.id))
        return tuple(self.others)

    def is_answer(self, src: Address, head: Excluded) -> bool:
        """Whether a process that this blocked member asked answers that the others went on without this member."""
        return self.blocked and src in self.others and head.view == self.gms.current.id
