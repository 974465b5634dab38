"""Suspicions: the reasons to suspect each member, and the accusations of members against each other.

| a member is suspected because | taken back by |
|---|---|
| no frame arrives from it (SILENT), or its process is proven to have ended (ENDED) | a frame of it arrives again |
| it left two Ready in a row unanswered, even if other messages arrive from it | it answers a Ready |
| it and another member cannot reach each other (`apart`) | it answers a Ready; judged anew after that |
| it is in another view for good (ELSEWHERE) | nothing |
| it leads, and reports of itself that most do not hear it (UNHEARD) | it reports this no more |
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from enum import Enum
from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.tables import Tables

UNANSWERED_MAX = 2  # Ready in a row that a member may leave unanswered before it counts as suspected


class Suspicion(Enum):
    """The reason to suspect a member.  The numbers go on the wire."""

    SILENT = 0  # no frame arrives from the member
    ENDED = 1  # its process has ended: there is a proof, which may be wrong
    ELSEWHERE = 2  # the member is in another view, and never comes back into this one
    UNHEARD = 3  # a leader reports of itself: most members do not hear it


OVER = (Suspicion.ENDED, Suspicion.ELSEWHERE)  # the member never asks for anything of this view any more


class Suspicions(Container[Address]):
    """The suspicions in one view; `member in suspicions` means that a leader does not wait for that member."""

    tables: ClassVar[Tables] = {
        "accusations": "members",
        "accusations[]": "members",
        "apart": "members",
        "known": "members_max",
        "unanswered": "members_max",
    }

    def __init__(self) -> None:
        self.known: dict[Address, Suspicion] = {}  # by this member's own evidence
        self.unanswered: dict[Address, int] = {}  # how many Ready in a row each member left unanswered
        self.apart: dict[Address, None] = {}  # left out because the member and another one cannot reach each other
        self.accusations: dict[Address, dict[Address, Suspicion]] = {}  # per member, its suspicions

    # -- questions

    def __contains__(self, member: object) -> bool:
        assert isinstance(member, Address)
        unanswering = self.unanswered.get(member, 0) >= UNANSWERED_MAX
        gives_way = member in self.accusations.get(member, ())
        return unanswering or gives_way or member in self.known or member in self.apart

    def is_over(self, member: Address) -> bool:
        """Whether `member` never asks for the installation of this view any more, so its name is free."""
        return self.known.get(member) in OVER

    def is_unconfirmed(self, member: Address) -> bool:
        """Whether `member` has ended by this member's evidence alone: no other member suspects it."""
        ended = self.known.get(member) is Suspicion.ENDED
        return ended and not any(member in accused for accused in self.accusations.values())

    def is_unheard(self, member: Address, members: Iterable[Address]) -> bool:
        """Whether most of `members` accuse `member`.  Members that are suspected themselves do not count."""
        here = [other for other in members if other == member or other not in self]
        deaf = [other for other in here if other != member and member in self.accusations.get(other, ())]
        return 2 * len(deaf) > len(here)

    def own(self, members: Container[Address]) -> dict[Address, Suspicion]:
        """The suspicions by this member's own evidence, among `members`, for an accusation.

        A member that is elsewhere is left out, because it informs the others itself.  A suspicion of a process outside
        the view concerns joins only.
        """
        return {m: how for m, how in self.known.items() if m in members and how is not Suspicion.ELSEWHERE}

    def pairs(self, members: Iterable[Address]) -> Iterator[tuple[Address, Address]]:
        """Pairs of members of which at least one suspects the other."""
        order = [member for member in members if member not in self]
        for index, one in enumerate(order):
            for other in order[index + 1 :]:
                if other in self.accusations.get(one, ()) or one in self.accusations.get(other, ()):
                    yield one, other

    # -- changes

    def suspect(self, member: Address, how: Suspicion) -> None:
        """SILENT or ENDED: a proof is not forgotten because the member is silent, too."""
        if self.known.get(member) not in OVER:
            self.known[member] = how

    def elsewhere(self, member: Address) -> None:
        """`member` is in another view for good."""
        self.known[member] = Suspicion.ELSEWHERE

    def gives_way(self, me: Address) -> None:
        """This member leads, and most members do not hear it: another member has to lead."""
        self.known[me] = Suspicion.UNHEARD

    def heard(self, member: Address) -> None:
        """A frame of this incarnation arrived: the member is neither silent nor has it ended."""
        if self.known.get(member) is not Suspicion.ELSEWHERE:
            self.known.pop(member, None)

    def answered(self, member: Address) -> None:
        """`member` answered a Ready."""
        self.heard(member)
        self.unanswered.pop(member, None)
        self.apart.pop(member, None)

    def left_unanswered(self, member: Address, times: int = 1) -> None:
        """`member` left so many Ready unanswered."""
        self.unanswered[member] = self.unanswered.get(member, 0) + times

    def leave_out(self, member: Address) -> None:
        """`member` and another one cannot reach each other, and `member` has to go."""
        self.apart[member] = None

    def accuse(self, accuser: Address, accused: Mapping[Address, Suspicion]) -> dict[Address, Suspicion]:
        """`accuser` now suspects exactly `accused`.  Returns the suspicions that are new, or newly proven."""
        before = self.accusations.pop(accuser, {})
        if accused:
            self.accusations[accuser] = dict(accused)
        ended = Suspicion.ENDED
        return {m: how for m, how in accused.items() if m not in before or (how is ended and before[m] is not ended)}

    def keep(self, members: Container[Address]) -> None:
        """A new view: forget former members, and the accusations and unanswered Ready of the old view."""
        self.known = {m: how for m, how in self.known.items() if m in members and how is not Suspicion.UNHEARD}
        self.unanswered, self.apart, self.accusations = {}, {}, {}
