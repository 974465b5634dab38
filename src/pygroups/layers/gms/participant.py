"""The member's side of a view change: ready, bound, fetching, accepted.

By its answer to Collect a member is bound to a ballot: it never resumes its view, answers higher ballots only, and if
it then hears nothing it complains until somebody gives it the installation or begins another attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygroups.core.address import Address
from pygroups.core.events import Bound, FetchTo, Positions, Stop
from pygroups.core.view import Ballot, ViewId

from . import decide
from .heads import Accept, Collect, CollectAck, Fetches, Low, Proposal, Propose, Ready, ReadyRsp, Stuck

if TYPE_CHECKING:
    from .machine import Gms


class Participant:
    """What a member answers to whoever leads; `gms` is the member."""

    def __init__(self, gms: Gms) -> None:
        self.gms = gms
        self.env = gms.env
        self.bound: Ballot | None = None
        self.held: Positions = {}  # what it answered last to Collect
        self.heard_at = 0  # when the one it is bound to was heard last, or was complained about
        self.proposal: Proposal | None = None  # being fetched, or accepted
        self.accepted: dict[
            Address, Ballot
        ] = {}  # up to the cut of the last one of each leader everything is held here
        self.complaints = 0  # in a row
        self.fetches_at = 0  # when this member began to fetch, or told its leader last that it still does

    def reset(self) -> None:
        """A view was installed: ballot and proposal are forgotten."""
        self.bound, self.proposal, self.accepted, self.complaints = None, None, {}, 0

    def has_accepted(self, ballot: Ballot) -> bool:
        """Whether it may be decided with this member's answer.  A leader that begins a later attempt in the same view
        has given its earlier one up, so that the last one of each leader is all that counts."""
        return self.accepted.get(ballot.leader) == ballot

    # -- answering

    def on_ready(self, src: Address, head: Ready) -> None:
        gms = self.gms
        mine = None if gms.view is None else gms.view.id
        if gms.knows(src):
            gms.heard_of(head.ballot)
        elif head.view == mine:
            self.env.drop("view change of a stranger")
            return
        if mine is None:
            gms.joining.invited()
        if mine is None or head.view >= mine:
            gms.tell(src, ReadyRsp(head.ballot, mine, self.bound, gms.leaving))
        else:
            gms.elsewhere.explain(src, head.view, asked=True)

    def on_collect(self, src: Address, head: Collect) -> None:
        gms = self.gms
        if gms.view is None or head.view != gms.view.id:
            self._speaks_of_another_view(src, head, head.view)
        elif self._may_lead(src, head.ballot):
            if head.ballot != self.bound:
                self.env.count("bound" if self.bound is None else "bound again")
                self.bound, self.proposal = head.ballot, None
                gms.leader.overtaken(head.ballot)
            self.heard_leader()
            gms.above.append(Stop(head.ballot))

    def _speaks_of_another_view(self, src: Address, head: Collect | Propose, view: ViewId) -> None:
        """Of a view that this member is on its way to, it waits for that; of any other, its sender is told."""
        if self.gms.knows(src) and self.has_accepted(view):
            self.gms.later[src, type(head)] = head
        self.gms.elsewhere.explain(src, view, asked=True)

    def stopped(self, event: Bound) -> None:
        """The layers above stand still: say what is held.  The record is written before the answer leaves."""
        if event.ballot != self.bound:
            return  # bound to a higher one meanwhile
        self.held = event.held
        self.record("collect", None)
        if self.gms.leaving:
            self.env.count("leaver bound")
        ack = CollectAck(event.ballot, event.held, self.gms.leaving, self.gms.standing)
        self.gms.tell(event.ballot.leader, ack)

    def on_propose(self, src: Address, head: Propose) -> None:
        gms, proposal = self.gms, head.proposal
        if gms.view is None or proposal.old != gms.view.id:
            self._speaks_of_another_view(src, head, proposal.old)
        elif self._may_lead(src, proposal.ballot) and proposal.ballot == self.bound:
            self.heard_leader()
            self.fetches_at = self.env.now
            if decide.makes_sense(proposal, gms.view, self.env.me, self.held):
                self.proposal = proposal
                if any(self.held.get(stream, 0) < end for stream, end in proposal.cut.items()):
                    self.env.count("fetches to the cut")
                gms.above.append(FetchTo(proposal.ballot, proposal.cut, proposal.holders))
            else:
                self.env.drop("proposal that makes no sense")

    def fetched(self, ballot: Ballot) -> None:
        """Everything up to the cut of `ballot` is held here: accept."""
        if ballot == self.bound and self.proposal is not None and self.proposal.ballot == ballot:
            self.accepted[ballot.leader] = ballot
            self.record("accepted", self.proposal)
            self.gms.tell(ballot.leader, Accept(ballot))

    def fetching(self) -> None:
        """A part of what is missing has come: a leader whose patience would end sooner is told so."""
        now = self.env.now
        if self.bound is None or self.proposal is None or self.has_accepted(self.bound):
            return
        if now >= self.fetches_at + self.env.config.flush_timeout // 4:
            self.fetches_at = now
            self.gms.tell(self.bound.leader, Fetches(self.bound))

    def _may_lead(self, src: Address, ballot: Ballot) -> bool:
        """Whether `src` is a member of this view and its ballot is none that this member has left behind."""
        if not self.gms.knows(src) or ballot.leader != src:
            self.env.drop("view change of a stranger")
            return False
        self.gms.heard_of(ballot)
        if self.bound is not None and ballot < self.bound:
            self.gms.tell(src, Low(ballot, self.bound))
            return False
        return True

    # -- when nothing is heard

    def heard_leader(self) -> None:
        self.heard_at, self.complaints = self.env.now, 0
        self.gms.wake_at(self.heard_at + self._patience())

    def complain(self) -> None:
        """Ask all of the view: who has the installation gives it, else the first in rank must begin an attempt."""
        gms = self.gms
        assert gms.view is not None and self.bound is not None
        if self.env.now >= self.heard_at + self._patience():
            self.heard_at = self.env.now
            self.complaints += 1
            for member in gms.view.members:
                if member != self.env.me:
                    gms.tell(member, Stuck(self.bound, gms.view.id))
        gms.wake_at(self.heard_at + self._patience())

    def _patience(self) -> int:
        """How long a bound member waits: longer than its leader waits for an answer, longer by rank, and longer each
        time."""
        config, view = self.env.config, self.gms.view
        assert view is not None
        longest = max(config.patience_max, 2 * config.flush_timeout)
        grown = min(2 * config.flush_timeout << min(self.complaints, 10), longest)
        return grown + config.batch * decide.rank(view, self.gms.suspicions, self.env.me)

    # -- the journal

    def record(self, stage: str, proposal: Proposal | None) -> None:
        """Write a `flush` record: `collect`, `accepted` or `installed`."""
        if not self.env.journaling:
            return
        fields: dict[str, Any] = {"stage": stage}
        if self.bound is not None:
            fields.update(ballot_number=self.bound.number, ballot_leader=self.bound.leader)
        if proposal is not None:
            fields.update(
                next_number=proposal.view.id.number,
                next_creator=proposal.view.id.leader,
                members=proposal.view.members,
                transitional=proposal.transitional,
                digest=dict(proposal.cut),
            )
        self.env.record("flush", **fields)
