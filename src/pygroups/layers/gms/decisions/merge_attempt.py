"""An attempt that merges several views: Collect, Propose and Install as in a view change, with one side for each view.

A merge has no roll call: MERGE2 has asked every member whether it takes part.  A member that refuses or does not answer
is left out, and its view goes on without the merge.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.events import Marks
from pygroups.core.merge_events import MergeWanted
from pygroups.core.merge_side import Chooses, MergeSide
from pygroups.core.standing import ANEW, WaitsForState, has_state
from pygroups.core.tables import Tables
from pygroups.core.view import AgreedView, Ballot, ViewId

from ...streams.gaps import lacks_of
from ..heads import CollectAck
from . import decide
from .attempt import Attempt, Deed, Input, Stage
from .electors import Electorate
from .proposal import Proposal, Side

TRIES_MAX: Final = 4  # attempts of one merge: each one after the first is without the members that did not answer
Sides = tuple[tuple[AgreedView, tuple[Address, ...]], ...]  # the earlier views, with the members that take part


class MergeAttempt(Attempt):
    """One try at a merged view, at the leader of the merge, which is in `view`."""

    tables: ClassVar[Tables] = {
        **Attempt.tables,
        "wanted.sides": "members_max",
        "wanted.sides[]": "fixed",
        "wanted.sides[][]": "members_max",
    }

    def __init__(
        self,
        view: AgreedView,
        wanted: MergeWanted,
        ballot: Ballot,
        now: int,
        number: int = 1,
        chooses: Chooses | None = None,
    ) -> None:
        super().__init__(view, ballot, {}, now)
        self.chooses = chooses
        self.wanted = wanted
        self.number = number  # of the tries of this merge
        self.stage = Stage.COLLECT
        self.asked = tuple(member for _, members in wanted.sides for member in members)

    def view_of(self, member: Address) -> AgreedView:
        """The view from which `member` comes."""
        return next(view for view, members in self.wanted.sides if member in members)

    def sides(self, of: Container[Address]) -> Sides:
        """The sides with those of their members that are in `of`; no side without members."""
        left = ((view, tuple(m for m in members if m in of)) for view, members in self.wanted.sides)
        return tuple((view, members) for view, members in left if members)

    def leave_out(self, members: Container[Address]) -> Deed | None:
        """Go on without `members`, or fail if fewer than two views, or not the leader's, are left."""
        if self.stage is not Stage.COLLECT:
            return None
        self.asked = tuple(member for member in self.asked if member not in members)
        if len(self.sides(self.asked)) < 2 or self.ballot.leader not in self.asked:
            return self.take(Input.LATE)
        if all(member in self.answers for member in self.asked):
            return self.take(Input.ALL_HELD)
        return None

    def late(self) -> Deed | None:
        """The members that did not answer Collect in time are left out."""
        if self.stage is Stage.COLLECT:
            return self.leave_out([member for member in self.asked if member not in self.answers])
        return self.take(Input.LATE)

    def again(self) -> MergeWanted | None:
        """The next try: with the members that accepted, or with all members if a ballot was too low.  None: give the
        merge up."""
        accepted = self.accepted if self.proposal is not None else self.asked
        sides = self.sides(accepted)
        if self.number >= TRIES_MAX or len(sides) < 2 or self.ballot.leader not in accepted:
            return None
        return MergeWanted(self.wanted.merge, self.wanted.highest, sides)

    def proposes(
        self,
        me: Address,
        leavers: Container[Address],
        now: int,
        expelled: Mapping[Address, str] = MappingProxyType({}),
    ) -> Proposal:
        """The merged view.  Members that want to leave, or that are to be excluded, come along, and leave later."""
        assert self.stage is Stage.PROPOSE
        self.since = now
        answers = {member: self.answers[member] for member in self.asked}
        sides = self.sides(answers)
        electors = decide.electors_of_next(self.ballot, self._known_electors(), answers)
        self.proposal = merged(self.ballot, sides, answers, electors, winner(sides, answers, self.chooses))
        return self.proposal


