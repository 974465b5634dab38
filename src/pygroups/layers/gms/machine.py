"""GMS: who is in the group.  Join, leave and crash go through one view change, the flush of docs/layers/gms.md.

This file is the member: it joins, leaves and installs what was decided.  The rest stands beside it:

participant.py    what the member answers to whoever leads
leader.py         what it does when it leads, with roll.py (who is there), admission.py (joins, leaves, names) and
                  handover.py (a decided view on its way)
suspicion.py      whom it takes for gone, and why; accusing.py tells the others; verification.py finds out what members
                  say of each other
joining.py        how it comes into a group, or founds one
elsewhere.py      what it says to those that are in another view
decide.py         the decisions, as pure functions
heads.py          what goes on the wire
"""

from __future__ import annotations

from typing import Any, ClassVar

from pygroups.core import events
from pygroups.core.address import Address
from pygroups.core.events import Event, Found, LifeVerified, NewView, Suspect, Unsuspect
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.run import Run
from pygroups.core.standing import Standing
from pygroups.core.view import Ballot, View

from . import decide, heads
from .accusing import Accusing
from .elsewhere import Whereabouts
from .heads import (
    HEADS,
    Done,
    Excluded,
    Install,
    InstallAck,
    Join,
    LeaveReq,
    Proposal,
    Stuck,
    ViewReq,
)
from .joining import Joining, Phase
from .leader import Leader
from .participant import Participant
from .suspicion import Suspicions


