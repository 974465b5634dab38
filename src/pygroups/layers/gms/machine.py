"""GMS: who is in the group.  Join, leave and crash go through one view change, the flush of docs/layers/gms.md.

This file is the member: it joins, leaves, installs what was decided and explains it to whoever is somewhere else.  What
it answers to whoever leads stands in participant.py, what it does when it leads in leader.py and handover.py, the pure
decisions in decide.py, what goes on the wire in heads.py.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar

from pygroups.core import events
from pygroups.core.address import Address
from pygroups.core.events import Event, Found, LifeVerified, NewView, Suspect, Unsuspect
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.run import Run
from pygroups.core.view import Ballot, View, ViewId

from . import decide, heads
from .heads import (
    HEADS,
    Done,
    Elsewhere,
    Excluded,
    Install,
    InstallAck,
    Join,
    LeaveReq,
    Proposal,
    Refuse,
    Stuck,
)
from .leader import Leader
from .participant import Participant

PAST_MAX = 256  # earlier views that are remembered, to explain to stale members what happened
ASK_MAX = 3  # members that a joiner asks at once


class Phase(Enum):
    """Where a member stands in its life."""

    NEW = "new"
    JOINING = "joining"
    MEMBER = "member"
    GONE = "gone"


class Gms(Layer):
    """Views, agreed on; see the module."""

    __slots__ = (
        "highest",
        "inbox",
        "invited_until",
        "kept",
        "leader",
        "leaving",
        "part",
        "past",
        "phase",
        "primary",
        "standing",
        "suspects",
        "view",
    )

    needs: ClassVar[frozenset[str]] = frozenset({"FIFO_UNICAST", "SUSPICION", "DISCOVERY"})
    gives: ClassVar[frozenset[str]] = frozenset({"MEMBERSHIP"})
    heads: ClassVar[tuple[type, ...]] = HEADS
    own_heads_only: ClassVar[bool] = True

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.phase = Phase.NEW
        self.view: View | None = None
        self.primary = True  # a hint, see View.primary
        self.standing: events.Standing = True  # to the group's state; told by state_transfer, where there is one
        self.suspects: dict[Address, bool] = {}  # members taken to be gone; True: nothing takes it back
        self.leaving = False
        self.highest = 0  # of all ballots and views heard of
        self.kept: Install | None = None  # the installation of this view, until all are known to have it
        self.past: dict[ViewId, None] = {}  # views this member was in
        self.inbox: list[object] = []  # what this member tells itself
        self.invited_until = NEVER  # a group is taking this joiner in; until then it founds none, and nobody does
        self.part = Participant(self)
        self.leader = Leader(self)

    # -- what comes in

    def up(self, run: Run) -> None:
        head: Any = run.head
        handler = _HANDLERS.get(type(head))
        if handler is None:
            self.above.append(run)
        elif self.phase is not Phase.GONE:
            handler(self, run.src, head)
            self._work()

    def up_event(self, event: Event) -> None:
        if isinstance(event, Found):
            self._found(event)
        elif isinstance(event, LifeVerified):
            self.leader.former_life_answered(event.member)
        elif isinstance(event, events.HeartbeatOf):
            self.explain(event.member, event.view, asked=False)
        elif isinstance(event, Suspect):
            self.suspects[event.member] = event.proven or self.suspects.get(event.member, False)
            if event.proven:
                self.leader.former_life_ended(event.member)
            self._ask_to_leave_again()
            self.above.append(event)
        elif isinstance(event, Unsuspect):
            self.not_suspected(event.member)
            self._ask_to_leave_again()
            self.above.append(event)
        else:
            self.above.append(event)
        self._work()

    def down_event(self, event: Event) -> None:
        if isinstance(event, events.Bound):
            self.part.stopped(event)
        elif isinstance(event, events.Fetched):
            self.part.fetched(event.ballot)
        elif isinstance(event, events.Installed):
            if self.kept is not None:  # what a joiner needs is known only now
                self.kept = Install(self.kept.proposal, event.marks)
        elif isinstance(event, events.StateStanding):
            self.standing = event.standing
        elif isinstance(event, events.Join):
            self.phase = Phase.JOINING
            self._ask_for_members()
        elif isinstance(event, events.Leave):
            self._leave()
        elif isinstance(event, events.Gone):  # the top has left by itself
            self.phase, self.wake = Phase.GONE, NEVER
            self.below.append(event)
        else:
            self.below.append(event)
        self._work()

    def timer(self) -> None:
        self.wake = NEVER
        if self.phase is Phase.JOINING:
            self._ask_for_members()
        elif self.phase is Phase.MEMBER and self.part.bound is not None and self.leader.attempt is None:
            self.part.complain()
        self._work()

    def tell(self, dest: Address | None, head: object) -> None:
        """As Layer.tell; what a leader tells itself takes the same way as what it tells others."""
        if dest == self.env.me:
            self.inbox.append(head)
        else:
            super().tell(dest, head)

    def _work(self) -> None:
        """What the leader in this member has to do; then what it told itself, until nothing is left."""
        while self.phase is Phase.MEMBER:
            self.leader.work()
            if not self.inbox:
                break
            head = self.inbox.pop(0)
            _HANDLERS[type(head)](self, self.env.me, head)

    # -- joining

    def _ask_for_members(self) -> None:
        if self.invited_until <= self.env.now:
            self.invited_until = NEVER
            self.below.append(events.Invited(False))
        self.below.append(events.Find())
        self.wake_at(self.env.now + self.env.config.join_retry)

    def invited(self) -> None:
        """A group asks this joiner whether it is there: it may be in that group's next view and not hear of it soon."""
        if self.phase is Phase.JOINING:
            if self.invited_until == NEVER:
                self.below.append(events.Invited(True))
            self.invited_until = self.env.now + 2 * self.env.config.flush_timeout

    def _found(self, event: Found) -> None:
        if self.phase is not Phase.JOINING:
            return
        if event.may_found:
            if self.invited_until < NEVER:
                self.env.count("founding put off")
                return  # who invited it may be gone, and others may have the view that it is in: ask again
            view = View(Ballot(self.highest + 1, self.env.me), (self.env.me,), (self.env.contact,))
            self._enter(NewView(view, None, view.members, view.members, (), self.primary, None))
            return
        members = sorted(event.members)
        self.env.rng.shuffle(members)
        self.below.append(events.Contacts(event.members))
        for member in members[:ASK_MAX]:
            self.tell(member, Join(self.env.me, self.env.contact, self.env.fingerprint))

    def on_join(self, src: Address, head: Join) -> None:
        if self.view is None:
            return
        leader = decide.leader(self.view, self.suspects)
        if self._joined_with(head.joiner):
            self.give_installation(head.joiner, None)  # whoever was to tell it may be gone; all who stayed have it
        elif leader == self.env.me:
            self.leader.on_join(head)
        elif leader is not None and src == head.joiner:  # handed on once: two who disagree who leads do not play ball
            self.tell(leader, head)

    def _joined_with(self, joiner: Address) -> bool:
        """Whether it came into this view as this member did, and perhaps has not heard of it."""
        stayed = self.kept.proposal.transitional if self.kept is not None else (self.env.me,)
        return self.view is not None and joiner in self.view.members and self.env.me not in stayed

    def on_refuse(self, src: Address, head: Refuse) -> None:
        if self.phase is Phase.JOINING:
            self.left(head.reason, head.detail)

    # -- leaving

    def _leave(self) -> None:
        self.leaving = True
        if self.phase is not Phase.MEMBER:
            self.left("left", "")
        else:
            self._ask_to_leave()

    def _ask_to_leave(self) -> None:
        """Tell whoever leads now; told again when that may have changed, and with every answer."""
        assert self.view is not None
        if self.view.members == (self.env.me,):
            self.left("left", "")
            return
        leader = decide.leader(self.view, self.suspects)
        if leader is not None:
            self.tell(leader, LeaveReq(self.view.id))

    def _ask_to_leave_again(self) -> None:
        if self.leaving and self.phase is Phase.MEMBER:
            self._ask_to_leave()

    def on_leave_req(self, src: Address, head: LeaveReq) -> None:
        if self.view is not None and src in self.view.members:
            self.leader.on_leave(src)

    def left(self, reason: str, detail: str, cut: events.Positions | None = None) -> None:
        """This member is in the group no more."""
        if self.phase is not Phase.GONE:
            self.phase, self.wake, self.inbox = Phase.GONE, NEVER, []
            self.part.reset()
            self.above.append(events.Excluded(reason, detail, cut))
            self.below.append(events.Gone())

    def knows(self, member: Address) -> bool:
        """Whether it is in this member's view: nobody else is believed about ballots."""
        return self.view is not None and member in self.view.members

    def heard_of(self, ballot: Ballot) -> None:
        """No ballot of this member's own will be at or below this one."""
        self.highest = max(self.highest, ballot.number)

    # -- installing

    def on_install(self, src: Address, head: Install) -> None:
        proposal, me = head.proposal, self.env.me
        if self.view is not None and proposal.view.id == self.view.id:
            self.tell(src, InstallAck(self.view.id))
        elif self.view is None:
            if self.phase is Phase.JOINING and head.digest is not None and me in proposal.view.members:
                self.install(proposal, head.digest)
                self.tell(src, InstallAck(proposal.view.id))
        elif proposal.old != self.view.id:
            self.explain(src, proposal.view.id, asked=True)
        elif me not in proposal.view.members:
            self.left("left" if self.leaving else "excluded", "", proposal.cut)
        elif proposal.ballot in self.part.accepted:
            self.install(proposal, None)
            self.tell(src, InstallAck(proposal.view.id))
        else:
            self.env.drop("installation that was never accepted here")

    def install(self, proposal: Proposal, digest: events.Marks | None) -> None:
        """Take a decided successor of the own view, or, as a joiner, the first view that names this member."""
        assert self.view is None or proposal.old == self.view.id
        joining = digest is not None
        self.part.record("installed", proposal)
        self.primary = proposal.primary
        self.kept = Install(proposal, digest)
        previous = None if joining else proposal.old
        together = (self.env.me,) if joining else proposal.transitional
        joined = tuple(member for member in proposal.view.members if member not in proposal.transitional)
        begins = (previous, together, joined, (), self.primary, digest, proposal.standings, proposal.cut)
        self._enter(NewView(proposal.view, *begins))

    def _enter(self, event: NewView) -> None:
        """Be in this view; who left by it is added."""
        view = event.view
        old, self.view = self.view, view
        self.phase = Phase.MEMBER
        self.highest = max(self.highest, view.id.number)
        self.part.reset()
        # What was still to be stopped and fetched for was the old view.
        self.above = [item for item in self.above if not isinstance(item, events.FetchTo | events.Stop)]
        self.suspects = {member: proven for member, proven in self.suspects.items() if member in view.members}
        event.left = () if old is None else tuple(member for member in old.members if member not in view.members)
        if old is not None:
            self.past[old.id] = None
            if len(self.past) > PAST_MAX:
                del self.past[next(iter(self.past))]
        self.below += [events.Contacts(dict(zip(view.members, view.contacts, strict=True))), event]
        self.above.append(event)
        self.leader.installed(changed=old is not None and bool(event.joined or event.left))
        if self.leaving:
            self._ask_to_leave()

    def on_done(self, src: Address, head: Done) -> None:
        if self.view is not None and head.view == self.view.id and src in self.view.members:
            self.kept = None

    # -- those who are somewhere else

    def give_installation(self, member: Address, theirs: ViewId | None) -> bool:
        """Give the installation of this view to a member of it that lacks it; False if that is not what it lacks."""
        kept = self.kept
        if kept is None or self.view is None or member not in self.view.members:
            return False
        if theirs is None and member not in kept.proposal.transitional:
            self.tell(member, kept)
            return True
        if theirs == kept.proposal.old and member in kept.proposal.transitional:
            self.tell(member, Install(kept.proposal, None))
            return True
        return False

    def explain(self, member: Address, theirs: ViewId, *, asked: bool) -> None:
        """`member` speaks of a view that is not this member's: say what happened, if this member knows."""
        if self.view is None or theirs == self.view.id or self.give_installation(member, theirs):
            return
        if member not in self.view.members and theirs in self.past:
            self.tell(member, Excluded(theirs))
        elif theirs in self.part.accepted:
            self.tell(member, Stuck(theirs, self.view.id))  # this member is on its way there: it lacks the installation
        elif theirs not in self.past and (asked or decide.cannot_follow(self.view, theirs)):
            self.tell(member, Elsewhere(self.view.id, theirs))

    def on_excluded(self, src: Address, head: Excluded) -> None:
        if self.view is not None and head.view == self.view.id and src in self.view.members:
            self.left("left" if self.leaving else "excluded", f"{src} is in a later view without this member")

    def on_stuck(self, src: Address, head: Stuck) -> None:
        if self.view is not None and head.view == self.view.id:
            if self.knows(src):
                self.leader.on_stuck(head)
            else:
                self.env.drop("view change of a stranger")
        else:
            self.explain(src, head.view, asked=True)

    # -- suspicion

    def not_suspected(self, member: Address) -> None:
        """It answered.  What is proven is not taken back."""
        if self.suspects.get(member) is False:
            del self.suspects[member]

    def ended(self, member: Address) -> None:
        """It is in another view for good: in this one it counts as ended."""
        self.suspects[member] = True

    def gauges(self) -> dict[str, int]:
        if self.phase is Phase.GONE:
            return {}
        return {
            "bound": int(self.part.bound is not None),
            "joiners": len(self.leader.joiners),
            "leavers": len(self.leader.leavers),
            "attempt": int(self.leader.attempt is not None),
        }


_HANDLERS: dict[type, Any] = {
    Join: Gms.on_join,
    Refuse: Gms.on_refuse,
    LeaveReq: Gms.on_leave_req,
    heads.Ready: lambda gms, src, head: gms.part.on_ready(src, head),
    heads.ReadyRsp: lambda gms, src, head: gms.view is not None and gms.leader.on_ready_rsp(src, head),
    heads.Collect: lambda gms, src, head: gms.part.on_collect(src, head),
    heads.CollectAck: lambda gms, src, head: gms.leader.on_collect_ack(src, head),
    heads.Low: lambda gms, src, head: gms.leader.on_low(head),
    heads.Propose: lambda gms, src, head: gms.part.on_propose(src, head),
    heads.Accept: lambda gms, src, head: gms.leader.on_accept(src, head),
    Install: Gms.on_install,
    InstallAck: lambda gms, src, head: gms.leader.on_install_ack(src, head),
    Done: Gms.on_done,
    Stuck: Gms.on_stuck,
    Elsewhere: lambda gms, src, head: gms.leader.on_elsewhere(src, head),
    Excluded: Gms.on_excluded,
}
