"""GMS after a long pause: the question of a member whose view the others may have left behind, and the answers."""

from __future__ import annotations

import random

import pytest

from pygroups.core import events
from pygroups.core.address import Address
from pygroups.core.layer import Env
from pygroups.core.limits import SECOND, Config
from pygroups.core.run import Run
from pygroups.core.view import AgreedView, Ballot, ViewId
from pygroups.layers.gms.decisions.proposal import Proposal, Side
from pygroups.layers.gms.heads import Ready, ReadyRsp
from pygroups.layers.gms.layer import Gms
from pygroups.layers.gms.majority.primary import PrimaryGms

A, B, C = MEMBERS = tuple(Address(name, "0" * 16) for name in "ABC")
VIEW = AgreedView(ViewId(3, B), MEMBERS, ("here", "there", "yonder"))


def paused(kind: type[Gms] = Gms, members: tuple[Address, ...] = MEMBERS) -> Gms:
    """A, in a view of these members, after a long pause."""
    env = Env(A, 0, random.Random(1), Config())
    gms = kind(env)
    gms.down_event(events.Join())
    view = AgreedView(VIEW.id, members, VIEW.contacts[: len(members)])
    gms.install(Proposal(Ballot(*VIEW.id), view, (Side(view, members[1:2] or members, {}, {}),), ()), {})
    taken(gms)
    env.now += 10 * SECOND
    gms.after_pause()
    return gms


def taken(gms: Gms) -> list[str]:
    """What goes up of the doubt, and its questions, since the last call."""
    asked = [f"{run.dest.name}?" for run in gms.below if isinstance(run, Run) and run.dest and type(run.head) is Ready]
    found = [type(item).__name__ for item in gms.above if isinstance(item, events.Hold | events.Release)]
    gms.above, gms.below = [], []
    return found + asked


def question(gms: Gms) -> Ballot:
    ballot = gms.leading.confirming.asked
    assert ballot is not None
    return ballot


def answers(
    gms: Gms, member: Address, ballot: Ballot, *, view: ViewId = VIEW.id, bound: Ballot | None = None
) -> list[str]:
    gms.up(Run(member, A, (ReadyRsp(ballot, view, bound, False),)))
    return taken(gms)


def test_all_others_are_asked_and_all_must_answer() -> None:
    """Any of them may have gone on with some of the others."""
    gms = paused()
    assert taken(gms) == ["Hold", "B?", "C?"]
    assert answers(gms, B, question(gms)) == []
    assert answers(gms, B, question(gms)) == []  # a second answer of B is not C's
    assert answers(gms, C, question(gms)) == ["Release"]
    assert gms.gauges()["in_doubt"] == 0


def test_a_majority_is_enough_where_a_majority_decides() -> None:
    gms = paused(PrimaryGms)
    assert taken(gms) == ["Hold", "B?", "C?"]
    assert answers(gms, C, question(gms)) == ["Release"]


@pytest.mark.parametrize("kind", [Gms, PrimaryGms])
def test_the_answer_of_a_bound_member_does_not_count(kind: type[Gms]) -> None:
    """A bound member never resumes this view: a view without A may be decided with its answer."""
    gms = paused(kind)
    taken(gms)
    for member in (B, C):
        assert answers(gms, member, question(gms), bound=Ballot(9, B)) == []


@pytest.mark.parametrize("kind", [Gms, PrimaryGms])
def test_an_answer_to_an_earlier_question_does_not_count(kind: type[Gms]) -> None:
    """A is paused again before the answers come: they say nothing about the time of the second pause."""
    gms = paused(kind)
    first = question(gms)
    taken(gms)
    gms.env.now += 10 * SECOND
    gms.after_pause()
    assert taken(gms) == ["B?", "C?"], "it asks again, and still holds"
    assert [answers(gms, member, first) for member in (B, C)] == [[], []]
    second = question(gms)
    assert answers(gms, B, second) + answers(gms, C, second) == ["Release"]


def test_an_answer_from_another_view_does_not_count() -> None:
    gms = paused(PrimaryGms)
    taken(gms)
    assert answers(gms, C, question(gms), view=ViewId(4, C)) == []


def test_a_member_that_is_bound_asks_nothing_and_one_that_becomes_bound_stays_so() -> None:
    gms = paused()
    asked = question(gms)
    gms.binding.ballot = Ballot(9, B)
    taken(gms)
    assert answers(gms, B, asked) + answers(gms, C, asked) == []
    gms.after_pause()
    assert taken(gms) == []


def test_a_view_of_one_member_needs_no_answer() -> None:
    gms = paused(members=(A,))
    assert taken(gms) == []


def test_a_view_ends_the_doubt() -> None:
    gms = paused()
    old = AgreedView(VIEW.id, MEMBERS, VIEW.contacts)
    alone = AgreedView(ViewId(9, A), (A,), ("here",))
    gms.install(Proposal(Ballot(9, A), alone, (Side(old, (A,), {}, {}),), ()), None)
    assert gms.gauges()["in_doubt"] == 0
