"""Verification: members that are accused are asked Ready before any of them is left out.

There are three cases.  A member is accused, and the leader asks all members.  The leader hangs or is deaf, and the next
in rank asks it.  Two members accuse each other although both answer the leader, and one of them has to go.
"""

from __future__ import annotations

from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.layer import NEVER
from pygroups.core.suspicion_events import VerifyLife
from pygroups.core.tables import Tables, under

from ..decisions import decide
from ..decisions.suspicion import Suspicion
from ..heads import ReadyRsp
from .roll_call import Asker, RollCall

NOTHING: tuple[dict[Address, Suspicion], bool, bool, tuple[Address, ...]] = (
    {},
    False,
    False,
    (),
)  # no reason to question the leader
AGAIN = 4  # the next question follows an answer after a quarter of `ready_timeout`


class Verification:
    """When to ask members Ready because of an accusation, and which members."""

    tables: ClassVar[Tables] = {
        "pairs": "pairs",
        "questioned": "fixed",
        "questioned[]": "members_max",
        **under("question", RollCall.tables),
    }

    def __init__(self, asker: Asker) -> None:
        self.asker = asker
        self.membership = asker.membership
        self.env = asker.membership.env
        self.due = NEVER  # when the leader asks Ready because a member is accused
        self.question: RollCall | None = None  # Ready to the members before this one; the first of them leads
        self.questioned = NOTHING  # the reason of the last question
        self.ask_at = NEVER  # when to ask the next question
        self.pairs: dict[tuple[Address, Address], int] = {}  # members that cannot reach each other, and since when
        self.late_at = NEVER  # from then on the leader may lack the view, if it has not handed the view over to all

    def on_accused(self, member: Address, how: Suspicion) -> None:
        """Another member suspects `member`.  The leader, or the member that would lead without `member`, checks it."""
        suspicions, view = self.membership.suspicions, self.membership.current
        if member == self.env.me:
            self.ask_now()  # ask the accusers: they answer, or this member learns that they do not
        elif member not in suspicions and decide.leader_without(view, suspicions, member) == self.env.me:
            self.ask_now()
            if how is Suspicion.ENDED:
                self.membership.below.append(VerifyLife(member))

    def ask_now(self) -> None:
        """A member is accused, or may lack the view: ask Ready at once."""
        self.due = self.env.now

    def settled(self) -> None:
        """The leader asks Ready for another reason, or another member leads."""
        self.due = NEVER

    def question_the_leader(self, *, handed_over: bool) -> None:
        """Ask the leader Ready if it may hang or be deaf: a member is suspected here, or the leader suspects this one,
        or the view was not handed over to all in time.  Where a majority decides, a view may name a leader that has
        not accepted the view and receives nothing.

        After two unanswered Ready the next in rank leads.  The question is repeated while the reason lasts, because the
        leader may hang after an answer.  A member of lower rank asks all members before it, later and less often,
        because several of them may hang.
        """
        suspicions, view = self.membership.suspicions, self.membership.current
        before = decide.before(view, suspicions, self.env.me)
        if self.question is not None and (self.question.members != before or self.question.go_on()):
            self.question = None
            before = decide.before(view, suspicions, self.env.me)
        late = not handed_over and self.env.now >= self.late_at
        if before and not handed_over and not late:
            self.membership.wake_at(self.late_at)
        if self.question is None and before and self._plan_to_ask(before, late=late):
            self.question = RollCall(self.asker, self.membership.next_ballot(), before, ())
            self.question.go_on()

    def _plan_to_ask(self, before: tuple[Address, ...], *, late: bool) -> bool:
        """Plan the next question.  Returns whether it is time for it.  A new reason makes a question due at once.
        While the reason lasts, the next question is due a moment after each answer.  Questions are rare while only
        other members suspect a member, because the leader checks such a member itself, and rare when only the handover
        is `late`."""
        suspicions, now, ready_timeout = self.membership.suspicions, self.env.now, self.env.config.ready_timeout
        if not self.membership.reaches_enough():
            return False  # no leader could change the view
        moment = ready_timeout // AGAIN
        own = suspicions.own(self.membership.current.members)
        outgoing = self.membership.outgoing
        excludes = bool(outgoing.expelled or outgoing.doubted)
        matter = (own, self.env.me in suspicions.accusations.get(before[0], ()), excludes)
        news, self.questioned = (*matter, before) != self.questioned, (*matter, before)
        if news and any(matter):
            self.ask_at = now + (len(before) - 1) * moment
        elif not any(matter) and not suspicions.accusations and not late:
            self.ask_at = NEVER
        elif self.ask_at == NEVER:
            self.ask_at = now + len(before) * (moment if any(matter) else ready_timeout)
        if now < self.ask_at:
            self.membership.wake_at(self.ask_at)
            return False
        self.ask_at = NEVER
        return True

    def on_ready_rsp(self, src: Address, head: ReadyRsp) -> None:
        """Take an answer to Ready, which may belong to the question."""
        if self.question is not None:
            self.question.on_answer(src, head)
        self.membership.outgoing.answered(src)

    def leave_out_pairs(self) -> None:
        """Leave out one member of each pair in which one suspected the other for a heartbeat although both answer."""
        suspicions, view, now = self.membership.suspicions, self.membership.current, self.env.now
        others = [member for member in view.members if member != self.env.me]
        apart = max(self.env.config.heartbeat, self.env.config.ready_timeout)
        self.pairs = {pair: self.pairs.get(pair, now) for pair in suspicions.pairs(others)}
        lasting = [pair for pair, since in self.pairs.items() if now >= since + apart]
        for member in decide.left_out(lasting, view.members):
            self.env.count("left out of a pair")
            suspicions.leave_out(member)
        if len(lasting) < len(self.pairs):
            self.due = now + apart

    def installed(self) -> None:
        """A new view.  The accusations of the old one are over; pairs that could not reach each other may still be cut
        off from each other."""
        view, config = self.membership.current, self.env.config
        self.due, self.question, self.questioned, self.ask_at = NEVER, None, NOTHING, NEVER
        self.late_at = self.env.now + config.heartbeat_timeout + config.verify_timeout
        self.pairs = {pair: since for pair, since in self.pairs.items() if all(m in view.members for m in pair)}
