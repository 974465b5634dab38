"""Suspicions: which members this member takes for gone, for which reason, and what the members say about each other.

A suspicion has one of five origins, and each is taken back by something else:

| origin | taken back by |
|---|---|
| nothing is heard of the member (SILENT), or its process is proven to have ended (ENDED) | it is heard again |
| it left two Ready in a row unanswered, whatever else is heard of it | it answers a Ready |
| it and another member cannot reach each other (`apart`) | it answers a Ready; judged anew after that |
| it is in another view for good (ELSEWHERE) | nothing |
| it leads, and says of itself that most do not hear it (UNHEARD) | it says so no more |
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from enum import Enum

from pygroups.core.address import Address

UNANSWERED_MAX = 2  # Ready in a row that a member may leave unanswered before it counts as suspected


class Absence(Enum):
    """Why a member does not count as a part of the view any more."""

    SILENT = "silent"
    ENDED = "ended"
    ELSEWHERE = "elsewhere"
    UNHEARD = "unheard"  # this member itself


class Suspicions(Container[Address]):
    """What is known of the members of one view; `member in suspicions` says that a leader does not wait for it."""

    def __init__(self) -> None:
        self.absent: dict[Address, Absence] = {}
        self.unanswered: dict[Address, int] = {}  # how many Ready in a row each member left unanswered
        self.apart: dict[Address, None] = {}  # left out because it and another member cannot reach each other
        self.accusations: dict[Address, dict[Address, bool]] = {}  # whom each member suspects; True: with a proof

    # -- what is asked

    def __contains__(self, member: object) -> bool:
        assert isinstance(member, Address)
        unanswering = self.unanswered.get(member, 0) >= UNANSWERED_MAX
        gives_way = member in self.accusations.get(member, ())
        return unanswering or gives_way or member in self.absent or member in self.apart

    def may_be_forgotten(self, member: Address) -> bool:
        """Whether it never asks for the installation of this view any more."""
        return self.absent.get(member) in (Absence.ENDED, Absence.ELSEWHERE)

    def name_is_free(self, member: Address) -> bool:
        """Whether another incarnation may join under the name of this one."""
        return self.absent.get(member) in (Absence.ENDED, Absence.ELSEWHERE)

    def is_unconfirmed(self, member: Address) -> bool:
        """Whether it has ended by this member's evidence alone: no other member suspects it."""
        ended = self.absent.get(member) is Absence.ENDED
        return ended and not any(member in accused for accused in self.accusations.values())

    def is_unheard(self, member: Address, members: Iterable[Address]) -> bool:
        """Whether most of `members` that are not suspected themselves say that they do not hear `member`."""
        here = [other for other in members if other == member or other not in self]
        deaf = [other for other in here if other != member and member in self.accusations.get(other, ())]
        return 2 * len(deaf) > len(here)

    def own(self) -> dict[Address, bool]:
        """Whom this member suspects by its own evidence, and whether with a proof; this is told to the others.  It is
        among them if it leads and most do not hear it."""
        return {m: why is Absence.ENDED for m, why in self.absent.items() if why is not Absence.ELSEWHERE}

    def pairs(self, members: Iterable[Address]) -> Iterator[tuple[Address, Address]]:
        """Pairs of these of which at least one suspects the other."""
        order = [member for member in members if member not in self]
        for index, one in enumerate(order):
            for other in order[index + 1 :]:
                if other in self.accusations.get(one, ()) or one in self.accusations.get(other, ()):
                    yield one, other

    # -- what changes it

    def suspect(self, member: Address, *, proven: bool) -> None:
        if self.absent.get(member) is not Absence.ELSEWHERE:
            known = self.absent.get(member) is Absence.ENDED
            self.absent[member] = Absence.ENDED if proven or known else Absence.SILENT

    def elsewhere(self, member: Address) -> None:
        self.absent[member] = Absence.ELSEWHERE

    def gives_way(self, me: Address) -> None:
        """This member leads, and most do not hear it: another one has to."""
        self.absent[me] = Absence.UNHEARD

    def heard(self, member: Address) -> None:
        """Something was heard of this incarnation: it is neither silent nor has it ended."""
        if self.absent.get(member) is not Absence.ELSEWHERE:
            self.absent.pop(member, None)

    def answered(self, member: Address) -> None:
        """It answered a Ready."""
        self.heard(member)
        self.unanswered.pop(member, None)
        self.apart.pop(member, None)

    def left_unanswered(self, member: Address, times: int = 1) -> None:
        self.unanswered[member] = self.unanswered.get(member, 0) + times

    def accuse(self, accuser: Address, accused: Mapping[Address, bool]) -> dict[Address, bool]:
        """`accuser` now suspects exactly these; returns those that are new, or newly proven."""
        before = self.accusations.pop(accuser, {})
        if accused:
            self.accusations[accuser] = dict(accused)
        return {member: proven for member, proven in accused.items() if before.get(member) not in (proven, True)}

    def keep(self, members: Container[Address]) -> None:
        """A new view: forget those that are not in it, and what members said or left unanswered in the old one."""
        self.absent = {m: why for m, why in self.absent.items() if m in members and why is not Absence.UNHEARD}
        self.unanswered, self.apart, self.accusations = {}, {}, {}
