"""A proposal on the wire: the difference to the earlier views says the same as the proposal itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.standing import WaitsForState
from pygroups.core.view import AgreedView, Ballot, Lack, Lacks, ViewId
from pygroups.layers.gms.decisions.electors import Electorate
from pygroups.layers.gms.decisions.proposal import Proposal, Side, difference, differences, proposal_of
from pygroups.layers.gms.heads import Difference, SideEnd

MEMBERS = [Address(f"{name}", "0" * 16) for name in "DBACFEHG"]
A, B, C, D = (Address(name, "0" * 16) for name in "ABCD")
OLD = AgreedView(ViewId(7, A), (A, B, C), ("a", "b", "c"))
WHOLE = SideEnd(OLD.id, OLD, [], [], [])


def view_of(number: int, members: list[Address]) -> AgreedView:
    return AgreedView(ViewId(number, members[0]), tuple(members), tuple(f"{m.name}:{number}" for m in members))


@st.composite
def sides(draw: st.DrawFn, view: AgreedView) -> Side:
    stays = draw(st.lists(st.sampled_from(view.members), min_size=1, unique=True))
    cut = {member: draw(st.integers(0, 3)) for member in view.members}
    holders = {member: draw(st.sampled_from(view.members)) if end else member for member, end in cut.items()}
    return Side(view, tuple(member for member in view.members if member in stays), cut, holders)


def lacks(members: list[Address]) -> st.SearchStrategy[Lacks | None]:
    some = st.lists(st.sampled_from(members), min_size=1, unique=True).map(tuple)
    ranges = st.builds(lambda low, count, who: Lack(low, low + count, who), st.integers(1, 9), st.integers(1, 9), some)
    return st.none() | st.dictionaries(st.sampled_from(MEMBERS), st.lists(ranges, min_size=1, max_size=3).map(tuple))


@st.composite
def proposals(draw: st.DrawFn) -> Proposal:
    """A view change, or a merge of two views."""
    first, second = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    found = [draw(sides(view_of(4, MEMBERS[:first])))]
    if second:
        found.append(draw(sides(view_of(5, MEMBERS[first : first + second]))))
    joiners = MEMBERS[7:] if not second and draw(st.booleans()) else []
    going_on = [member for side in found for member in side.members]
    members = [*(sorted(going_on) if second else going_on), *joiners]
    contacts = {m: side.view.contact(m) for side in found for m in side.members} | dict.fromkeys(joiners, "new")
    view = AgreedView(ViewId(9, A), tuple(members), tuple(contacts[member] for member in members), "ab")
    joined = {member: side.view.joined(member) for side in found for member in side.members}
    view = msgspec.structs.replace(view, since=tuple(joined.get(member, 9) for member in members))
    standing = st.sampled_from([True, False, WaitsForState(None, ViewId(3, A)), WaitsForState(A, ViewId(3, A), (B,))])
    standings: dict[Address, Any] = {member: draw(standing) for member in going_on}
    return Proposal(
        Ballot(10, B),
        view,
        tuple(found),
        (Electorate(view, draw(st.sampled_from(["formed", "proposed", "followed"]))),),
        standings,
        {D: "slow"},
        {A: (4, 0)},
        draw(lacks(members)),
    )


@given(proposals())
def test_the_difference_says_what_the_proposal_says(proposal: Proposal) -> None:
    """To a member of each earlier view, and to a process that is in none of them."""
    receivers = [*(side.view.members[-1] for side in proposal.sides), Address("N", "1" * 16)]
    known = [*(side.view for side in proposal.sides), None]
    for (receiver, told), mine in zip(differences(proposal, receivers), known, strict=True):
        assert told == difference(proposal, None if mine is None else mine.id), receiver
        arrived = msgspec.msgpack.decode(msgspec.msgpack.encode(told), type=Difference)
        assert proposal_of(arrived, mine) == proposal


def test_the_members_of_a_view_are_sent_to_no_member_of_it() -> None:
    """One member of a thousand leaves: what each of the others is sent does not grow with the group."""

    def size(count: int) -> int:
        members = [Address(f"member-{number:04}", f"{number:016x}") for number in range(count)]
        old, new = view_of(4, members), view_of(5, members[:-1])
        cut = dict.fromkeys(members, 0) | {members[0]: 70_000}
        side = Side(old, new.members, cut, dict.fromkeys(members, members[0]))
        proposal = Proposal(Ballot(5, members[0]), new, (side,), (), dict.fromkeys(new.members, True))
        return len(msgspec.msgpack.encode(difference(proposal, old.id)))

    assert size(1_000) <= size(10) + 2, "the rank of the member that leaves takes two bytes more"
    assert size(1_000) < 200


@pytest.mark.parametrize(
    "sides",
    [
        pytest.param((SideEnd(OLD.id, None, [], [], []),), id="relative to a view that the receiver does not have"),
        pytest.param((SideEnd(ViewId(6, A), OLD, [], [], []),), id="a view under another id"),
        pytest.param((SideEnd(OLD.id, OLD, [3], [], []),), id="no such member leaves"),
        pytest.param((SideEnd(OLD.id, OLD, [0, 1, 2], [], []),), id="all leave"),
        pytest.param((SideEnd(OLD.id, OLD, [], [1], [3]),), id="no such holder"),
        pytest.param((SideEnd(OLD.id, OLD, [], [1], []),), id="no holder"),
        pytest.param((SideEnd(OLD.id, OLD, [], [1] * 4, [0] * 4),), id="a stream of no member"),
        pytest.param((WHOLE, WHOLE), id="a member comes from two sides"),
    ],
)
def test_a_difference_that_makes_no_sense(sides: tuple[SideEnd, ...]) -> None:
    told = Difference(Ballot(8, A), ViewId(8, A), "", sides, {}, True, {})
    assert proposal_of(told, None) is None


@pytest.mark.parametrize("lack", [(1, 1, [0]), (5, 4, [0]), (1, 2, [0, 3])])
def test_a_range_without_numbers_or_of_no_member_makes_no_sense(lack: tuple[int, int, list[int]]) -> None:
    told = Difference(Ballot(8, A), ViewId(8, A), "", (WHOLE,), {}, (), {}, lacks={D: [(1, 2, [2])]})
    assert proposal_of(told, None)
    assert told.lacks is not None
    told.lacks[D].append(lack)
    assert proposal_of(told, None) is None


def test_a_member_does_not_join_the_view_that_it_comes_from() -> None:
    told = Difference(Ballot(8, A), ViewId(8, A), "", (WHOLE,), {B: "b"}, True, {})
    assert proposal_of(told, None) is None
    assert proposal_of(msgspec.structs.replace(told, joiners={D: "d"}), None) is not None
