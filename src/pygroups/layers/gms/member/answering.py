"""Answering: the part of a member in an attempt.  The member answers Ready, stops, fetches, and accepts.

The answer to Collect binds the member to a ballot: it never resumes its view, and answers only higher ballots.  A bound
member that hears nothing complains until it gets the installation or another attempt begins.
"""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import Bound, FetchTo, Stop
from pygroups.core.limits import PATIENCE_MAX
from pygroups.core.view import Ballot, ViewId

from ...streams.gaps import told
from ..decisions import decide
from ..decisions.electors import Electorate
from ..decisions.proposal import Proposal, Side, difference, proposal_of, vector
from ..heads import Accept, Collect, CollectAck, CollectRefused, Fetches, Low, Propose, Ready, ReadyRsp, Stuck
from ..membership import Membership
from .other_views import OtherViews


class Answering:
    """The answers of a member to the leader of an attempt."""

    def __init__(self, membership: Membership, other_views: OtherViews) -> None:
        self.membership = membership
        self.binding = membership.binding
        self.env = membership.env
        self.other_views = other_views
        self.heard_at = 0  # when the leader of its ballot was heard last, or the last complaint was sent
        self.leader_heard_at = 0  # when the leader of its ballot was heard last
        self.complaints = 0  # in a row
        self.fetches_at = 0  # when this member began to fetch, or sent Fetches last

    def installed(self) -> None:
        """A view was installed."""
        self.complaints = 0

    # -- answers

    def on_ready(self, src: Address, head: Ready) -> None:
        """Answer with the view of this process.  An asker in an earlier view gets the reply of other_views.py."""
        membership = self.membership
        mine = None if membership.view is None else membership.view.id
        if membership.knows(src):
            membership.heard_of(head.ballot)
        elif head.view == mine:
            self.env.drop("view change of a stranger")
            return
        if self.other_views.give_decided(src, head.view):
            return
        if mine is None or head.view >= mine:
            membership.tell(src, ReadyRsp(head.ballot, mine, self.binding.ballot, membership.leaving))
        else:
            self.other_views.explain(src, head.view, asked=True)

    def on_collect(self, src: Address, head: Collect) -> bool:
        """Stop the streams for a CollectAck; returns whether this member is newly bound to this ballot."""
        binding, view = self.binding, self.membership.view
        if self.other_views.give_decided(src, head.view):
            return False
        if view is None or (head.view != view.id and head.merge is None):
            self._speaks_of_another_view(src, head, head.view)
            return False
        if head.merge is not None and not self._takes_part(src, head):
            self.membership.tell(src, CollectRefused(head.ballot))
            return False
        if not self._let_lead(src, head.ballot, merges=head.merge is not None):
            return False
        is_news = head.ballot != binding.ballot
        if is_news:
            self.env.count("bound" if binding.ballot is None else "bound again")
            binding.bind(head.ballot, head.merge)
        self.heard_leader()
        self.membership.take_vouched(head.vouched)
        self.membership.above.append(Stop(head.ballot))
        return is_news

    def _takes_part(self, src: Address, head: Collect) -> bool:
        """Whether this member is in the view that the leader of the merge expects, is reserved for this merge, and is
        bound to no other leader."""
        binding, view = self.binding, self.membership.current
        free = binding.ballot is None or (binding.merge == head.merge and binding.ballot.leader == src)
        is_above = ViewId.of(head.ballot) > view.id and head.ballot.leader == src
        return head.view == view.id and head.merge == self.membership.reserved.merge and free and is_above

    def _speaks_of_another_view(self, src: Address, head: Collect | Propose, view: ViewId) -> None:
        """Keep a message of another view if this member is on its way to that view.  Tell the sender where this member
        is."""
        membership = self.membership
        if membership.knows(src) and membership.may_come_to(view):
            membership.keep_for_later(src, head)
        self.other_views.explain(src, view, asked=True)

    def stopped(self, event: Bound) -> None:
        """The layers above have stopped: answer with positions.  The record is written before the answer leaves."""
        membership = self.membership
        if event.ballot != self.binding.ballot or self.binding.decided is not None:
            return  # bound to a higher one meanwhile, or on the way to a decided view
        self.binding.stop(event.held)
        if membership.leaving:
            self.env.count("leaver bound")
        marks, missing = (event.marks, told(event.missing)) if self.binding.merge is not None else ({}, {})
        standing, primary = membership.standing, membership.primary
        view, last = membership.current, self.binding.last
        accepted = None if last is None else difference(last, view.id)
        held, vouched = vector(event.held, view.members), tuple(membership.outgoing.vouched)
        electors = () if membership.electors == (Electorate(view, "formed"),) else membership.electors
        ack = CollectAck(
            *(event.ballot, held, membership.leaving, standing, primary, marks, accepted, vouched),
            *(electors, membership.accounted.ended, membership.accounted.alone, missing),
        )
        membership.tell(event.ballot.leader, ack)

    def on_propose(self, src: Address, head: Propose) -> None:
        """Fetch up to the cut."""
        binding, difference, view = self.binding, head.difference, self.membership.view
        merges = len(difference.sides) > 1
        if self.other_views.give_decided(src, difference.sides[0].old):
            return
        if view is None or not difference.follows(view.id):
            if not merges:
                self._speaks_of_another_view(src, head, difference.sides[0].old)
            return
        bound = difference.ballot == binding.ballot
        if self._let_lead(src, difference.ballot, merges=merges and bound) and bound:
            self.heard_leader()
            self.fetches_at = self.env.now
            proposal = proposal_of(difference, view)
            side = None if proposal is None else proposal.side_of(view.id)
            if proposal and side and decide.makes_sense(proposal, side, self.env.me, binding.held):
                self._fetch(proposal, side)
            else:
                self.env.drop("invalid proposal")

    def _fetch(self, proposal: Proposal, side: Side) -> None:
        binding, me = self.binding, self.env.me
        binding.fetch(proposal)
        if me in proposal.expelled and not self.membership.leaving:
            self.env.record("leave", reason="excluded", detail=proposal.expelled[me])
        if any(binding.held.get(stream, 0) < end for stream, end in side.cut.items()):
            self.env.count("fetches to the cut")
        self.membership.above.append(FetchTo(proposal.ballot, side.cut, side.holders))

    def fetched(self, ballot: Ballot) -> None:
        """Everything up to the cut of `ballot` is held here: accept."""
        proposal = self.binding.proposal
        if proposal is not None and ballot == proposal.ballot == self.binding.ballot:
            self.membership.add_electors(proposal)
            self.binding.accept(proposal, self.membership.current.id)
            self.membership.tell(ballot.leader, Accept(ballot))

    def fetching(self) -> None:
        """Missing runs arrive: report this to the leader, whose timeout might end sooner."""
        now, binding = self.env.now, self.binding
        if binding.ballot is None or binding.proposal is None or binding.has_accepted(binding.ballot):
            return
        if now >= self.fetches_at + self.env.config.flush_timeout // 4:
            self.fetches_at = now
            self.membership.tell(binding.ballot.leader, Fetches(binding.ballot))

    def _let_lead(self, src: Address, ballot: Ballot, *, merges: bool) -> bool:
        """Let `src` lead if it is a member of this view, or leads a merge, and if this member has not left its ballot
        behind.  Returns whether it may lead."""
        if not (merges or self.membership.knows(src)) or ballot.leader != src:
            self.env.drop("view change of a stranger")
            return False
        self.membership.heard_of(ballot)
        if self.binding.ballot is not None and ballot < self.binding.ballot:
            self.membership.tell(src, Low(ballot, self.binding.ballot))
            return False
        return True

    # -- when nothing is heard

    def released_at(self) -> int:
        """The time when the leader of a merge counts as silent, and the view of this member goes on without it."""
        return self.leader_heard_at + 2 * self._leader_waits()

    def _leader_waits(self) -> int:
        """The time for which the leader of this member's ballot may wait for one answer: it waits longer for the
        processes of a merge that are slow."""
        config = self.env.config
        merges = self.binding.merge is not None
        return max(config.flush_timeout, min(2 * self.membership.reserved.round_trip, PATIENCE_MAX) if merges else 0)

    def is_held_by_a_merge(self) -> bool:
        """Whether this member is bound to another member's merge."""
        binding = self.binding
        return binding.merge is not None and binding.ballot is not None and binding.ballot.leader != self.env.me

    def heard_leader(self) -> None:
        """The leader to which this member is bound was heard, or gives way to another one."""
        self.heard_at = self.leader_heard_at = self.env.now
        self.complaints = 0
        self.membership.wake_at(self.heard_at + self._patience())

    def complain(self) -> None:
        """Ask the members of the view for the installation; if no member has the installation, the leader begins an
        attempt."""
        membership, ballot = self.membership, self.binding.ballot
        assert ballot is not None
        if self.env.now >= self.heard_at + self._patience():
            self.heard_at = self.env.now
            self.complaints += 1
            stuck = Stuck(ballot, membership.current.id, tuple(membership.outgoing.vouched), self.binding.lacks())
            membership.tell_others(membership.helpers(), stuck)
        membership.wake_at(self.heard_at + self._patience())

    def heard_again(self, *, at_once: bool = False) -> None:
        """A member is heard again, or an operator vouches for one: ask the others soon."""
        if self.binding.ballot is not None:
            self.complaints = 0
            self.heard_at = 0 if at_once else self.heard_at
            self.membership.wake_at(self.heard_at + self._patience())

    def _patience(self) -> int:
        """The time that a bound member waits: longer than its leader waits for an answer, longer by rank, and longer
        after each complaint."""
        config, shortest = self.env.config, 2 * self._leader_waits()
        grown = min(shortest << min(self.complaints, 10), max(PATIENCE_MAX, shortest))
        return grown + config.batch * decide.rank(self.membership.current, self.membership.suspicions, self.env.me)
