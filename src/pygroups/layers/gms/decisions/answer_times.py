"""Answer times: how long each member took to answer Ready, or a question of MERGE2."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.limits import MEMBERS_MAX
from pygroups.core.tables import Tables

ASKED_MAX = 16  # unanswered Ready of one member whose times are remembered
UNKNOWN = -1  # the time of a Ready whose answer measures nothing


class AnswerTimes:
    """The time that each member took to answer.  The leader waits longer for a member that was slow the last time.

    Each Ready that arrives is answered once, and in the order sent: the first answer belongs to the first question.
    Questions to a process outside the view are lost with a connection that UNICAST2 gives up, so one that is older than
    a connection gets is forgotten as soon as there is another.
    """

    tables: ClassVar[Tables] = {
        "asked": "members_max",
        "asked[]": ASKED_MAX,
        "took": "members_max",
    }

    def __init__(self, longest: int, lost_after: int) -> None:
        self.longest = longest  # limit of `patience`, in microseconds
        self.lost_after = lost_after  # microseconds
        self.asked: dict[Address, list[int]] = {}  # when each Ready was sent that is not answered yet
        self.took: dict[Address, int] = {}

    def ask(self, member: Address, now: int) -> None:
        """A Ready is sent to `member`."""
        earlier = [at for at in self.asked.get(member, []) if at == UNKNOWN or now - at <= self.lost_after]
        self.asked[member] = [*earlier, now][-ASKED_MAX:]

    def answered(self, member: Address, now: int) -> None:
        """`member` answered."""
        if self.asked.get(member) and (asked := self.asked[member].pop(0)) != UNKNOWN:
            self.took[member] = now - asked

    def after_pause(self) -> None:
        """This member was paused for long, so the answers to earlier questions may have waited for this member."""
        self.asked = {member: [UNKNOWN] * len(asked) for member, asked in self.asked.items()}

    def measured(self, times: Mapping[Address, int]) -> None:
        """MERGE2 asked these processes, which are in a merge."""
        self.took = dict([*self.took.items(), *times.items()][-MEMBERS_MAX:])

    def of(self, members: Iterable[Address]) -> dict[Address, int]:
        """The times, in microseconds, of those of `members` that answered."""
        return {member: self.took[member] for member in members if member in self.took}

    def patience(self, members: Iterable[Address]) -> int:
        """Twice the time, in microseconds, that the slowest of `members` took."""
        return min(self.longest, 2 * max([self.took.get(member, 0) for member in members], default=0))

    def keep(self, members: Container[Address]) -> None:
        """A new view of `members`: forget all others, and the questions of the old view."""
        self.asked = {}
        self.took = {member: time for member, time in self.took.items() if member in members}