class Gms(Layer):
    """Views, agreed on; see the module."""

    __slots__ = (
        "accusing",
        "elsewhere",
        "highest",
        "inbox",
        "joining",
        "later",
        "leader",
        "leaving",
        "part",
        "phase",
        "primary",
        "standing",
        "suspicions",
        "view",
        "view_wanted",
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
        self.standing: Standing = True  # to the group's state; told by state_transfer, where there is one
        self.suspicions = Suspicions()
        self.leaving = False
        self.view_wanted = False  # the state here needs another provider
        self.highest = 0  # of all ballots and views heard of
        self.inbox: list[tuple[Address, object]] = []  # what this member tells itself, and what has waited for a view
        self.later: dict[tuple[Address, type], object] = {}  # of a view that is decided and not installed here yet
        self.accusing = Accusing(self)
        self.joining = Joining(self)
        self.elsewhere = Whereabouts(self)
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
            self.joining.found(event)
        elif isinstance(event, LifeVerified):
            self.leader.admission.former_life_answered(event.member)
        elif isinstance(event, events.HeartbeatOf):
            self.elsewhere.explain(event.member, event.view, asked=False)
        elif isinstance(event, Suspect):
            self.suspicions.suspect(event.member, proven=event.proven)
            if event.proven:
                self.leader.admission.former_life_ended(event.member)
            self._suspicions_changed()
            self.above.append(event)
        elif isinstance(event, Unsuspect):
            self.suspicions.heard(event.member)
            self._suspicions_changed()
            self.above.append(event)
        else:
            self.above.append(event)
        self._work()

    def down_event(self, event: Event) -> None:
        if isinstance(event, events.Bound):
            self.part.stopped(event)
        elif isinstance(event, events.Fetching):
            self.part.fetching()
        elif isinstance(event, events.Fetched):
            self.part.fetched(event.ballot)
        elif isinstance(event, events.Installed):
            self.elsewhere.digest_is(event.marks)
        elif isinstance(event, events.StateStanding):
            self.standing = event.standing
        elif isinstance(event, events.Join):
            self.phase = Phase.JOINING
            self.joining.ask_for_members()
        elif isinstance(event, events.Leave):
            self._leave()
        elif isinstance(event, events.ViewWanted):
            self.view_wanted = True
            self._ask_the_leader()
        elif isinstance(event, events.Gone):  # the top has left by itself
            self.phase, self.wake = Phase.GONE, NEVER
            self.below.append(event)
        else:
            self.below.append(event)
        self._work()

    def timer(self) -> None:
        self.wake = NEVER
        if self.phase is Phase.JOINING:
            self.joining.ask_for_members()
        elif self.phase is Phase.MEMBER and self.part.bound is not None and self.leader.attempt is None:
            self.part.complain()
        self.accusing.tell()
        self._work()

    def tell(self, dest: Address | None, head: object) -> None:
        """As Layer.tell; what a leader tells itself takes the same way as what it tells others."""
        if dest == self.env.me:
            self.inbox.append((self.env.me, head))
        else:
            super().tell(dest, head)

    def _work(self) -> None:
        """What the leader in this member has to do; then what it told itself, until nothing is left."""
        while self.phase is Phase.MEMBER:
            self.leader.work()
            if not self.inbox:
                break
            src, head = self.inbox.pop(0)
            _HANDLERS[type(head)](self, src, head)

    # -- those who join

    def on_join(self, src: Address, head: Join) -> None:
        if self.view is None:
            return
        leader = decide.leader(self.view, self.suspicions)
        if self._joined_with(head.joiner):
            self.elsewhere.give_installation(
                head.joiner, None
            )  # all who stayed have it: whoever was to tell may be gone
        elif leader == self.env.me:
            self.leader.admission.on_join(head)
        elif leader is not None and src == head.joiner:  # handed on once: two who disagree who leads do not play ball
            self.tell(leader, head)

    def _joined_with(self, joiner: Address) -> bool:
        """Whether it came into this view as this member did, and perhaps has not heard of it."""
        kept = self.elsewhere.kept
        stayed = kept.proposal.transitional if kept is not None else (self.env.me,)
        return self.view is not None and joiner in self.view.members and self.env.me not in stayed

    # -- what a member wants of whoever leads

    def _leave(self) -> None:
        self.leaving = True
        if self.phase is not Phase.MEMBER:
            self.left("left", "")
        else:
            self._ask_the_leader()

    def _ask_the_leader(self) -> None:
        """Ask again for what this member wants: told again when somebody else may lead, and in each view."""
        if self.phase is not Phase.MEMBER or not (self.leaving or self.view_wanted):
            return
        assert self.view is not None
        if self.leaving and self.view.members == (self.env.me,):
            self.left("left", "")
            return
        leader = decide.leader(self.view, self.suspicions)
        if leader is not None and self.leaving:
            self.tell(leader, LeaveReq(self.view.id, self.env.me))
        elif leader is not None:
            self.tell(leader, ViewReq(self.view.id, self.env.me))

    def on_request(self, src: Address, head: LeaveReq | ViewReq) -> None:
        """Who does not lead hands it on, once: who asked may suspect the leader, or not know it."""
        if self.view is None or src not in self.view.members or head.member not in self.view.members:
            return
        leader = decide.leader(self.view, self.suspicions)
        if leader != self.env.me:
            if leader is not None and src == head.member:
                self.tell(leader, head)
        elif isinstance(head, LeaveReq):
            self.leader.admission.on_leave(head.member)
        elif head.view == self.view.id:
            self.leader.admission.on_view_wanted()

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
            self.elsewhere.explain(src, proposal.view.id, asked=True)
        elif src not in self.view.members and src not in proposal.view.members:
            self.env.drop("installation by a stranger")
        elif me not in proposal.view.members:
            self._excluded_by(src, proposal)
        elif self.part.has_accepted(proposal.ballot):
            self.install(proposal, None)
            self.tell(src, InstallAck(proposal.view.id))
        else:
            self.env.drop("installation that was never accepted here")

    def _excluded_by(self, src: Address, proposal: Proposal) -> None:
        if self.knows(src):
            self.left("left" if self.leaving else "excluded", "", proposal.cut)
        else:
            self.env.drop("exclusion by a stranger")

    def install(self, proposal: Proposal, digest: events.Marks | None) -> None:
        """Take a decided successor of the own view, or, as a joiner, the first view that names this member."""
        assert self.view is None or proposal.old == self.view.id
        joining = digest is not None
        self.part.record("installed", proposal)
        self.primary = proposal.primary
        self.elsewhere.kept = Install(proposal, digest)
        previous = None if joining else proposal.old
        together = (self.env.me,) if joining else proposal.transitional
        joined = tuple(member for member in proposal.view.members if member not in proposal.transitional)
        begins = (previous, together, joined, (), self.primary, digest, proposal.standings, proposal.cut, joining)
        self.enter(NewView(proposal.view, *begins))

    def enter(self, event: NewView) -> None:
        """Be in this view; who left by it is added."""
        view = event.view
        old, self.view = self.view, view
        self.phase = Phase.MEMBER
        self.highest = max(self.highest, view.id.number)
        self.part.reset()
        # What was still to be stopped and fetched for was the old view.
        self.above = [item for item in self.above if not isinstance(item, events.FetchTo | events.Stop)]
        self.suspicions.keep(view.members)
        self.view_wanted = False
        self.accusing.installed()
        event.left = () if old is None else tuple(member for member in old.members if member not in view.members)
        self.elsewhere.entered(old, view)
        self.below += [events.Contacts(dict(zip(view.members, view.contacts, strict=True))), event]
        self.above.append(event)
        self.leader.installed(changed=old is not None and bool(event.joined or event.left))
        self._suspicions_changed()
        later, self.later = self.later, {}
        self.inbox += [
            (src, head) for (src, _), head in later.items()
        ]  # of another view: explained, as if they came now

    def on_done(self, src: Address, head: Done) -> None:
        if self.view is not None and head.view == self.view.id and src in self.view.members:
            self.elsewhere.kept = None

    # -- those who are somewhere else

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
            self.elsewhere.explain(src, head.view, asked=True)

    # -- suspicion

    def _suspicions_changed(self) -> None:
        if self.phase is Phase.MEMBER:
            self.accusing.tell()
            self._ask_the_leader()

    def gauges(self) -> dict[str, int]:
        if self.phase is Phase.GONE:
            return {}
        return {
            "bound": int(self.part.bound is not None),
            "joiners": len(self.leader.admission.joiners) + len(self.leader.admission.silent),
            "leavers": len(self.leader.admission.leavers),
            "attempt": int(self.leader.attempt is not None),
        }


_HANDLERS: dict[type, Any] = {
    Join: Gms.on_join,
    heads.Refuse: lambda gms, src, head: gms.joining.on_refuse(head),
    LeaveReq: Gms.on_request,
    ViewReq: Gms.on_request,
    heads.Accuse: lambda gms, src, head: gms.accusing.on_accuse(src, head),
    heads.Ready: lambda gms, src, head: gms.part.on_ready(src, head),
    heads.ReadyRsp: lambda gms, src, head: gms.view is not None and gms.leader.on_ready_rsp(src, head),
    heads.Collect: lambda gms, src, head: gms.part.on_collect(src, head),
    heads.CollectAck: lambda gms, src, head: gms.leader.on_collect_ack(src, head),
    heads.Low: lambda gms, src, head: gms.leader.on_low(head),
    heads.Propose: lambda gms, src, head: gms.part.on_propose(src, head),
    heads.Accept: lambda gms, src, head: gms.leader.on_accept(src, head),
    heads.Fetches: lambda gms, src, head: gms.leader.on_fetches(src, head),
    Install: Gms.on_install,
    InstallAck: lambda gms, src, head: gms.leader.on_install_ack(src, head),
    Done: Gms.on_done,
    Stuck: Gms.on_stuck,
    heads.Elsewhere: lambda gms, src, head: gms.leader.on_elsewhere(src, head),
    Excluded: Gms.on_excluded,
}
