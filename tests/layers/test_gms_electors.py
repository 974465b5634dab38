"""Electors: which view is primary.  The pure rule, and random histories in which no two primary views exist at once."""

from __future__ import annotations

from random import Random

import pytest

from pygroups.core.address import Address
from pygroups.core.view import AgreedView, Ballot, ViewId
from pygroups.layers.gms.decisions import electors
from pygroups.layers.gms.decisions.decide import electors_of_next
from pygroups.layers.gms.decisions.electors import ELECTORS_MAX, Electorate, Kind

A, B, C, D, E = tuple(Address(name, "0" * 16) for name in "ABCDE")
BALLOT = Ballot(99, A)


def of(number: int, members: str, kind: Kind = "formed", by: str = "") -> Electorate:
    addresses = tuple(Address(name, "0" * 16) for name in members)
    id = ViewId(number, Address(by or members[0], "0" * 16))
    return Electorate(AgreedView(id, addresses, tuple(members)), kind)


def is_primary(known: list[Electorate], here: str, left: str = "", ended: str = "", *, alone: bool = True) -> bool:
    groups = [[Address(name, "0" * 16) for name in names] for names in (here, left, ended)]
    return not electors_of_next(BALLOT, known, *groups, alone=alone)


@pytest.mark.parametrize(
    ("known", "here", "left", "ended", "primary"),
    [
        ([of(1, "ABC")], "AB", "", "", True),  # more than half
        ([of(1, "ABC")], "C", "", "", False),
        ([of(1, "AB")], "A", "", "", True),  # half, with the first
        ([of(1, "AB")], "B", "", "", False),
        ([of(1, "AB")], "B", "A", "", True),  # the first leaves
        ([of(1, "ABC")], "C", "A", "", False),  # one of two
        ([of(1, "AB")], "B", "", "A", True),  # the first has ended, and nobody else is left
        ([of(1, "ABC")], "C", "", "A", False),  # B may live, and have gone on with A before its end
        ([of(1, "ABC")], "CDE", "", "AB", True),
        ([of(1, "ABC"), of(3, "CDE", "followed")], "DE", "", "ABC", True),  # all of them have ended
        ([of(1, "ABC"), of(3, "CDE", "followed")], "D", "", "ABC", False),  # E may say the same
        ([of(1, "ABC"), of(3, "CDE", "followed")], "BC", "", "", True),
        ([of(1, "AB"), of(3, "BD", "followed")], "D", "AB", "", True),  # all of them have left
        ([of(1, "AB"), of(3, "BDE", "followed")], "D", "AB", "", False),
        ([of(1, "ABCDE"), of(2, "AB")], "AB", "", "", True),  # the newest counts
        ([of(1, "ABCDE"), of(2, "AB")], "BCDE", "", "", False),
        ([of(1, "ABC"), of(2, "AB", "proposed")], "BC", "", "", False),  # A may be in that view
        ([of(1, "ABC"), of(2, "AB", "proposed")], "AC", "", "", True),
        ([of(1, "ABC"), of(2, "AB", "proposed")], "BC", "", "A", True),
        ([of(1, "AB"), of(2, "A", "ended")], "B", "", "", True),  # the view before knew it
        ([of(100, "ABC")], "ABC", "", "", False),  # an id above the ballot
    ],
)
def test_the_electors_decide(known: list[Electorate], here: str, left: str, ended: str, primary: bool) -> None:
    assert is_primary(known, here, left, ended) is primary
    assert not ended or not is_primary(known, here, left, ended, alone=False)


def test_a_member_that_left_is_an_elector_no_more() -> None:
    kept = electors_of_next(BALLOT, [of(1, "ABCDE")], [B], [A])
    assert kept == (of(1, "BCDE", by="A"),)
    assert electors.latest([of(1, "ABCDE"), *kept]) == kept  # of two versions the one without it counts


def test_a_view_carries_those_that_have_ended() -> None:
    kept = electors_of_next(BALLOT, [of(1, "ABCDE"), of(2, "C", "ended")], [B], [], [A, D])
    assert electors.ended_of(kept) == (A, C, D)
    assert electors.absent(kept, of(3, "B").view) == {E: "E"}


def test_a_leader_that_proposes_again_has_given_its_proposal_up() -> None:
    known = (of(1, "ABC"), of(3, "BC", "proposed"))
    known = electors.proposed(known, ViewId(2, A), of(4, "AB").view)
    known = electors.proposed(known, ViewId(2, A), of(5, "A").view)
    assert known == (of(1, "ABC"), of(3, "BC", "proposed"), of(5, "A", "proposed"))


def test_an_installed_view_ends_older_proposals_and_no_newer_ones() -> None:
    own = (of(1, "ABC"), of(3, "BC", "proposed"), of(6, "AC", "proposed"))
    assert electors.installed(own, of(5, "AB").view, ()) == (of(5, "AB"), of(6, "AC", "proposed"))
    carried = (of(1, "ABC"), of(3, "BC", "proposed"))
    assert electors.installed(own, of(5, "B").view, carried) == (*carried, of(6, "AC", "proposed"))


def test_proposals_are_bounded_and_what_was_formed_stays() -> None:
    known = [of(1, "ABC"), *[of(number, "AB", "proposed") for number in range(2, 40)]]
    kept = electors.latest(known)
    assert len(kept) == ELECTORS_MAX and kept[0] == known[0] and kept[-1] == known[-1]


def test_absent_electors_have_their_contacts() -> None:
    known = (of(1, "ABC"), of(2, "AD", "proposed"))
    assert electors.absent(known, of(3, "B").view) == {A: "A", C: "C", D: "D"}


