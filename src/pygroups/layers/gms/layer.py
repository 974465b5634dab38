"""GMS: the members of the group.  Joins, leaves and crashes go through one view change: see docs/layers/gms.md.

This file is the layer: it passes each message to the part that answers it, and installs the decided view.  Each part
uses only the parts before it:

decisions/suspicion.py      the suspicions of each member
decisions/outgoing.py       members that are excluded by policy, vouched for, or answered for
decisions/electors.py       the members of which a view needs most to be primary
heads.py                    the messages on the wire
decisions/proposal.py       the next view, and its difference to the view before, which goes on the wire
decisions/decide.py         the decisions, as pure functions
decisions/quorum.py         the answers that a view change needs: of all members, or of a majority
membership.py               the view, its leader, and the ballot to which this member is bound
member/joining.py           how a process comes into a group, or founds one
majority/rebirth.py         a group begins anew after its end
majority/birth.py           several processes decide the first view of a group
member/accusing.py          the other members learn which members this one suspects
member/expelling.py         a slow member is excluded by policy
member/other_views.py       a process in another view learns where it belongs
member/answering.py         a member's answers to an attempt
decisions/answer_times.py   how long each member takes to answer
member/confirming.py        a member that was paused for long asks whether its view still exists
leader/admission.py         joiners, leavers and contested names that wait
leader/requests.py          a member's requests to the leader: to join, to leave, to make another view
leader/roll_call.py         Ready: the members that are there
leader/verification.py      suspicions of other members are checked
decisions/attempt.py        an attempt at a view change, from Ready to the decision: a table
decisions/merge_attempt.py  an attempt that merges several views
leader/view_change.py       attempts begin, are carried out, and end
leader/regaining.py         a view becomes primary again
leader/handover.py          a decided view on its way to all of its members
leader/leading.py           the next action of the leader
leader/merging.py           MERGE2 learns whether this member is busy, and begins a merge
layer.py                    the layer in which each decision needs all members that go on

majority/primary.py is the layer in which a majority decides.  The layer also uses these parts:

majority/blocking.py        a member that cannot reach enough of its view stops
majority/vouching.py        an operator says that a process has ended for good
majority/former_lives.py    a process answers for its former incarnation, and members ask it
"""

from __future__ import annotations

from typing import Any, ClassVar

from pygroups.core import events, suspicion_events
from pygroups.core.address import Address
from pygroups.core.driver_events import Contacts, Found, Incompatible
from pygroups.core.events import Event, NewView
from pygroups.core.layer import NEVER, Env
from pygroups.core.merge_events import Accounted, MergeWanted, Replaced, Reserved, RoundTrips
from pygroups.core.run import Run
from pygroups.core.services import MERGING
from pygroups.core.state_events import StateStanding, ViewWanted
from pygroups.core.suspicion_events import LifeVerified, Suspect, Unsuspect
from pygroups.core.tables import Tables, under
from pygroups.layers.gms.decisions.electors import TABLES
from pygroups.layers.gms.decisions.outgoing import Outgoing
from pygroups.layers.gms.decisions.suspicion import Suspicions
from pygroups.layers.gms.membership import Binding

from . import heads
from .decisions import electors
from .decisions.proposal import Proposal, new_view, proposal_of
from .decisions.suspicion import Suspicion
from .heads import (
    HEADS,
    Accept,
    Accuse,
    Collect,
    Difference,
    Done,
    Excluded,
    Install,
    InstallAck,
    Ready,
    Stuck,
)
from .leader.leading import Leading
from .leader.merging import Merging
from .leader.requests import Requests
from .member.accusing import Accusing
from .member.answering import Answering
from .member.expelling import Expelling
from .member.joining import Joining
from .member.other_views import OtherViews
from .membership import Membership, Phase


