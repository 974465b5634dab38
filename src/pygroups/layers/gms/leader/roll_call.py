"""A roll call: Ready to some members, repeated once when the patience is over, and the answers.

A member that leaves both Ready unanswered counts as suspected, even if it is heard in other ways.  A member that hangs,
or that does not receive what its leader sends, therefore delays no view change for long.  An answer to an earlier roll
call of the same asker counts too: if a round trip is longer than the patience, the first answer follows the second
Ready.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from pygroups.core.address import Address
from pygroups.core.limits import PATIENCE_MAX
from pygroups.core.tables import Tables
from pygroups.core.view import Ballot

from ..decisions.answer_times import AnswerTimes
from ..decisions.suspicion import UNANSWERED_MAX
from ..heads import Ready, ReadyRsp
from ..member.accusing import Accusing
from ..membership import Membership
from .admission import Admission


class Asker(NamedTuple):
    """The member that asks, with the parts that its roll calls use."""

    membership: Membership
    times: AnswerTimes
    accusing: Accusing
    admission: Admission


class RollCall:
    """One roll call.  Suspected members are asked too, but the roll call does not wait for them."""

    tables: ClassVar[Tables] = {
        "answers": "members_max",
        "joiners": "members_max",
        "members": "members",
    }

    def __init__(self, asker: Asker, ballot: Ballot, members: Iterable[Address], joiners: Iterable[Address]) -> None:
        self.asker = asker
        self.membership, self.suspicions = asker.membership, asker.membership.suspicions
        self.env = asker.membership.env
        self.ballot = ballot
        self.members = tuple(member for member in members if member != self.env.me)
        self.joiners = tuple(joiners)
        self.since = self.asked_at = self.env.now
        self.answers: dict[Address, ReadyRsp] = {}
        self.unheard = 0  # how often most of the members left Ready unanswered
        self._ask((*self.members, *self.joiners))

    def _ask(self, whom: Iterable[Address]) -> None:
        for member in whom:
            self.asker.times.ask(member, self.env.now)
            self.membership.tell(member, Ready(self.ballot, self.membership.current.id))

    @property
    def hurries(self) -> bool:
        """Whether a member of the view is suspected: then the others need the next view soon."""
        return any(member in self.suspicions for member in self.membership.current.members)

    def go_on(self) -> bool:
        """While an answer is missing, ask again when it is time, and set the timer.  Returns whether all needed answers
        are there."""
        now, missing = self.env.now, self._missing()
        if missing and now >= self.asked_at + self._patience(missing):
            self._count_unanswered(missing)
            missing = self._missing()
            self.asked_at = now
            self._ask(missing)
        if missing:
            until: int | None = self.asked_at + self._patience(missing)
        else:
            until = self._unconfirmed_until() or self._joiners_until()
        if until is not None:
            self.membership.wake_at(until)
        return until is None

    def _count_unanswered(self, missing: list[Address]) -> None:
        """Suspect members that left Ready unanswered; but if most of the members did, the cause is probably on this
        side.  Those members go on without this one, and this one must not go on without them."""
        here = [member for member in self.membership.current.members if member not in self.suspicions]
        if 2 * len(missing) > len(here):
            self.env.count("Ready left unanswered by most")
            self.unheard += 1
            if self.unheard >= UNANSWERED_MAX:
                self.asker.accusing.give_way_if_unheard()
            return
        for member in missing:
            self.env.count("Ready left unanswered")
            self.suspicions.left_unanswered(member)

    def _missing(self) -> list[Address]:
        return [m for m in self.members if m not in self.answers and m not in self.suspicions]

    def _patience(self, missing: list[Address]) -> int:
        """The time to wait for answers, in microseconds.  The time is short while this member suspects a member, or if
        only members are missing that are to be excluded.  The time is longer while only other members suspect a member.
        If no fault is known, two rounds take as long as the detection of a silent member.  Slow members get more
        time."""
        config = self.env.config
        if self.hurries or self.membership.outgoing.may_be_excluded(missing):
            base = config.ready_timeout
        elif self.suspicions.accusations:
            base = max(config.ready_timeout, config.flush_timeout)
        else:
            base = max(config.flush_timeout, (config.heartbeat_timeout + config.verify_timeout) // 2)
        grown = min(base << min(self.unheard, 10), PATIENCE_MAX)
        return max(base, grown, self.asker.times.patience(missing))

    def _unconfirmed_until(self) -> int | None:
        """The end of the wait for a proof that only this member has; None if no proof needs more time.  Such a proof
        may be wrong: if others answer and none of them suspects the member, they may hear it, and the member gets as
        much time to answer as all others.  If no member answers, no member can confirm the proof."""
        until = self.since + 2 * self.env.config.ready_timeout
        alone = [m for m in self.members if m not in self.answers and self.suspicions.is_unconfirmed(m)]
        waits = self.env.now < until and alone and any(member in self.answers for member in self.members)
        return until if waits else None

    def _joiners_until(self) -> int | None:
        """The end of the wait for joiners; None if no joiner is waited for."""
        config = self.env.config
        queued = self.asker.admission.joiners
        silent = [joiner for joiner in self.silent_joiners() if joiner in queued]  # the others have ended
        longest = max(config.ready_timeout, self.asker.times.patience(silent))
        until = self.since + (config.batch if self.hurries else longest)
        return until if self.env.now < until and silent else None

    def on_answer(self, src: Address, head: ReadyRsp) -> None:
        """`src` answers."""
        self.answers[src] = head

    def silent_joiners(self) -> list[Address]:
        return [joiner for joiner in self.joiners if joiner not in self.answers]