def winner(sides: Sides, answers: Mapping[Address, CollectAck], chooses: Chooses | None) -> int | None:
    """The index of the side that wins; None: each member keeps its state.

    Only a side with a member that has a state can win.  Without such a side all can, if no member waits for a state.
    """
    if chooses is None:
        return None
    standings = [[answers[member].standing for member in going] for _, going in sides]
    able = [index for index, side in enumerate(standings) if any(map(has_state, side))]
    if not able and not any(isinstance(standing, WaitsForState) for side in standings for standing in side):
        able = list(range(len(sides)))
    if len(able) < 2:
        return able[0] if able else None
    offered = [_offered(*sides[index], answers) for index in able]
    chosen = chooses(tuple(offered))
    return None if chosen is None else able[offered.index(chosen)]


def _offered(view: AgreedView, going: tuple[Address, ...], answers: Mapping[Address, CollectAck]) -> MergeSide:
    standings = [answers[member].standing for member in going]
    whole = True in standings or ANEW not in standings
    return MergeSide(view.id, tuple(sorted(going)), answers[going[0]].primary, whole)


def merged(
    ballot: Ballot,
    sides: Sides,
    answers: Mapping[Address, CollectAck],
    electors: tuple[Electorate, ...] = (),
    wins: int | None = None,
) -> Proposal:
    """The merged view of `sides`: all members that answered, by address; per side its cut, per origin the highest
    mark."""
    members = sorted(member for _, going in sides for member in going)
    contacts = {member: view.contact(member) for view, going in sides for member in going}
    since = {member: view.joined(member) for view, going in sides for member in going}
    marks = [_marks(going, answers) for _, going in sides]
    takes = wins is not None or any(isinstance(answers[member].standing, WaitsForState) for member in members)
    told = marks if takes else [{} for _ in sides]
    ends = [_side(view, going, answers, ballot.leader, has) for (view, going), has in zip(sides, told, strict=True)]
    digest: dict[Address, tuple[int, int]] = {}
    for index, has in enumerate(marks):
        for origin, mark in has.items():
            if mark > digest.get(origin, (1, 0))[0]:
                digest[origin] = (mark, index)
    return Proposal(
        ballot,
        AgreedView(
            ViewId.of(ballot),
            tuple(members),
            tuple(contacts[member] for member in members),
            since=tuple(since[member] for member in members),
        ),
        tuple(ends),
        electors,
        {member: answers[member].standing for _, going in sides for member in going},
        digest=digest,
        lacks=lacks_of(((member, answers[member].missing) for member in members), _apart(digest, marks)),
        winner=wins,
    )


def _apart(digest: Mapping[Address, tuple[int, int]], marks: Sequence[Marks]) -> dict[Address, tuple[int, int]]:
    """The lowest and the highest mark of the origins whose marks differ: some members announce a gap between them."""
    found = {origin: (min([has.get(origin, 1) for has in marks]), mark) for origin, (mark, _) in digest.items()}
    return {origin: (low, high) for origin, (low, high) in found.items() if low < high}


def _side(
    view: AgreedView,
    going: tuple[Address, ...],
    answers: Mapping[Address, CollectAck],
    leader: Address,
    marks: Marks,
) -> Side:
    held = {member: answers[member].held for member in going}
    cut, holders = decide.cut(held, view.members, leader)
    return Side(view, going, cut, holders, marks)


def _marks(going: tuple[Address, ...], answers: Mapping[Address, CollectAck]) -> Marks:
    """The marks of one side at its cut: the cut is the furthest point that one of its members holds."""
    marks: Marks = {}
    for member in going:
        for origin, mark in answers[member].marks.items():
            if mark > marks.get(origin, 1):
                marks[origin] = mark
    return marks
