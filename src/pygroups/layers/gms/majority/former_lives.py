"""Former incarnations: where a majority decides, a process answers for the incarnation that its journal folder shows.

The former incarnation has ended, so it is in no further view.  The answers for it still count in its last view: without
them a group that loses its majority would stay blocked although the processes are back.  So the former incarnation is a
member that leaves, and another process answers for it: messages to the former incarnation go to that process
(ToFormer), and answers come back (FromFormer). A proposal that is accepted for the former incarnation is written into
its folder before the answer leaves.

A former incarnation that has installed a view may be the only one that knows of the decision.  Such a former
incarnation keeps the proposal that it accepted, and its process hands the installation on to members of the view
before.  If a member of that view lacks runs that ended with the processes that held them, the former incarnation also
answers in the view before: the proposal that it accepted there is repeated, or another view begins a new history.  A
former incarnation that accepts this other view gives its last view up, and answers in that one no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.former import FormerLife
from pygroups.core.view import UNBORN, Ballot, ViewId

from ..decisions.proposal import Proposal, Side, difference, difference_in, in_full, proposal_of, text_of
from ..decisions.suspicion import Suspicion
from ..heads import (
    Accept,
    Collect,
    CollectAck,
    Difference,
    Excluded,
    Install,
    InstallAck,
    LeaveReq,
    Low,
    Propose,
    Stuck,
)
from ..layer import Gms
from ..membership import Membership
from .blocking import Blocking

To = Collect | Propose | Install | Stuck
From = LeaveReq | CollectAck | Low | Accept | Install | InstallAck | Excluded


class ToFormer(msgspec.Struct, array_like=True, tag=65):
    """A message to a former incarnation, to the process that answers for it."""

    former: Address
    head: To


class FromFormer(msgspec.Struct, array_like=True, tag=66):
    """The answer of a former incarnation, from the process that answers for it."""

    former: Address
    head: From


HEADS: Final = (ToFormer, FromFormer)
FORWARDED: Final = (Collect, Propose, Install)


def may_take(decided: Difference, membership: Membership) -> bool:
    """Whether this member holds all runs that the view needs which a former incarnation installed.  The processes that
    held other runs may have ended, and a member that takes the decision waits for no run."""
    binding, view = membership.binding, membership.current
    proposal = proposal_of(decided, view)
    side = None if proposal is None else proposal.side_of(view.id)
    if proposal is None or side is None:
        return False
    if binding.last is not None and binding.last.view.id == proposal.view.id:
        return True
    return binding.ballot is not None and all(binding.held.get(one, 0) >= end for one, end in side.cut.items())


def votes_in(life: FormerLife) -> ViewId:
    """The view in which a former incarnation accepted a proposal, or else its last one; UNBORN if it had none.  One
    that accepted a proposal in the view before its last one has given its last view up."""
    accepted = difference_in(life.accepted)
    if life.view is None:
        return UNBORN
    return life.view.id if accepted is None else accepted.sides[0].old


class Speaker:
    """The answers of this process for its former incarnation."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.env = membership.env

    @property
    def life(self) -> FormerLife | None:
        """The former incarnation.  One without a view and a ballot may have lost its records, and answers nothing."""
        life = self.env.former
        shown = life is not None and (life.view is not None or life.bound is not None)
        return life if shown else None

    def tell_members(self, members: Iterable[Address]) -> None:
        """Offer the answers of the former incarnation to members that lack a majority of its last view."""
        life = self.life
        if life is not None and self.membership.view is None:
            for member in members:
                self._say(member, LeaveReq(votes_in(life), life.address))

    def on_asked(self, src: Address, asked: ToFormer) -> None:
        """A member asks the former incarnation.  A process that is a member itself, perhaps of a group that began anew,
        only says in which view the former incarnation ended."""
        life, head = self.life, asked.head
        if life is None or life.address != asked.former:
            self.env.drop("question to a former incarnation that this process does not know")
        elif isinstance(head, Stuck):
            self._tells_the_last_view(src, life, head)
        elif self.membership.view is not None:
            self.env.drop("question to a former incarnation of a member")
        elif life.view is None and isinstance(head, Install):
            self._learn_of_view(src, life, head)
        elif life.view is None:
            self.env.drop("question to a former incarnation that is in no view any more")
        elif isinstance(head, Install):
            proposal = proposal_of(head.difference, life.view)
            if proposal is not None:
                self._installs(src, life, proposal)
        else:
            self._votes(src, life, head)

    def _tells_the_last_view(self, src: Address, life: FormerLife, head: Stuck) -> None:
        """`src` asks in an earlier view whether it is left out of the last view."""
        made = difference_in(life.made)
        if life.view is None or life.view.id <= head.view:
            self.env.drop("question to a former incarnation that is in no later view")
        elif votes_in(life) != life.view.id:
            self.env.drop("question about a view that a former incarnation gave up")
        elif src not in life.view.members:
            self._say(src, Excluded(head.view))
        elif made is not None and made.follows(head.view):
            self._say(src, Install(made, None))

    def _votes(self, src: Address, life: FormerLife, head: Collect | Propose) -> None:
        """Bind the former incarnation to a ballot, or accept a proposal in its place, unless the former incarnation is
        bound to a higher ballot.  The record is written before the answer leaves."""
        assert life.view is not None
        proposal = proposal_of(head.difference, life.view) if isinstance(head, Propose) else None
        ballot = head.ballot if isinstance(head, Collect) else head.difference.ballot
        view = head.view if isinstance(head, Collect) else head.difference.sides[0].old
        made, accepted = difference_in(life.made), difference_in(life.accepted)
        is_last = view == votes_in(life)
        is_before = accepted is None and made is not None and made.follows(view)
        if not (is_last or is_before) or ballot.leader != src or (isinstance(head, Propose) and proposal is None):
            self.env.drop("question about another view of a former incarnation")
        elif life.bound is not None and ballot < life.bound:
            self._say(src, Low(ballot, life.bound))
        elif proposal is None:
            self._record("collect", view, ballot)
            last = made if is_before else accepted
            self._say(src, CollectAck(ballot, [], leaving=True, standing=False, accepted=last))
        else:
            if proposal.view.id != life.view.id:
                self._record("accepted", view, ballot, proposal)
            self._say(src, Accept(ballot))

    def _installs(self, src: Address, life: FormerLife, proposal: Proposal) -> None:
        """The next view is decided.  A former incarnation that it names has its last view there."""
        assert life.view is not None
        view = votes_in(life)
        if proposal.side_of(view) is not None:
            self._say(src, InstallAck(proposal.view.id))
            if life.address in proposal.view.members:
                self._record("installed", view, proposal.ballot, proposal)
        elif proposal.view.id == life.view.id:
            self._say(src, InstallAck(proposal.view.id))

    def _learn_of_view(self, src: Address, life: FormerLife, head: Install) -> None:
        """A view names the former incarnation, which ended before it learned that."""
        proposal = proposal_of(head.difference, None)
        if proposal is None or life.address not in proposal.view.members:
            self.env.drop("view without a former incarnation")
            return
        self._record("installed", None, proposal.ballot, proposal)
        self._say(src, InstallAck(proposal.view.id))

    def _record(self, stage: str, view: ViewId | None, ballot: Ballot, proposal: Proposal | None = None) -> None:
        """Write a step of the former incarnation into its own journal, and take it."""
        life = self.env.former
        assert life is not None
        fields = {"stage": stage, "ballot_number": ballot.number, "ballot_leader": ballot.leader}
        if proposal is not None:
            side, id = proposal.sides[0], proposal.view.id
            detail = text_of(proposal) if stage == "accepted" else proposal.view.history
            fields |= {"next_number": id.number, "next_creator": id.leader, "members": proposal.view.members}
            fields |= {"transitional": side.members, "digest": dict(side.cut), "detail": detail}
        self.env.records.append(("flush", view, {**fields, "life": life.address}))
        life.take("flush", view, fields)

    def _say(self, dest: Address, head: From) -> None:
        life = self.env.former
        assert life is not None
        self.membership.tell(dest, FromFormer(life.address, head))


