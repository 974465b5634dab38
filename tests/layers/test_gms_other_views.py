"""What a process in another view is told: each row of the table, at a member of A, B and C in view 7."""

from __future__ import annotations

import random
from itertools import product
from typing import NamedTuple

import pytest

from pygroups.core.address import Address
from pygroups.core.layer import Env
from pygroups.core.limits import Config
from pygroups.core.run import Run
from pygroups.core.view import AgreedView, Ballot, ViewId
from pygroups.layers.gms.heads import Elsewhere, Excluded, Install, Stuck
from pygroups.layers.gms.membership import Membership
from pygroups.layers.gms.other_views import REPLIES, OtherViews, Reply, Row, Theirs, reply
from pygroups.layers.gms.proposal import Installation, Proposal, Side, difference
from tests.layers.gms_drawn import in_the_note, replies

A, B, C, D = (Address(name, "0" * 16) for name in "ABCD")
OLD = AgreedView(ViewId(5, A), (A, B, D), ("a", "b", "d"))
VIEW = AgreedView(ViewId(7, A), (A, B, C), ("a", "b", "c"))
ON_THE_WAY, CANNOT_FOLLOW, NEXT = Ballot(8, B), Ballot(9, D), Ballot(9, B)
PROPOSAL = Proposal(VIEW.id, VIEW, (Side(OLD, (A, B), {A: 0, B: 0, D: 0}, {}),), True)


class Case(NamedTuple):
    """A process that speaks of a view, and the only head that it is told."""

    src: Address
    theirs: ViewId | None
    told: object
    keeps: bool = True  # the member still keeps the installation of its view
    asked: bool = True
    joined: bool = False  # the member came into the group with this view


CASES: dict[Row, list[Case]] = dict(
    zip(
        REPLIES,
        [
            [Case(B, VIEW.id, None)],
            [Case(C, None, Install(difference(PROPOSAL, None), {A: 1}))],
            [Case(C, None, None, keeps=False), Case(D, None, None), Case(B, None, None)],
            [Case(B, OLD.id, Install(difference(PROPOSAL, OLD.id), None))],
            [Case(B, OLD.id, None, keeps=False)],
            [Case(D, OLD.id, Excluded(OLD.id)), Case(D, OLD.id, Excluded(OLD.id), asked=False)],
            [Case(B, ON_THE_WAY, Stuck(ON_THE_WAY, VIEW.id))],
            [Case(B, OLD.id, Install(difference(PROPOSAL, OLD.id), None), joined=True)],
            [Case(D, CANNOT_FOLLOW, Elsewhere(VIEW.id, CANNOT_FOLLOW), asked=False)],
            [Case(B, NEXT, Elsewhere(VIEW.id, NEXT))],
            [Case(B, NEXT, None, asked=False)],
        ],
        strict=True,
    )
)


def member(case: Case) -> tuple[Membership, OtherViews]:
    """A, in VIEW after OLD; C in VIEW as its first, if that is asked for."""
    membership = Membership(Env(C if case.joined else A, 0, random.Random(1), Config()))
    other_views = OtherViews(membership)
    membership.view = VIEW
    other_views.entered(None if case.joined else OLD, VIEW)
    if case.keeps:
        other_views.kept = Installation(PROPOSAL, {A: 1})
    membership.binding.accepted[B] = ON_THE_WAY
    return membership, other_views


@pytest.mark.parametrize(
    ("row", "case"), [(row, case) for row, cases in CASES.items() for case in cases], ids=lambda value: None
)
def test_a_row_of_the_table(row: Row, case: Case) -> None:
    membership, other_views = member(case)
    seen = other_views._seen(case.src, case.theirs)
    facts = (membership.knows(case.src), other_views._holds_for(case.src, case.theirs), case.asked)
    assert seen is row.theirs
    assert all(cell in (None, fact) for cell, fact in zip(row[1:4], facts, strict=True)), "the case is of this row"
    other_views.explain(case.src, case.theirs, asked=case.asked)
    told = [(item.dest, item.head) for item in membership.below if isinstance(item, Run)]
    assert told == ([] if case.told is None else [(case.src, case.told)])


def test_one_row_and_no_other_fits_whatever_is_the_case() -> None:
    for theirs, is_member, holds, asked in product(Theirs, *[(False, True)] * 3):
        assert isinstance(reply(theirs, is_member=is_member, holds=holds, asked=asked), Reply)


def test_the_note_shows_the_table() -> None:
    assert in_the_note("replies", replies()), "UPDATE=1 writes it anew"
