"""Views and ballots: order, coordinator, and the views that cannot be."""

from __future__ import annotations

import pytest

from pygroups.core.address import Address
from pygroups.core.view import AgreedView, Ballot, ViewId

A, B = Address("A", "0" * 16), Address("B", "1" * 16)


def test_ballots_compare_by_number_then_leader() -> None:
    assert Ballot(1, B) < Ballot(2, A) < Ballot(2, B)
    assert str(Ballot(2, A)) == "2:A@0000000000000000"


def test_a_view_has_the_id_of_the_ballot_of_its_first_proposal() -> None:
    id = ViewId.of(Ballot(2, A))
    assert (type(id), id.number, id.leader) == (ViewId, 2, A)
    assert (repr(Ballot(2, A)), repr(id)) == ("Ballot(2:A@0000000000000000)", "ViewId(2:A@0000000000000000)")


def test_the_first_member_coordinates() -> None:
    view = AgreedView(ViewId(1, B), (B, A), ("here", "there"))
    assert view.coordinator == B
    assert (view.contact(B), view.contact(A)) == ("here", "there")


@pytest.mark.parametrize(
    ("members", "contacts"),
    [((A, B), ("here",)), ((A,), ("here", "there")), ((A, A), ("here", "there"))],
)
def test_a_view_that_cannot_be_is_not_made(members: tuple[Address, ...], contacts: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"a view needs one contact for each member|a member is in the view twice"):
        AgreedView(ViewId(1, A), members, contacts)
