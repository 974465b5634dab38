"""Verification: what members say of each other is found out by asking them Ready, before anybody is left out.

Three cases: somebody accuses a member, and whoever leads asks all; the leader hangs, or is deaf, and the next in rank
asks it; two members accuse each other, both answer the leader, and one of them has to go.
"""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import VerifyLife
from pygroups.core.layer import NEVER

from . import decide
from .heads import ReadyRsp
from .roll_call import Asker, RollCall
from .suspicion import Suspicion

NOTHING: tuple[dict[Address, Suspicion], bool, tuple[Address, ...]] = ({}, False, ())  # is the matter
AGAIN = 4  # the leader is asked again when so large a part of `ready_timeout` has passed since its answer


class Verification:
    """When somebody is to be asked, and who."""

    def __init__(self, asker: Asker) -> None:
        self.asker = asker
        self.membership = asker.membership
        self.env = asker.membership.env
        self.due = NEVER  # somebody is accused, and may answer for itself: when whoever leads asks
        self.question: RollCall | None = None  # Ready to those ranked before, of which the first leads
        self.questioned = NOTHING  # what was the matter when it last asked that
        self.ask_at = NEVER  # when it asks that again
        self.pairs: dict[tuple[Address, Address], int] = {}  # who cannot reach each other, and since when

    def on_accused(self, member: Address, how: Suspicion) -> None:
        """Another member suspects `member`: whoever leads, or would lead without it, finds out itself."""
        suspicions, view = self.membership.suspicions, self.membership.current
        if member == self.env.me:
            self.due = self.env.now  # its accusers answer, or it learns that they do not
        elif member not in suspicions and decide.leader_without(view, suspicions, member) == self.env.me:
            self.due = self.env.now
            if how is Suspicion.ENDED:
                self.membership.below.append(VerifyLife(member))

    def question_the_leader(self) -> None:
        """Who is next in rank asks the leader when somebody here is suspected, for the leader may hang; and when the
        leader suspects this member, for it may be deaf.  Two unanswered Ready, and the next one leads.  It asks again
        while that lasts, for the leader may hang after it has answered.  Those ranked below ask all before them, each
        a moment later and as much more seldom: several may hang."""
        suspicions, view = self.membership.suspicions, self.membership.current
        before = decide.before(view, suspicions, self.env.me)
        if self.question is not None and (self.question.members != before or self.question.is_complete()):
            self.question = None
            before = decide.before(view, suspicions, self.env.me)
        if self.question is None and before and self._is_to_ask(before):
            self.question = RollCall(self.asker, self.membership.next_ballot(), before, ())
            self.question.is_complete()

    def _is_to_ask(self, before: tuple[Address, ...]) -> bool:
        """At once when what this member finds is news; a moment after each answer while that lasts; and seldom while
        only others suspect somebody, which the leader looks into by itself."""
        suspicions, now, ready_timeout = self.membership.suspicions, self.env.now, self.env.config.ready_timeout
        moment = ready_timeout // AGAIN
        own = suspicions.own(self.membership.current.members)
        matter = (own, self.env.me in suspicions.accusations.get(before[0], ()))
        news, self.questioned = (*matter, before) != self.questioned, (*matter, before)
        if news and any(matter):
            self.ask_at = now + (len(before) - 1) * moment
        elif not any(matter) and not suspicions.accusations:
            self.ask_at = NEVER
        elif self.ask_at == NEVER:
            self.ask_at = now + len(before) * (moment if any(matter) else ready_timeout)
        if now < self.ask_at:
            self.membership.wake_at(self.ask_at)
            return False
        self.ask_at = NEVER
        return True

    def on_ready_rsp(self, src: Address, head: ReadyRsp) -> None:
        """One that was asked, perhaps, is there."""
        if self.question is not None:
            self.question.answers[src] = head

    def leave_out_pairs(self) -> None:
        """Of two members that answer the leader, and of which one has suspected the other for a heartbeat, one goes."""
        suspicions, view, now = self.membership.suspicions, self.membership.current, self.env.now
        others = [member for member in view.members if member != self.env.me]
        apart = max(self.env.config.heartbeat, self.env.config.ready_timeout)
        self.pairs = {pair: self.pairs.get(pair, now) for pair in suspicions.pairs(others)}
        lasting = [pair for pair, since in self.pairs.items() if now >= since + apart]
        for member in decide.left_out(lasting, view.members):
            self.env.count("left out of a pair")
            suspicions.apart[member] = None
        if len(lasting) < len(self.pairs):
            self.due = now + apart

    def installed(self) -> None:
        """A new view: what members said in the old one is over; who could not reach each other may still not."""
        view = self.membership.current
        self.due, self.question, self.questioned, self.ask_at = NEVER, None, NOTHING, NEVER
        self.pairs = {pair: since for pair, since in self.pairs.items() if all(m in view.members for m in pair)}
