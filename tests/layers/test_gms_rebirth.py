"""What a process without a view tells of the former group, as pure functions."""

from __future__ import annotations

import msgspec

from pygroups.core.address import Address
from pygroups.core.view import AgreedView, Ballot, ViewId
from pygroups.layers.gms.decisions.proposal import Proposal, Side, difference
from pygroups.layers.gms.majority.rebirth import Formerly, missing, newest

A, B, C, D = (Address(name, "0" * 16) for name in "ABCD")


def view(number: int, *members: Address, history: str = "h") -> AgreedView:
    return AgreedView(ViewId(number, A), members, ("",) * len(members), history)


def shows(ended: Address, last: AgreedView | None, accepted: Proposal | None = None) -> Formerly:
    return Formerly((ended,), last, None if accepted is None else difference(accepted, None), False)


def accepts(number: int, before: AgreedView, *members: Address) -> Proposal:
    ballot = Ballot(number, A)
    return Proposal(ballot, view(number, *members), (Side(before, members, {}, {}),), electors=())


def test_a_process_tells_the_last_view_that_it_knows() -> None:
    """The process of A has heard the one of B, which has ended since.  D may live in the view of B: it stays missing,
    and C, which has no place in that view, does not."""
    own, heard = shows(A, view(3, A, B, C)), shows(B, view(5, B, D))
    told = newest(own, [heard])
    assert told == msgspec.structs.replace(own, view=heard.view)
    assert missing([told], [B]) == [D]
    assert newest(own, [shows(B, view(2, A, B)), shows(B, None), shows(B, view(9, B, history="other"))]) == own


def test_with_the_proposal_of_the_highest_ballot() -> None:
    """It may have been decided, so its members count, too."""
    last = view(3, A, B, C)
    none, low, high = shows(A, last), shows(B, last, accepts(4, last, A, B)), shows(C, last, accepts(5, last, B, C))
    assert newest(none, [low, high]).accepted == newest(high, [none, low]).accepted == high.accepted
    assert newest(none, []) == none


def test_a_process_without_a_former_view_tells_none() -> None:
    own = shows(A, None)
    assert newest(own, [shows(B, view(3, A, B))]) == own
