"""GMS with a primary component: a majority of each view decides the next one, so views are one chain.

A member that cannot reach enough of its view is blocked: it stops as if it were bound to an attempt, informs the
application (`Blocked`), and waits.  When enough members are heard again, the next view change takes it along
(`Unblocked`), or it learns that the others went on without it (`Excluded`).

A majority may decide a view without the answer of each member.  A member that is named in the view and has not accepted
it fetches its missing runs first.  A member that has no place in the view may be the only member that knows the view.
Therefore it stays until enough members of the view have the installation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from pygroups.core.address import Address
from pygroups.core.driver_events import Found
from pygroups.core.events import Event, Fetched, FetchTo, Invited, NewView, Positions, Stop, Vouched
from pygroups.core.layer import Env
from pygroups.core.run import Run
from pygroups.core.suspicion_events import HeartbeatOf, Suspect, Unsuspect
from pygroups.core.tables import Tables, under
from pygroups.core.view import HISTORY_DIGITS, ViewId

from ..decisions.proposal import Proposal, proposal_of
from ..decisions.quorum import MAJORITY, Quorum
from ..heads import HEADS, Difference, Excluded, Install, InstallAck, Ready, ReadyRsp, Stuck
from ..layer import Gms
from ..membership import Phase
from . import birth, former_lives, rebirth
from .birth import Call, Taken
from .blocking import Blocking
from .former_lives import FromFormer, ToFormer
from .vouching import Vouching


class PrimaryGms(Gms):
    """GMS in which views are one chain; see the module."""

    __slots__ = ("asking_former", "birth", "blocking", "givers", "rebirth", "speaker", "vouching")

    gives: ClassVar[frozenset[str]] = frozenset({"MEMBERSHIP", "PRIMARY"})
    heads: ClassVar[tuple[type, ...]] = (*HEADS, *birth.HEADS, *former_lives.HEADS, *rebirth.HEADS)
    quorum: ClassVar[Quorum] = MAJORITY
    tables: ClassVar[Tables] = {
        **Gms.tables,
        "givers": "members",
        **under("birth", birth.Birth.tables),
        **under("blocking", Blocking.tables),
        **under("rebirth", rebirth.Rebirth.tables),
    }

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.rebirth = rebirth.Rebirth(self)
        self.birth = birth.Birth(self, self.rebirth)
        self.speaker = former_lives.Speaker(self)
        self.blocking = Blocking(self)
        self.vouching = Vouching(self, self.rebirth, self.blocking)
        self.asking_former = former_lives.AskingFormer(self, self.blocking)
        self.givers: dict[Address, None] = {}  # the members that gave the decided view whose runs are fetched

    # -- the first view

    def up(self, run: Run) -> None:
        head = run.head
        if self.phase is Phase.JOINING:
            self.rebirth.hears([run.src])
        handler = _OF_BIRTHS.get(type(head))
        if isinstance(head, ToFormer):
            self.speaker.on_asked(run.src, head)
        elif isinstance(head, rebirth.Formerly):
            self.rebirth.on_formerly(run.src, head)
        elif isinstance(head, FromFormer):
            self.asking_former.on_answer(run.src, head)
            self._work()
        elif handler is None:
            if isinstance(head, ReadyRsp) and self.blocking.blocked and run.src in self.suspicions.unanswered:
                self.leading.change.end_pause(run.src)
            elif isinstance(head, Ready) and self.blocking.blocked and self.knows(run.src):
                self.leading.change.shorten_pause()
            super().up(run)
        elif self.env.expect and self.phase is not Phase.GONE:
            handler(self, run.src, run.head)
            self._begin_a_group()

    def _begin_a_group(self) -> None:
        """Take part in the birth of the group, and handle this process's messages to itself."""
        if not self.env.expect or self.phase is not Phase.JOINING:
            return
        while self.phase is Phase.JOINING:
            self.birth.go_on()
            if not self.inbox:
                return
            src, head = self.inbox.pop(0)
            _OF_BIRTHS[type(head)](self, src, head)
        self._work()

    def on_call(self, src: Address, head: Call) -> None:
        """A process that lacks the installation of this view gets it."""
        if self.view is not None:
            self.other_views.explain(src, None, asked=True)
        self.birth.on_call(src, head)

    def on_taken(self, src: Address, head: Taken) -> None:
        """The last process that was needed has accepted the first view."""
        proposal = self.birth.on_taken(src, head)
        if proposal is not None:
            self.leading.decided(proposal)
            self._take_first(proposal)  # first: to members of the view nothing is given up
            self.tell_decided(proposal.view.members, proposal)

    def on_install(self, src: Address, head: Install) -> None:
        first = proposal_of(head.difference, None) if self.view is None else None
        if first is not None and self.rebirth.is_given_up(first.view):
            if self.rebirth.lives_on(src) and self.phase is Phase.JOINING:
                self.left("excluded", f"{src} has a view in which this process gave up its place")
            else:
                self.env.drop("installation of a group that has ended")
        elif self._take_first(first):
            self.tell(src, InstallAck(head.difference.id))
        else:
            super().on_install(src, head)

    def _take_first(self, proposal: Proposal | None) -> bool:
        """Enter the decided first view of the group, if it names this process.  Returns whether it was entered."""
        if proposal is None or not proposal.founds or self.phase is not Phase.JOINING:
            return False
        if self.rebirth.is_given_up(proposal.view):
            return False
        members = proposal.view.members
        if self.env.me not in members:
            return False
        self.binding.record("installed", proposal, proposal.sides[0])
        self.primary = True
        self.other_views.keep(proposal, None)
        self.enter(
            NewView(
                view=proposal.view,
                previous=None,
                transitional=(self.env.me,),
                joined=members,
                left=(),
                primary=True,
                starts=None,
            )
        )
        return True

    def new_history(self) -> str:
        return f"{self.env.rng.randrange(0, 16**HISTORY_DIGITS):0{HISTORY_DIGITS}x}"

    # -- a minority, and former incarnations

    def helpers(self) -> tuple[Address, ...]:
        """The members that this member hears.  A minority may wait for days, and messages to silent members would pile
        up."""
        return tuple(member for member in self.current.members if member not in self.suspicions.known)

    def tell(self, dest: Address | None, head: object) -> None:
        """A message to a member that has ended goes to the process that answers for it."""
        speaker = None if dest is None else self.outgoing.spoken_for.get(dest)
        if dest is None or speaker is None:
            super().tell(dest, head)
        elif (forwarded := self.asking_former.forwarded(dest, head)) is not None:
            super().tell(speaker, forwarded)

    def _work(self) -> None:
        self.blocking.check()
        super()._work()
        self.blocking.check()
        self.blocking.set_timer()

    def take_vouched(self, members: Iterable[Address]) -> None:
        self.vouching.take(members)

    def timer(self) -> None:
        self.blocking.look_if_due()
        super().timer()
        self._begin_a_group()

    def on_stuck(self, src: Address, head: Stuck) -> None:
        """The member may lack the runs that this one waits for."""
        self.blocking.hears_of_a_lack(src, head)
        super().on_stuck(src, head)

    def on_excluded(self, src: Address, head: Excluded) -> None:
        if self.blocking.is_answer(src, head):
            detail = f"{src} is in a later view without this member"
            self.left("left" if self.leaving else "excluded", detail)
        else:
            super().on_excluded(src, head)

    def up_event(self, event: Event) -> None:
        if isinstance(event, Found):
            event = self._found(event)
        if isinstance(event, Unsuspect) and self.phase is Phase.MEMBER:
            self.answering.heard_again()
            self.leading.change.heard_again(event.member, self.blocking.heard_again(event.member))
        elif isinstance(event, Suspect):
            self.blocking.suspects_more()
        elif isinstance(event, HeartbeatOf):
            self.blocking.heartbeat(event)
        super().up_event(event)
        self._begin_a_group()

    def _found(self, event: Found) -> Found:
        """Discovery names members, and other processes without a view."""
        if self.phase is Phase.JOINING:
            may_found, event = event.may_found, self.rebirth.found(event)
            if may_found and not event.may_found:
                self.below.append(Invited(self.joining.is_invited))  # gives the permission to found back
            self.rebirth.tell_application(alone=not event.members)
            self.birth.found(event)
            self.speaker.tell_members(event.members)
        self.asking_former.asks(self.blocking.found(event))
        return event

    # -- a view that was decided without this member's answer

    def may_come_to(self, view: ViewId) -> bool:
        """Each later view may have been decided without this member's answer."""
        return view > self.current.id or super().may_come_to(view)

    def decided_without_an_answer(self, src: Address, proposal: Proposal) -> None:
        """Fetch up to the cut, whatever this member is bound to, and then install the view."""
        binding, last = self.binding, self.binding.last
        if last is not None and last.view.id == proposal.view.id:  # under another ballot; the cut is the same
            self._take([src], proposal)
            return
        self.givers[src] = None
        if binding.decided is not None:
            return  # on the way to it
        self.env.count("decided without an answer")
        side = proposal.side_of(self.current.id)
        assert side is not None
        fetches = binding.proposal is not None and binding.proposal.ballot == proposal.ballot == binding.ballot
        binding.follow(proposal)
        if binding.ballot is None:
            binding.bind(proposal.ballot)
        self.leading.change.abandon()
        if not fetches:
            self.above += [Stop(proposal.ballot), FetchTo(proposal.ballot, side.cut, side.holders)]

    def down_event(self, event: Event) -> None:
        decided = self.binding.decided
        if isinstance(event, Fetched) and decided is not None and self.env.me in decided.view.members:
            if event.ballot == decided.ballot:
                self._take(list(self.givers), decided)
            self._work()
        elif isinstance(event, Vouched):
            self.vouching.asked(event.member)
            self._work()
        else:
            super().down_event(event)

    def _take(self, givers: list[Address], proposal: Proposal) -> None:
        self.install(proposal, None)
        for member in givers:
            self.tell(member, InstallAck(proposal.view.id))

    def enter(self, event: NewView) -> None:
        self.blocking.enters()
        if self.view is None:
            self.inbox = []  # messages of the birth
            self.birth.ends()
            self.rebirth.ends()
        self.givers = {}
        super().enter(event)

    # -- a view without this member

    def decided_without_me(self, proposal: Proposal) -> None:
        self.leading.goes_after_enough(proposal)

    def excluded_by(self, src: Address, proposal: Proposal) -> None:
        """Stay until enough members of the view have the installation.  `src` has the installation."""
        if self.binding.decided is None:
            self.env.count("left out and waits")
            self.decided_without_me(proposal)
        self.leading.on_install_ack(src, InstallAck(proposal.view.id))

    def follows_another_view(self, src: Address, difference: Difference) -> None:
        """A member that got its first view late may have been left out of the next one, and be named as a joiner of a
        view after that."""
        if self.knows(src) and difference.id > self.current.id and self.env.me in difference.joiners:
            detail = f"the others went on without this member, and admit it as a joiner of the view {difference.id}"
            self.left("left" if self.leaving else "excluded", detail)
        else:
            super().follows_another_view(src, difference)

    def left(self, reason: str, detail: str, cut: Positions | None = None, policy: str = "") -> None:
        """A blocked member hands up nothing of its view."""
        super().left(reason, detail, {} if self.blocking.blocked else cut, policy)


_OF_BIRTHS: dict[type, Any] = {
    birth.Call: PrimaryGms.on_call,
    birth.Called: lambda gms, src, head: gms.birth.on_called(src, head),
    birth.First: lambda gms, src, head: gms.birth.on_first(src, head),
    birth.Lives: lambda gms, src, head: gms.birth.on_lives(src, head),
    Taken: PrimaryGms.on_taken,
}