# -- random histories


class Process:
    """A process as the rule sees it: its view, its electors, and the proposals that it has accepted in its view."""

    def __init__(self, me: Address) -> None:
        self.me = me
        self.electors: tuple[Electorate, ...] = ()
        self.primary = True
        self.accepted: dict[Address, ViewId] = {}
        self.ended: list[Address] = []
        self.alone = False

    def installs(self, view: AgreedView, carried: tuple[Electorate, ...]) -> None:
        self.electors = electors.installed(self.electors, view, carried)
        self.view, self.primary, self.bound, self.accepted = view, not carried, view.id, {}
        self.alone = False

    def answers(self) -> tuple[Electorate, ...]:
        return self.electors if self.primary else (*self.electors, Electorate(self.view, "followed"))


class Histories:
    """Attempts at views among any processes that reach each other.  Each step may be lost, and a decided view may reach
    its other members late or never.  Processes join, leave and crash."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        start = AgreedView(ViewId(1, A), (A, B, C), ("A", "B", "C"))
        self.processes = {one: Process(one) for one in start.members}
        for process in self.processes.values():
            process.installs(start, ())
        self.decided: list[tuple[AgreedView, tuple[Electorate, ...]]] = [(start, ())]
        self.dead: list[Address] = []
        self.came_back = self.alone_again = 0

    def step(self) -> None:
        kind = self.chance.choices(("attempt", "late", "crash", "alone"), (14, 5, 1, 3))[0]
        if self.processes:
            getattr(self, kind)()

    def crash(self) -> None:
        one = self.chance.choice(list(self.processes))
        del self.processes[one]
        self.dead.append(one)

    def alone(self) -> None:
        """A member learns who has ended, and perhaps that no process exists outside of its view."""
        one = self.chance.choice(list(self.processes.values()))
        one.ended = [member for member in self.dead if self.chance.random() < 0.9]
        one.alone = all(other in one.view.members for other in self.processes)

    def attempt(self) -> None:
        chance, all_there = self.chance, list(self.processes.values())
        together = chance.sample(all_there, chance.randint(1, len(all_there)))
        leader = together[0]
        number = max(one.bound.number for one in together[: chance.randint(1, len(together))]) + 1
        ballot = Ballot(number, leader.me)
        together = [one for one in together if ViewId.of(ballot) > one.bound]
        if leader not in together:
            return
        for one in together:
            one.bound = ViewId.of(ballot)
        leaves = [one for one in together[1:] if chance.random() < 0.05]
        staying = [one for one in together if one not in leaves]
        members = (*sorted(one.me for one in staying), *self.joiners())
        view = AgreedView(ViewId.of(ballot), members, tuple(str(member) for member in members))
        ended, alone = [m for one in together for m in one.ended], all(one.alone for one in together)
        known = [electorate for one in together for electorate in one.answers()]
        here, left = [one.me for one in staying], [one.me for one in leaves]
        carried = electors_of_next(ballot, known, here, left, ended, alone=alone)
        if self.accept(leader, staying, view, carried):
            self.came_back += not carried and not any(one.primary for one in together)
            self.alone_again += not carried and bool(electors_of_next(ballot, known, here, left))
            self.install(leader, view, carried)  # a leader that decides has the view at once
            self.decided.append((view, carried))
            for one in leaves:
                del self.processes[one.me]
                self.dead.append(one.me)
            self.late()

    def joiners(self) -> list[Address]:
        if self.chance.random() < 0.8 or len(self.processes) > 5:
            return []
        return [Address("ABCDE"[self.chance.randrange(5)], f"{len(self.decided) + 1:016x}")]

    def accept(
        self, leader: Process, staying: list[Process], view: AgreedView, carried: tuple[Electorate, ...]
    ) -> bool:
        for one in staying:
            if self.chance.random() < 0.1:
                return False
            one.accepted[leader.me] = view.id
            if not carried:
                one.electors = electors.proposed(one.electors, one.view.id, view)
        return True

    def install(self, one: Process, view: AgreedView, carried: tuple[Electorate, ...]) -> None:
        if one.accepted.get(view.id.leader) == view.id:
            one.installs(view, carried)

    def late(self) -> None:
        """A view that was decided reaches some of its members."""
        view, carried = self.decided[-1] if self.chance.random() < 0.5 else self.chance.choice(self.decided)
        is_there = any(one.view.id == view.id for one in self.processes.values())
        for member in view.members:
            one = self.processes.get(member)
            if one is not None and self.chance.random() < 0.7:
                self.install(one, view, carried)
            elif one is None and member not in self.dead and is_there and self.chance.random() < 0.7:
                self.processes[member] = Process(member)
                self.processes[member].installs(view, carried)

    def whole(self) -> list[AgreedView]:
        """The primary views that all of their members have, and none of them is about to leave."""
        views = {one.view.id: one.view for one in self.processes.values() if one.primary}
        return [view for view in views.values() if all(self.stays_in(view, one) for one in view.members)]

    def stays_in(self, view: AgreedView, one: Address) -> bool:
        process = self.processes.get(one)
        return process is not None and process.view.id == view.id and not process.accepted


def test_no_two_primary_views_exist_at_once() -> None:
    came_back = alone_again = 0
    for seed in range(300):
        histories = Histories(seed)
        for _ in range(60):
            histories.step()
            assert len(histories.whole()) <= 1, f"seed {seed}: {histories.whole()}"
        came_back += histories.came_back
        alone_again += histories.alone_again
    assert came_back > 100, "primary views come back"
    assert alone_again > 20, "also those whose electors have ended"