class AskingFormer:
    """The questions of a member to the former incarnations of its view, through the processes that answer for them."""

    def __init__(self, gms: Gms, blocking: Blocking) -> None:
        self.gms = gms
        self.env = gms.env
        self.blocking = blocking

    def asks(self, members: Iterable[Address]) -> None:
        """Ask these processes of other views, which discovery found, whether a former incarnation of theirs that is in
        this view went on without this member."""
        gms = self.gms
        formers = {former.name: former for former in gms.current.members} if members else {}
        for member in members:
            if member.name in formers:
                gms.tell(member, ToFormer(formers[member.name], Stuck(gms.next_ballot(), gms.current.id)))

    def forwarded(self, former: Address, head: object) -> ToFormer | None:
        """The message for the process that answers for `former`; None: that process does not need the message."""
        if not isinstance(head, FORWARDED):
            return None
        if isinstance(head, Propose | Install):
            head = msgspec.structs.replace(head, difference=in_full(head.difference, self.gms.current))
        return ToFormer(former, head)

    def on_answer(self, src: Address, head: FromFormer) -> None:
        """`src` answers for a member of this view.  The answer proves that this member has ended."""
        gms, former, answer = self.gms, head.former, head.head
        if not gms.knows(former) or former in (self.env.me, src) or former.name != src.name:
            return
        if isinstance(answer, LeaveReq):
            self._offers(src, former, answer)
        elif isinstance(answer, Install):
            if may_take(answer.difference, gms):
                gms.handle(former, answer)
            else:
                self._ask_before(src, former, answer.difference)
        elif gms.outgoing.spoken_for.get(former) == src or isinstance(answer, Excluded):
            gms.handle(former, answer)

    def _offers(self, src: Address, former: Address, offer: LeaveReq) -> None:
        """`src` can answer for a former incarnation.  Ask `src` only if the living members are not enough: the former
        incarnation is out of the next view anyway.  A blocked member asks all former incarnations: runs that no former
        incarnation holds are lost.

        A former incarnation in a later view is asked whether this member is left out.  A former incarnation in an
        earlier view gets this view.  One that is named in a decided view without this member gets that view: this
        member stays until enough members have it, and they may all have ended.
        """
        gms, view = self.gms, self.gms.current
        self.blocking.give_up_what_is_lost()
        decided = gms.binding.decided
        if decided is not None:  # this member is on its way, or hands the next view over
            if former in decided.view.members and self.env.me not in decided.view.members:
                gms.outgoing.speak(src, former)
                gms.tell_decided((former,), decided)
            return
        if offer.view > view.id:
            gms.tell(src, ToFormer(former, Stuck(gms.next_ballot(), view.id)))
        elif offer.view < view.id:
            side = Side(msgspec.structs.replace(view, id=offer.view), view.members, {}, {})
            proposal = Proposal(Ballot(*view.id), view, (side,), electors=())
            gms.tell(src, ToFormer(former, Install(difference(proposal, None), None)))
        elif gms.outgoing.spoken_for.get(former) == src:
            gms.leading.change.hurry(former)
        elif self._needs_former_lives():
            self._speaks(src, former)

    def _ask_before(self, src: Address, former: Address, decided: Difference) -> None:
        """A former incarnation has installed a view that names this member, and for which this member lacks runs.  It
        is asked in this view, as a member that accepted that proposal."""
        gms, proposal = self.gms, proposal_of(decided, self.gms.current)
        if proposal is None or proposal.side_of(gms.current.id) is None or gms.binding.decided is not None:
            return
        gms.heard_of(Ballot(*proposal.view.id))
        gms.heard_of(proposal.ballot)
        if gms.outgoing.spoken_for.get(former) != src and self._needs_former_lives():
            self._speaks(src, former)

    def _speaks(self, src: Address, former: Address) -> None:
        """From now on `src` is asked in place of `former`."""
        gms = self.gms
        self.env.count("former incarnations that are answered for")
        gms.suspicions.suspect(former, Suspicion.ENDED)
        gms.outgoing.speak(src, former)
        gms.answering.heard_again(at_once=True)
        gms.leading.change.heard_again(former)

    def _needs_former_lives(self) -> bool:
        return self.blocking.blocked or bool(self.gms.outgoing.spoken_for) or not self.gms.reaches_enough()
