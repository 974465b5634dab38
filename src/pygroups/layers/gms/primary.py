"""GMS with a primary component: a majority of each view decides the next one, so views are one chain.

A member that cannot reach enough of its view is blocked: it stops as if it were bound to an attempt, tells the
application (`Blocked`), and waits.  When enough members are heard again, the next view change takes it along
(`Unblocked`), or it learns that the others went on without it (`Excluded`).

A majority may decide a view without the answer of each member.  A member that is named in the view and has not accepted
it fetches its missing runs first.  A member that has no place in the view stays until enough members of the view have
the installation: it may be the only one that knows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.driver_events import Contacts, Find, Found
from pygroups.core.events import (
    Blocked,
    Event,
    Fetched,
    FetchTo,
    HeartbeatOf,
    Invited,
    NewView,
    Positions,
    Stop,
    Unblocked,
    Unsuspect,
    Vouched,
    VouchedFor,
)
from pygroups.core.layer import Env
from pygroups.core.run import Run
from pygroups.core.view import HISTORY_DIGITS, Ballot, ViewId

from . import birth, former_lives, rebirth
from .birth import Call, Taken
from .former_lives import FORWARDED, FromFormer, ToFormer, may_take
from .heads import HEADS, Difference, Excluded, Install, InstallAck, LeaveReq, Propose, Stuck
from .joining import ASK_MAX
from .layer import Gms
from .membership import Phase
from .proposal import Installation, Proposal, Side, difference, in_full, proposal_of
from .quorum import MAJORITY, Quorum
from .suspicion import Suspicion

COMPLAINTS: Final = 2  # of a bound member in vain, before it counts as blocked


class PrimaryGms(Gms):
    """GMS in which views are one chain; see the module."""

    __slots__ = ("ahead", "birth", "blocked", "givers", "look_at", "looks", "others", "rebirth", "speaker")

    gives: ClassVar[frozenset[str]] = frozenset({"MEMBERSHIP", "PRIMARY"})
    heads: ClassVar[tuple[type, ...]] = (*HEADS, *birth.HEADS, *former_lives.HEADS, *rebirth.HEADS)
    quorum: ClassVar[Quorum] = MAJORITY

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        env.majority = True
        self.rebirth = rebirth.Rebirth(self)
        self.birth = birth.Birth(self, self.rebirth)
        self.speaker = former_lives.Speaker(self)
        self.blocked = False  # and the application knows it
        self.ahead: dict[Address, None] = {}  # members of this view that are heard in a later one
        self.look_at = 0  # when a blocked member looks for members outside its view
        self.looks = 0  # how often it did
        self.others: dict[Address, None] = {}  # those that it asked
        self.givers: dict[Address, None] = {}  # the members that gave the decided view whose runs are fetched

    # -- the first view

    def up(self, run: Run) -> None:
        head = run.head
        handler = _OF_BIRTHS.get(type(head))
        if isinstance(head, ToFormer):
            self.speaker.on_asked(run.src, head.head)
        elif isinstance(head, rebirth.Formerly):
            self.rebirth.on_formerly(run.src, head)
        elif isinstance(head, FromFormer):
            self._hears_a_former_life(run.src, head)
        elif handler is None:
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
            self.leading.told = proposal.view.id
            self._takes_first(proposal)  # first: to members of the view nothing is given up
            self.tell_decided(proposal.view.members, proposal)

    def on_install(self, src: Address, head: Install) -> None:
        if self.view is None and self._takes_first(proposal_of(head.difference, None)):
            self.tell(src, InstallAck(head.difference.id))
        else:
            super().on_install(src, head)

    def _takes_first(self, proposal: Proposal | None) -> bool:
        """Enter the decided first view of the group, if it names this process."""
        if proposal is None or not proposal.founds or self.phase is not Phase.JOINING:
            return False
        members = proposal.view.members
        if self.env.me not in members:
            return False
        self.binding.record("installed", proposal, proposal.sides[0])
        self.primary, self.other_views.kept = True, Installation(proposal, None)
        self.enter(NewView(proposal.view, None, (self.env.me,), members, (), True, None))
        return True

    # -- former lives

    def tell(self, dest: Address | None, head: object) -> None:
        """A message to a member that has ended goes to the process that answers for it."""
        speaker = None if dest is None else self.spoken_for.get(dest)
        if dest is None or speaker is None:
            super().tell(dest, head)
        elif isinstance(head, FORWARDED):
            if isinstance(head, Propose | Install):
                head = msgspec.structs.replace(head, difference=in_full(head.difference, self.current))
            super().tell(speaker, ToFormer(dest, head))

    def _hears_a_former_life(self, src: Address, head: FromFormer) -> None:
        """`src` answers for a member of this view, of which it proves that it has ended."""
        former, said = head.former, head.head
        if not self.knows(former) or former in (self.env.me, src) or former.name != src.name:
            return
        if isinstance(said, LeaveReq):
            self._may_be_spoken_for(src, former, said)
        elif isinstance(said, Install):
            if may_take(said.difference, self):
                self.handle(former, said)
        elif self.spoken_for.get(former) == src or isinstance(said, Excluded):
            self.handle(former, said)
        self._work()

    def _may_be_spoken_for(self, src: Address, former: Address, said: LeaveReq) -> None:
        """Ask the former life only if the living members are not enough: it is out of the next view anyway.  A blocked
        member asks all of them: runs that none of them holds are lost."""
        view = self.current
        if self.binding.decided is not None:
            return  # this member is on its way, or hands the next view over
        if said.view > view.id:  # the others went on: was this member left out?
            super().tell(src, ToFormer(former, Stuck(self.next_ballot(), view.id)))
        elif said.view < view.id:  # it did not learn of this view
            side = Side(msgspec.structs.replace(view, id=said.view), view.members, {}, {})
            proposal = Proposal(Ballot(*view.id), view, (side,), primary=True)
            super().tell(src, ToFormer(former, Install(difference(proposal, None), None)))
        elif self.spoken_for.get(former) != src and (self.blocked or self.spoken_for or not self.reaches_enough()):
            self.env.count("former lives that are answered for")
            self.suspicions.suspect(former, Suspicion.ENDED)
            self.spoken_for[former] = src
            self.answering.heard_again(at_once=True)
            self.leading.change.heard_again()

    def new_history(self) -> str:
        return f"{self.env.rng.randrange(0, 16**HISTORY_DIGITS):0{HISTORY_DIGITS}x}"

    # -- a minority

    def helpers(self) -> tuple[Address, ...]:
        """The members that are heard.  A minority may wait for days, and messages to silent members would pile up."""
        return tuple(member for member in self.current.members if member not in self.suspicions.known)

    def _work(self) -> None:
        self._block_if_few()
        super()._work()
        self._block_if_few()
        if self.blocked and self.phase is Phase.MEMBER:
            self.wake_at(self.look_at)

    def _block_if_few(self) -> None:
        """Stop this member, and tell the application, if it cannot reach enough of its view."""
        if self.phase is not Phase.MEMBER or self.blocked:
            return
        members, bound = self.current.members, self.binding.ballot is not None
        missing = [m for m in members if m != self.env.me and m in self.suspicions]
        missing += [m for m in self.ahead if not bound and m not in missing]
        in_vain = bound and self.answering.complaints >= COMPLAINTS
        in_vain |= self.leading.change.is_unheard()
        if self.quorum.may_go_on(self.current, [m for m in members if m not in missing]) and not in_vain:
            return
        self.blocked = True
        self.env.count("blocked")
        if not bound:
            self._stop_alone()
        self.looks, self.look_at = 0, self.env.now + self.env.config.flush_timeout
        names = ", ".join(str(member) for member in missing) or "a leader of the view change"
        self.above.append(Blocked(f"a majority of the {len(members)} members of the view is needed; missing: {names}"))

    def _stop_alone(self) -> None:
        """Bind this member to a ballot of its own.  It hands nothing up any more, and never resumes its view."""
        ballot = self.next_ballot()
        self.heard_of(ballot)
        self.binding.ballot, self.binding.proposal = ballot, None
        self.answering.heard_leader()
        self.above.append(Stop(ballot))

    def _on_vouched(self, member: Address) -> None:
        """An operator speaks to this member.  A process that this member hears has not ended."""
        if self.phase is Phase.JOINING and member in self.rebirth.missing():
            self.rebirth.vouched[member] = None
            self.above.append(VouchedFor(member, "taken"))
        elif self.phase is not Phase.MEMBER or not self.knows(member):
            self.above.append(VouchedFor(member, "unknown"))
        elif member == self.env.me or member not in self.suspicions.known:
            self.above.append(VouchedFor(member, "alive"))
        else:
            self.take_vouched([member])
            self.above.append(VouchedFor(member, "taken"))

    def take_vouched(self, members: Iterable[Address]) -> None:
        """An operator vouches that these members have ended for good: they count as accepting what is proposed."""
        new = [member for member in members if self.knows(member) and member not in (self.env.me, *self.vouched)]
        for member in new:
            self.env.count("vouched")
            self.env.record("suspect", peer=member, reason="vouched")
            self.vouched[member] = None
            self.suspicions.elsewhere(member)  # whatever is heard of it
        if new:
            self.answering.heard_again(at_once=True)
            self.leading.change.heard_again()

    def timer(self) -> None:
        if self.phase is Phase.MEMBER and self.blocked and self.env.now >= self.look_at:
            self._look_for_others()
        super().timer()
        self._begin_a_group()

    def _look_for_others(self) -> None:
        """Find members of the group that are in no view with this one: all that this member knows may have ended."""
        config = self.env.config
        self.below.append(Find())
        self.look_at = self.env.now + min(config.flush_timeout << min(self.looks, 10), config.patience_max)
        self.looks += 1

    def _ask_others(self, found: Found) -> None:
        """Ask some of them.  A member of a later view tells this one that the others went on without it."""
        binding, contacts = self.binding, {m: c for m, c in found.members.items() if not self.knows(m)}
        if not self.blocked or binding.ballot is None or not contacts:
            return
        members = sorted(contacts)
        self.env.rng.shuffle(members)
        self.others = dict.fromkeys(members[:ASK_MAX])
        self.below.append(Contacts({member: contacts[member] for member in self.others}))
        for member in self.others:
            self.tell(member, Stuck(binding.ballot, self.current.id))

    def on_excluded(self, src: Address, head: Excluded) -> None:
        if self.blocked and src in self.others and head.view == self.current.id:
            detail = f"{src} is in a later view without this member"
            self.left("left" if self.leaving else "excluded", detail)
        else:
            super().on_excluded(src, head)

    def up_event(self, event: Event) -> None:
        if isinstance(event, Found):
            event = self._found(event)
        if isinstance(event, Unsuspect) and self.phase is Phase.MEMBER:
            self.answering.heard_again()
            self.leading.change.heard_again()
        elif isinstance(event, HeartbeatOf) and self.knows(event.member) and event.view > self.current.id:
            self.ahead[event.member] = None
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
        self._ask_others(event)
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
        binding.decided = proposal
        if binding.ballot is None:
            binding.ballot = proposal.ballot
        self.leading.change.attempt = None
        if not fetches:
            self.above += [Stop(proposal.ballot), FetchTo(proposal.ballot, side.cut, side.holders)]

    def down_event(self, event: Event) -> None:
        decided = self.binding.decided
        if isinstance(event, Fetched) and decided is not None and self.env.me in decided.view.members:
            if event.ballot == decided.ballot:
                self._take(list(self.givers), decided)
            self._work()
        elif isinstance(event, Vouched):
            self._on_vouched(event.member)
            self._work()
        else:
            super().down_event(event)

    def _take(self, givers: list[Address], proposal: Proposal) -> None:
        self.install(proposal, None)
        for member in givers:
            self.tell(member, InstallAck(proposal.view.id))

    def enter(self, event: NewView) -> None:
        if self.blocked:
            self.blocked = False
            self.above.append(Unblocked())
        if self.view is None:
            self.inbox = []  # messages of the birth
            self.birth.ends()
            self.rebirth.ends()
        self.ahead, self.givers, self.others = {}, {}, {}
        self.vouched = {member: None for member in self.vouched if member in event.view.members}
        self.spoken_for = {one: by for one, by in self.spoken_for.items() if one in event.view.members}
        super().enter(event)

    # -- a view without this member

    def decided_without_me(self, proposal: Proposal) -> None:
        self.leading.goes_after_enough(proposal)

    def excluded_by(self, src: Address, proposal: Proposal) -> None:
        """Stay until enough members of the view have the installation."""
        if self.binding.decided is None:
            self.env.count("left out and waits")
            self.decided_without_me(proposal)

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
        super().left(reason, detail, {} if self.blocked else cut, policy)


_OF_BIRTHS: dict[type, Any] = {
    birth.Call: PrimaryGms.on_call,
    birth.Called: lambda gms, src, head: gms.birth.on_called(src, head),
    birth.First: lambda gms, src, head: gms.birth.on_first(src, head),
    birth.Lives: lambda gms, src, head: gms.birth.on_lives(src, head),
    Taken: PrimaryGms.on_taken,
}
