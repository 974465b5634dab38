"""The reply to a process in another view: each row of the tables, at a member of A, B and C in view 7."""

from __future__ import annotations

import random
from itertools import product
from typing import NamedTuple

import msgspec
import pytest

from pygroups.core.address import Address
from pygroups.core.layer import Env
from pygroups.core.limits import Config
from pygroups.core.run import Run
from pygroups.core.view import AgreedView, Ballot, ViewId
from pygroups.layers.gms.decisions.proposal import Installation, Proposal, Side, difference
from pygroups.layers.gms.decisions.quorum import MAJORITY
from pygroups.layers.gms.heads import Elsewhere, Excluded, Install, Stuck
from pygroups.layers.gms.member.other_views import IN_ONE_CHAIN, REPLIES, OtherViews, Reply, Row, Theirs, reply
from pygroups.layers.gms.membership import Membership
from tests.layers.gms_drawn import in_the_note, replies

A, B, C, D = (Address(name, "0" * 16) for name in "ABCD")
OLD = AgreedView(ViewId(5, A), (A, B, D), ("a", "b", "d"))
VIEW = AgreedView(ViewId(7, A), (A, B, C), ("a", "b", "c"))
UNSEEN = ViewId(6, A)  # between the two; this member was not in it
ON_THE_WAY, CANNOT_FOLLOW, NEXT = Ballot(8, B), Ballot(9, D), Ballot(9, B)
PROPOSAL = Proposal(VIEW.id, VIEW, (Side(OLD, (A, B), {A: 0, B: 0, D: 0}, {}),), ())
AFTER_UNSEEN = Proposal(VIEW.id, VIEW, (Side(msgspec.structs.replace(OLD, id=UNSEEN), (A, B), {}, {}),), ())
DECIDED = Proposal(Ballot(8, B), AgreedView(ViewId(8, B), (B, C), ("b", "c")), (Side(VIEW, (B, C), {}, {}),), ())


class Case(NamedTuple):
    """A process that speaks of a view, and the only head that it is told."""

    src: Address
    theirs: ViewId | None
    told: object
    keeps: bool | Proposal = True  # the member still keeps the installation of its view, or one that was made so
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
IN_A_CHAIN: dict[Row, list[Case]] = dict(
    zip(
        IN_ONE_CHAIN,
        [
            [Case(D, OLD.id, Install(difference(PROPOSAL, OLD.id), None))],
            [
                Case(B, UNSEEN, Install(difference(AFTER_UNSEEN, UNSEEN), None), AFTER_UNSEEN),
                Case(D, UNSEEN, Install(difference(AFTER_UNSEEN, UNSEEN), None), AFTER_UNSEEN),
            ],
            [Case(B, UNSEEN, Elsewhere(VIEW.id, UNSEEN))],
            [Case(D, UNSEEN, Excluded(UNSEEN)), Case(D, UNSEEN, Excluded(UNSEEN), asked=False)],
            [Case(B, NEXT, Stuck(NEXT, VIEW.id))],
            [Case(D, ViewId(9, C), Elsewhere(VIEW.id, ViewId(9, C)))],
            [Case(B, NEXT, None, asked=False), Case(D, NEXT, None, asked=False)],
        ],
        strict=True,
    )
)
ALL = [(row, case, False) for row, cases in CASES.items() for case in cases]
ALL += [(row, case, True) for row, cases in IN_A_CHAIN.items() for case in cases]


class OneChain(Membership):
    """A member of a group in which a majority decides each view."""

    quorum = MAJORITY


def member(case: Case, *, one_chain: bool = False) -> tuple[Membership, OtherViews]:
    """A, in VIEW after OLD; C in VIEW as its first, if that is asked for."""
    membership = (OneChain if one_chain else Membership)(Env(C if case.joined else A, 0, random.Random(1), Config()))
    other_views = OtherViews(membership)
    membership.view = VIEW
    other_views.entered(None if case.joined else OLD, VIEW)
    if case.keeps:
        other_views.kept = Installation(PROPOSAL if case.keeps is True else case.keeps, {A: 1})
    membership.binding.accepted[B] = ON_THE_WAY
    return membership, other_views


@pytest.mark.parametrize(("row", "case", "one_chain"), ALL, ids=lambda value: None)
def test_a_row_of_the_tables(row: Row, case: Case, one_chain: bool) -> None:
    membership, other_views = member(case, one_chain=one_chain)
    seen = other_views._seen(case.src, case.theirs)
    holds = other_views._holds_for(case.src, case.theirs) or other_views._holds_for_left_out(case.src, case.theirs)
    facts = (membership.knows(case.src), holds, case.asked)
    assert seen is row.theirs
    assert all(cell in (None, fact) for cell, fact in zip(row[1:4], facts, strict=True)), "the case is of this row"
    other_views.explain(case.src, case.theirs, asked=case.asked)
    told = [(item.dest, item.head) for item in membership.below if isinstance(item, Run)]
    assert told == ([] if case.told is None else [(case.src, case.told)])


def test_one_row_and_no_other_fits_whatever_is_the_case() -> None:
    for theirs, is_member, holds, asked in product(Theirs, *[(False, True)] * 3):
        assert isinstance(reply(theirs, is_member=is_member, holds=holds, asked=asked), Reply)


@pytest.mark.parametrize(
    ("member_asks", "theirs", "is_given"), [(B, VIEW.id, True), (B, OLD.id, False), (D, VIEW.id, False)]
)
def test_a_member_that_asks_in_this_view_gets_its_decided_successor(
    member_asks: Address, theirs: ViewId, is_given: bool
) -> None:
    membership, other_views = member(Case(B, VIEW.id, None), one_chain=True)
    membership.binding.decided = DECIDED
    assert other_views.give_decided(member_asks, theirs) is is_given
    told = [(item.dest, item.head) for item in membership.below if isinstance(item, Run)]
    assert told == ([(B, Install(difference(DECIDED, VIEW.id), None))] if is_given else [])


@pytest.mark.parametrize(("name", "rows"), [("replies", REPLIES), ("replies-in-one-chain", IN_ONE_CHAIN)])
def test_the_note_shows_the_tables(name: str, rows: tuple[Row, ...]) -> None:
    assert in_the_note(name, replies(rows)), "UPDATE=1 writes it anew"