class Gms(Membership):
    """Views, agreed on; see the module."""

    __slots__ = ("accusing", "answering", "expelling", "joining", "leading", "merging", "other_views", "requests")

    needs: ClassVar[frozenset[str]] = frozenset({"FIFO_UNICAST", "SUSPICION", "DISCOVERY"})
    needs_above: ClassVar[frozenset[str]] = frozenset({"VIRTUAL_SYNCHRONY"})  # FLUSH answers: no view comes without it
    gives: ClassVar[frozenset[str]] = frozenset({"MEMBERSHIP"})
    heads: ClassVar[tuple[type, ...]] = HEADS
    own_heads_only: ClassVar[bool] = True

    tables: ClassVar[Tables] = {
        "accounted.ended": "members_max",
        "inbox": "turn",
        "later": "later",
        "later[].suspects": "members_max",
        "later[].vouched": "members_max",
        **under("later[].difference", Difference.tables),
        **under("electors", TABLES),
        **under("accusing", Accusing.tables),
        **under("binding", Binding.tables),
        **under("joining", Joining.tables),
        **under("leading", Leading.tables),
        **under("merging", Merging.tables),
        **under("other_views", OtherViews.tables),
        **under("outgoing", Outgoing.tables),
        **under("suspicions", Suspicions.tables),
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.joining = Joining(self)
        self.accusing = Accusing(self)
        self.expelling = Expelling(self)
        self.other_views = OtherViews(self)
        self.answering = Answering(self, self.other_views)
        self.leading = Leading(self, self.other_views, self.accusing, self.answering)
        self.requests = Requests(self, self.other_views, self.leading.admission)
        self.merging = Merging(self, self.leading)

    # -- input

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
            founded = self.joining.on_found(event)
            if founded is not None:
                self.electors = electors.installed((), founded.view, ())
                self.enter(founded)
        elif isinstance(event, Incompatible):
            self.joining.stays_apart(event.peer, event.detail)
        elif isinstance(event, LifeVerified):
            self.leading.admission.former_life_answered(event.member)
        elif isinstance(event, suspicion_events.HeartbeatOf):
            self.other_views.explain(event.member, event.view, asked=False)
            if MERGING in self.env.services and self.other_views.note_elsewhere(event.member, event.view):
                self.suspicions.elsewhere(event.member)
                self._suspicions_changed()
        elif isinstance(event, Reserved):
            self.reserved = event
        elif isinstance(event, RoundTrips):
            self.leading.times.measured(event.times)
        elif isinstance(event, Replaced):
            self.expelling.gives_way(event.newer)
        elif isinstance(event, MergeWanted):
            self.merging.begin(event)
        elif isinstance(event, Accounted):
            self.accounted = event
            self.leading.regaining.look()
        elif isinstance(event, Suspect):
            self.suspicions.suspect(event.member, Suspicion.ENDED if event.proven else Suspicion.SILENT)
            if event.proven:
                self.leading.admission.former_life_ended(event.member)
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
            self.answering.stopped(event)
        elif isinstance(event, events.Fetching):
            self.answering.fetching()
        elif isinstance(event, events.Fetched):
            self.answering.fetched(event.ballot)
        elif isinstance(event, events.Installed):
            self.other_views.starts_are(event.marks)
        elif isinstance(event, StateStanding):
            self.standing = event.standing
        elif isinstance(event, events.Join):
            self.phase = Phase.JOINING
            self.joining.ask_for_members()
        elif isinstance(event, events.Leave):
            self.leaving = True
            self.requests.leave()
        elif isinstance(event, events.Expel):
            self.expelling.wants(event)
        elif isinstance(event, ViewWanted):
            self.requests.want_a_view()
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
        elif self.phase is Phase.MEMBER and self.binding.ballot is not None and self.leading.change.attempt is None:
            self.answering.complain()
        self.accusing.tell()
        self._work()

    def after_pause(self) -> None:
        self.leading.confirming.after_pause()

    def _work(self) -> None:
        """Do the work of a leader, then handle this member's messages to itself, until no message is left."""
        while self.phase is Phase.MEMBER:
            self.leading.work()
            if not self.inbox:
                break
            src, head = self.inbox.pop(0)
            _HANDLERS[type(head)](self, src, head)
        if MERGING in self.env.services:
            self.merging.report()

    def handle(self, src: Address, head: object) -> None:
        """Handle a message of GMS."""
        _HANDLERS[type(head)](self, src, head)

    # -- messages that concern more than one part

    def on_ready(self, src: Address, head: Ready) -> None:
        """Answer Ready.  A joiner that gets Ready may be in the next view."""
        if self.view is None:
            self.joining.invited()
        self.answering.on_ready(src, head)

    def on_collect(self, src: Address, head: Collect) -> None:
        """A member that is bound to another one's ballot gives its own attempt up."""
        if self.answering.on_collect(src, head):
            self.leading.change.overtaken(head.ballot)

    def on_accuse(self, src: Address, head: Accuse) -> None:
        """The leader, or the member that would lead, checks the accusation itself."""
        for member, how in self.accusing.on_accuse(src, head).items():
            self.leading.verification.on_accused(member, how)

    def on_accept(self, src: Address, head: Accept) -> None:
        """The last Accept that is needed decides the view."""
        proposal = self.leading.change.on_accept(src, head)
        if proposal is None:
            return
        if self.env.me not in proposal.going_on:
            self.decided_without_me(proposal)
        elif self.binding.has_accepted(proposal.ballot):
            self.leading.decided(proposal)
            self.install(proposal, None)
        else:
            self.decided_without_an_answer(self.env.me, proposal)

    def on_stuck(self, src: Address, head: Stuck) -> None:
        """A bound member hears nothing."""
        if self.view is None or head.view != self.view.id:
            self.other_views.explain(src, head.view, asked=True)
        elif not self.knows(src):
            self.env.drop("view change of a stranger")
        elif not self.other_views.give_decided(src, head.view):
            self.leading.on_stuck(head)

    # -- installing

    def on_install(self, src: Address, head: Install) -> None:
        """Take the successor of the own view, or the first view.  For any other view the sender gets the reply of
        other_views.py."""
        difference, me, view = head.difference, self.env.me, self.view
        if view is not None and difference.id == view.id:
            self.tell(src, InstallAck(view.id))
        elif view is not None and not difference.follows(view.id):
            self.follows_another_view(src, difference)
        elif (proposal := proposal_of(difference, view)) is None:
            self.env.drop("invalid proposal")
        elif view is None:
            if self.phase is Phase.JOINING and head.starts is not None and me in proposal.view.members:
                self.install(proposal, head.starts)
                self.tell(src, InstallAck(proposal.view.id))
        elif src not in view.members and src not in proposal.view.members:
            self.env.drop("installation by a stranger")
        elif me not in proposal.view.members:
            self.excluded_by(src, proposal)
        elif self.binding.has_accepted(proposal.ballot):
            self.install(proposal, None)
            self.tell(src, InstallAck(proposal.view.id))
        else:
            self.decided_without_an_answer(src, proposal)

    def follows_another_view(self, src: Address, difference: Difference) -> None:
        """The decided view does not follow this member's view."""
        self.other_views.explain(src, difference.id, asked=True)

    def decided_without_me(self, proposal: Proposal) -> None:
        """The view that this member decided has no place for this member."""
        self.leading.goes_after_all(proposal)

    def decided_without_an_answer(self, src: Address, proposal: Proposal) -> None:
        """The view names this member, which has not accepted it.  Only a majority decides so: see primary.py."""
        self.env.drop("installation that was never accepted here")

    def excluded_by(self, src: Address, proposal: Proposal) -> None:
        """The view follows this one without this member."""
        side = proposal.side_of(self.current.id)
        assert side is not None, "the proposal follows another view"
        policy = proposal.expelled.get(self.env.me, "")
        if self.knows(src) and (self.leaving or policy or MERGING not in self.env.services):
            self.left("left" if self.leaving else "excluded", "", side.cut, policy)
        else:
            self.env.drop("exclusion by a stranger")

    def install(self, proposal: Proposal, starts: events.Marks | None) -> None:
        """Take a decided successor of the own view, or, as a joiner, the first view that names this member."""
        side = None if self.view is None else proposal.side_of(self.view.id)
        assert self.view is None or side is not None, "the proposal follows another view"
        self.binding.record("installed", proposal, side or proposal.sides[0])
        self.primary = proposal.primary
        self.electors = electors.installed(self.electors, proposal.view, proposal.electors)
        self.other_views.keep(proposal, starts)
        self.enter(new_view(proposal, side, self.env.me, starts))

    def enter(self, event: NewView) -> None:
        """Enter this view.  The members that left with it are added to the event."""
        view = event.view
        old, self.view = self.view, view
        self.phase = Phase.MEMBER
        self.rise_above(view.id.number)
        self.binding.ends()
        self.answering.installed()
        # Stops and fetches that have not gone up yet concern the old view.
        self.above = [item for item in self.above if not isinstance(item, events.FetchTo | events.Stop)]
        self.suspicions.keep(view.members)
        self.outgoing.keep(view.members)
        self.requests.installed()
        self.accusing.installed()
        event.left = () if old is None else tuple(member for member in old.members if member not in view.members)
        self.other_views.entered(old, view, event.expelled)
        self.accounted = Accounted((), alone=False)
        event.absent = {} if self.primary else electors.absent(self.electors, view)
        self.below += [Contacts(dict(zip(view.members, view.contacts, strict=True))), event]
        self.above.append(event)
        self.leading.installed(changed=old is not None and bool(event.joined or event.left))
        # The first heartbeat of a joiner takes a round trip.  The others may suspect it, and the leader asks it first.
        if far := self.leading.times.of(event.joined):
            self.below.append(RoundTrips(far))
        self._suspicions_changed()
        later, self.later = self.later, {}
        self.inbox += [(src, head) for (src, _), head in later.items()]  # those of another view are explained now

    def on_done(self, src: Address, head: Done) -> None:
        """All members have the view."""
        if not self.knows(src):
            self.env.drop("end of a view change by a stranger")
        elif head.view == self.current.id:
            self.other_views.forget_installation()

    def on_excluded(self, src: Address, head: Excluded) -> None:
        """The others went on without this member.  A merge brings it back, unless it leaves or they excluded it by
        policy."""
        if not self.knows(src):
            self.env.drop("exclusion by a stranger")
            return
        if head.view != self.current.id:
            return
        if MERGING in self.env.services and not self.leaving and not head.reason:
            self.suspicions.elsewhere(src)
        else:
            detail = f"{src} is in a later view without this member"
            self.left("left" if self.leaving else "excluded", "" if head.reason else detail, policy=head.reason)

    # -- suspicion

    def _suspicions_changed(self) -> None:
        if self.phase is Phase.MEMBER:
            self.accusing.tell()
            self.requests.ask_the_leader()

    def gauges(self) -> dict[str, int]:
        """The open work: a bound member, joiners and leavers, an attempt."""
        if self.phase is Phase.GONE:
            return {}
        admission = self.leading.admission
        return {
            "bound": int(self.binding.ballot is not None),
            "joiners": len(admission.joiners) + len(admission.silent),
            "leavers": len(admission.leavers),
            "attempt": int(self.leading.change.attempt is not None),
            "in_doubt": int(self.leading.confirming.asked is not None),
        }


_HANDLERS: dict[type, Any] = {
    heads.Join: lambda gms, src, head: gms.requests.on_join(src, head),
    heads.Refuse: lambda gms, src, head: gms.joining.on_refuse(src, head),
    heads.LeaveReq: lambda gms, src, head: gms.requests.on_request(src, head),
    heads.ViewReq: lambda gms, src, head: gms.requests.on_request(src, head),
    Accuse: Gms.on_accuse,
    heads.Expel: lambda gms, src, head: gms.expelling.on_expel(src, head),
    Ready: Gms.on_ready,
    heads.ReadyRsp: lambda gms, src, head: gms.view is not None and gms.leading.on_ready_rsp(src, head),
    Collect: Gms.on_collect,
    heads.CollectAck: lambda gms, src, head: gms.leading.change.on_collect_ack(src, head),
    heads.CollectRefused: lambda gms, src, head: gms.leading.change.on_refused(src, head),
    heads.Low: lambda gms, src, head: gms.leading.change.on_low(src, head),
    heads.Propose: lambda gms, src, head: gms.answering.on_propose(src, head),
    Accept: Gms.on_accept,
    heads.Fetches: lambda gms, src, head: gms.leading.change.on_fetches(src, head),
    Install: lambda gms, src, head: gms.on_install(src, head),
    InstallAck: lambda gms, src, head: gms.leading.on_install_ack(src, head),
    Done: Gms.on_done,
    Stuck: lambda gms, src, head: gms.on_stuck(src, head),
    heads.Elsewhere: lambda gms, src, head: gms.leading.on_elsewhere(src, head),
    Excluded: lambda gms, src, head: gms.on_excluded(src, head),
}
