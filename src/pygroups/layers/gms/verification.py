"""Verification: what members say of each other is found out by asking them Ready, before anybody is left out.

Three cases: somebody accuses a member, and whoever leads asks all; the leader hangs, or is deaf, and the next in rank
asks it; two members accuse each other, both answer the leader, and one of them has to go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygroups.core.address import Address
from pygroups.core.events import VerifyLife
from pygroups.core.layer import NEVER

from . import decide
from .roll import RollCall

if TYPE_CHECKING:
    from .machine import Gms


NOTHING: tuple[dict[Address, bool], bool] = ({}, False)  # is the matter


class Verification:
    """When somebody is to be asked, and who; `gms` is the member."""

    def __init__(self, gms: Gms) -> None:
        self.gms = gms
        self.env = gms.env
        self.due = NEVER  # somebody is accused, and may answer for itself: when whoever leads asks
        self.question: RollCall | None = None  # Ready to the member that leads, by the one that is next
        self.questioned = NOTHING  # what was the matter when it last asked that
        self.pairs: dict[tuple[Address, Address], int] = {}  # who cannot reach each other, and since when

    def on_accused(self, member: Address, *, proven: bool) -> None:
        """Another member suspects `member`: whoever leads, or would lead without it, finds out itself."""
        gms, view = self.gms, self.gms.view
        assert view is not None
        if member == self.env.me:
            self.due = self.env.now  # its accusers answer, or it learns that they do not
        elif member not in gms.suspicions and decide.leader_without(view, gms.suspicions, member) == self.env.me:
            self.due = self.env.now
            if proven:
                gms.below.append(VerifyLife(member))

    def question_the_leader(self) -> None:
        """Who is next in rank asks the leader when somebody here is suspected, for the leader may hang; and when the
        leader suspects this member, for it may be deaf.  Two unanswered Ready, and the next one leads."""
        gms, view = self.gms, self.gms.view
        assert view is not None
        first = decide.leader(view, gms.suspicions)
        if self.question is not None and (self.question.members != (first,) or self.question.is_complete()):
            self.question = None
            first = decide.leader(view, gms.suspicions)
        if self.question is not None or first is None or first == self.env.me:
            return
        matter = (gms.suspicions.own(), self.env.me in gms.suspicions.accusations.get(first, ()))
        if matter != self.questioned:
            self.questioned = matter
            if any(matter) and decide.leader_without(view, gms.suspicions, first) == self.env.me:
                self.question = RollCall(gms, gms.leader.next_ballot(), (first,), ())
                self.question.is_complete()

    def leave_out_pairs(self) -> None:
        """Of two members that answer the leader, and of which one has suspected the other for a heartbeat, one goes."""
        gms, view, now = self.gms, self.gms.view, self.env.now
        assert view is not None
        others = [member for member in view.members if member != self.env.me]
        apart = max(self.env.config.heartbeat, self.env.config.ready_timeout)
        self.pairs = {pair: self.pairs.get(pair, now) for pair in gms.suspicions.pairs(others)}
        lasting = [pair for pair, since in self.pairs.items() if now >= since + apart]
        for member in decide.left_out(lasting, view.members):
            self.env.count("left out of a pair")
            gms.suspicions.apart[member] = None
        if len(lasting) < len(self.pairs):
            self.due = now + apart

    def installed(self) -> None:
        """A new view: what members said in the old one is over; who could not reach each other may still not."""
        view = self.gms.view
        assert view is not None
        self.due, self.question, self.questioned = NEVER, None, NOTHING
        self.pairs = {pair: since for pair, since in self.pairs.items() if all(m in view.members for m in pair)}
