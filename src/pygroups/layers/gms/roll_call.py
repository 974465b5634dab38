"""A roll call: Ready to some members, asked once more when the patience is over, and what came of it.

A member that leaves both unanswered counts as suspected, whatever else is heard of it: so a member that hangs, or that
does not receive what its leader sends, delays no view change for long.  An answer to an earlier roll call of the same
asker counts too: where a round trip takes longer than the patience, the first answer comes after the second question.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pygroups.core.address import Address
from pygroups.core.view import Ballot

from .accusing import Accusing
from .admission import Admission
from .answer_times import AnswerTimes
from .heads import Ready, ReadyRsp
from .membership import Membership
from .suspicion import UNANSWERED_MAX


class Asker(NamedTuple):
    """The member that asks, with what its roll calls need and change."""

    membership: Membership
    times: AnswerTimes
    accusing: Accusing
    admission: Admission


class RollCall:
    """Suspected members are asked too, and not waited for."""

    def __init__(self, asker: Asker, ballot: Ballot, members: Iterable[Address], joiners: Iterable[Address]) -> None:
        self.asker = asker
        self.membership, self.suspicions = asker.membership, asker.membership.suspicions
        self.env = asker.membership.env
        self.ballot = ballot
        self.members = tuple(member for member in members if member != self.env.me)
        self.joiners = tuple(joiners)
        self.since = self.asked_at = self.env.now
        self.answers: dict[Address, ReadyRsp] = {}
        self.unheard = 0  # how often most of the members left it unanswered
        self._ask((*self.members, *self.joiners))

    def _ask(self, whom: Iterable[Address]) -> None:
        for member in whom:
            self.asker.times.ask(member, self.env.now)
            self.membership.tell(member, Ready(self.ballot, self.membership.current.id))

    @property
    def hurries(self) -> bool:
        """Whether somebody is suspected: then the others wait for the next view."""
        return any(member in self.suspicions for member in self.membership.current.members)

    def is_complete(self) -> bool:
        """Whether nobody is waited for any more; asks again, and sets the timer, while somebody is."""
        now, missing = self.env.now, self._missing()
        if missing and now >= self.asked_at + self._patience(missing):
            self._count_unanswered(missing)
            missing = self._missing()
            self.asked_at = now
            self._ask(missing)
        if missing:
            self.membership.wake_at(self.asked_at + self._patience(missing))
            return False
        return self._is_confirmed() and self._joiners_have_answered()

    def _count_unanswered(self, missing: list[Address]) -> None:
        """Most cannot all be deaf: rather nobody hears this member, or all answers take long.  Who does not hear it
        goes on without it, and it must not do the same without them."""
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
        """Short while a member is suspected here, longer while only others suspect one; while nothing is known to be
        wrong, two rounds take as long as it takes to notice silence.  Longer for members that answered late before."""
        config = self.env.config
        if self.hurries:
            base = config.ready_timeout
        elif self.suspicions.accusations:
            base = max(config.ready_timeout, config.flush_timeout)
        else:
            base = max(config.flush_timeout, (config.heartbeat_timeout + config.verify_timeout) // 2)
        grown = min(base << min(self.unheard, 10), config.patience_max)
        return max(base, grown, self.asker.times.patience(missing))

    def _is_confirmed(self) -> bool:
        """Whether this member is not alone with a proof, which may be wrong: if others answer and none of them has the
        proof as well, they may hear who is accused, and it has the time of everybody to answer.  Without another
        member that would have the proof as well there is nothing to wait for."""
        until = self.since + 2 * self.env.config.ready_timeout
        alone = [m for m in self.members if m not in self.answers and self.suspicions.is_unconfirmed(m)]
        if self.env.now < until and alone and any(member in self.answers for member in self.members):
            self.membership.wake_at(until)
            return False
        return True

    def _joiners_have_answered(self) -> bool:
        config = self.env.config
        queued = self.asker.admission.joiners
        silent = [joiner for joiner in self.silent_joiners() if joiner in queued]  # the others have ended
        longest = max(config.ready_timeout, self.asker.times.patience(silent))
        until = self.since + (config.batch if self.hurries else longest)
        if self.env.now < until and silent:
            self.membership.wake_at(until)
            return False
        return True

    def silent_joiners(self) -> list[Address]:
        return [joiner for joiner in self.joiners if joiner not in self.answers]
