"""One attempt at a view change, as the pure machine that it is: each row of its table, and what is in no row."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from pygroups.core.address import Address
from pygroups.core.view import AgreedView, Ballot, ViewId
from pygroups.layers.gms.decisions.attempt import ENDS, STEPS, Attempt, Deed, Input, Stage
from pygroups.layers.gms.decisions.proposal import Proposal, Side, difference
from pygroups.layers.gms.decisions.quorum import EVERYBODY, MAJORITY, Quorum
from pygroups.layers.gms.heads import Accept, CollectAck, Fetches, Low
from tests.layers.gms_drawn import in_the_note, picture

A, B, C, D = (Address(name, "0" * 16) for name in "ABCD")
VIEW = AgreedView(ViewId(7, A), (A, B, C), ("a", "b", "c"))
BALLOT, HIGHER = Ballot(9, A), Ballot(9, B)


def held(ballot: Ballot = BALLOT, *, leaving: bool = False) -> CollectAck:
    return CollectAck(ballot, [3, 1], leaving)


def in_stage(stage: Stage, quorum: Quorum = EVERYBODY) -> Attempt:
    """An attempt of A that has come so far by the answers of all."""
    attempt = Attempt(VIEW, Ballot(8, A), {D: "d"}, 0, quorum)
    if stage is Stage.READY:
        return attempt
    assert attempt.take(Input.WANTED) is Deed.COLLECT
    attempt.collects(BALLOT, (A, B, C), 10)
    if stage is Stage.COLLECT:
        return attempt
    deeds = [attempt.on_collect_ack(member, held(), 20) for member in (A, B, C)]
    assert deeds[-1] is Deed.PROPOSE
    attempt.proposes(A, (), 30)
    return attempt


def all_but_c(attempt: Attempt) -> None:
    for member in (A, B):
        attempt.on_collect_ack(member, held(), 40)
        attempt.on_accept(member, Accept(BALLOT), 40)


def the_last_answer(attempt: Attempt) -> Deed | None:
    all_but_c(attempt)
    if attempt.stage is Stage.COLLECT:
        return attempt.on_collect_ack(C, held(), 50)
    return attempt.on_accept(C, Accept(BALLOT), 50)


TOLD: dict[Input, Callable[[Attempt], Deed | None]] = {
    Input.HELD: lambda attempt: attempt.on_collect_ack(B, held(), 50),
    Input.ALL_HELD: the_last_answer,
    Input.ACCEPT: lambda attempt: attempt.on_accept(B, Accept(BALLOT), 50),
    Input.AGREED: the_last_answer,
    Input.FETCHES: lambda attempt: attempt.on_fetches(B, Fetches(BALLOT), 50),
    Input.LOW: lambda attempt: attempt.on_low(Low(BALLOT, HIGHER)),
    Input.OVERTAKEN: lambda attempt: attempt.overtaken(HIGHER),
}
"""How an attempt comes to hear of each input; of the others its leader tells it with `take`."""


@pytest.mark.parametrize(("stage", "what"), STEPS, ids=lambda value: value.name)
def test_a_row_of_the_table(stage: Stage, what: Input) -> None:
    attempt, step = in_stage(stage), STEPS[stage, what]
    deed = TOLD[what](attempt) if what in TOLD else attempt.take(what)
    assert (attempt.stage, deed) == (step.stage, step.deed)


def test_what_is_in_no_row_changes_nothing() -> None:
    for stage in Stage:
        for what in Input:
            if (stage, what) not in STEPS:
                attempt = Attempt(VIEW, BALLOT, {}, 0)
                attempt.stage = stage
                assert attempt.take(what) is None
                assert attempt.stage is stage


def test_each_stage_is_reached_and_each_but_an_end_is_left() -> None:
    assert {step.stage for step in STEPS.values()} | {Stage.READY} == set(Stage)
    assert {stage for stage, _ in STEPS} == set(Stage) - set(ENDS)
    assert {what for _, what in STEPS} == set(Input)
    assert {step.deed for step in STEPS.values()} == set(Deed)


def test_the_picture_in_the_note_is_drawn_from_the_table() -> None:
    assert in_the_note("attempt", picture()), "UPDATE=1 draws it anew"


# -- answers that are late, repeated or not asked for


def test_an_answer_under_another_ballot_is_none() -> None:
    attempt = in_stage(Stage.COLLECT)
    assert attempt.on_collect_ack(B, held(Ballot(8, A)), 50) is None
    attempt = in_stage(Stage.PROPOSE)
    assert attempt.on_accept(B, Accept(Ballot(8, A)), 50) is None
    assert attempt.on_fetches(B, Fetches(Ballot(8, A)), 50) is None
    assert attempt.on_low(Low(Ballot(8, A), HIGHER)) is None
    assert attempt.overtaken(Ballot(8, B)) is None
    assert (attempt.stage, attempt.accepted, attempt.since) == (Stage.PROPOSE, {}, 30)


def test_an_answer_of_a_process_that_was_not_asked_is_none() -> None:
    attempt = in_stage(Stage.COLLECT)
    assert attempt.on_collect_ack(D, held(), 50) is None
    assert in_stage(Stage.PROPOSE).on_fetches(D, Fetches(BALLOT), 50) is None
    assert (attempt.answers, attempt.since) == ({}, 10)


def test_each_answer_renews_the_patience() -> None:
    attempt = in_stage(Stage.COLLECT)
    attempt.on_collect_ack(B, held(), 50)
    assert attempt.since == 50
    attempt = in_stage(Stage.PROPOSE)
    attempt.on_fetches(B, Fetches(BALLOT), 60)
    assert attempt.since == 60
    attempt.on_accept(B, Accept(BALLOT), 70)
    assert attempt.on_fetches(B, Fetches(BALLOT), 80) is None, "it has accepted"
    assert attempt.since == 70


# -- the proposal


def test_a_member_that_leaves_answers_and_does_not_go_on() -> None:
    attempt = in_stage(Stage.COLLECT)
    for member in (A, B, C):
        attempt.on_collect_ack(member, held(leaving=member == B), 20)
    proposal = attempt.proposes(A, (), 30)
    assert proposal.view == AgreedView(BALLOT, (A, C, D), ("a", "c", "d"), since=(0, 0, 9))
    assert proposal.going_on == (A, C)
    assert proposal.sides[0].cut == {A: 3, B: 1, C: 0}


def test_a_leader_that_leaves_takes_nobody_in() -> None:
    attempt = in_stage(Stage.COLLECT)
    for member in (A, B, C):
        attempt.on_collect_ack(member, held(), 20)
    assert attempt.proposes(A, (A,), 30).view.members == (B, C)


def test_if_all_leave_the_leader_goes_on() -> None:
    attempt = in_stage(Stage.COLLECT)
    for member in (A, B, C):
        attempt.on_collect_ack(member, held(leaving=True), 20)
    assert attempt.proposes(A, (), 30).view.members == (A, D)


# -- a majority decides


def bound(ballot: Ballot, accepted: Proposal | None = None) -> CollectAck:
    told = None if accepted is None else difference(accepted, VIEW.id)
    return CollectAck(ballot, [3, 1], leaving=False, accepted=told)


def accepted_under(ballot: Ballot, go_on: tuple[Address, ...]) -> Proposal:
    """A proposal with this ballot as its id."""
    side = Side(VIEW, go_on, {A: 3, B: 1, C: 0}, {A: B, B: B})
    view = AgreedView(ViewId.of(ballot), go_on, tuple(member.name.lower() for member in go_on), since=(0,) * len(go_on))
    return Proposal(ballot, view, (side,), ())


def test_a_majority_decides_and_nobody_waits_for_the_third() -> None:
    attempt = in_stage(Stage.PROPOSE, MAJORITY)
    assert attempt.on_accept(A, Accept(BALLOT), 40) is Deed.WAIT_ON
    assert attempt.on_accept(D, Accept(BALLOT), 40) is None, "a joiner was not asked, and does not vote"
    assert attempt.on_accept(C, Accept(BALLOT), 40) is Deed.INSTALL


def test_all_who_were_asked_answer_and_are_a_majority() -> None:
    for asked, enough in (((A, B), True), ((A,), False)):
        attempt = Attempt(VIEW, Ballot(8, A), {}, 0, MAJORITY)
        attempt.take(Input.WANTED)
        attempt.collects(BALLOT, asked, 10)
        deeds = [attempt.on_collect_ack(member, held(), 20) for member in asked]
        assert all(deed is Deed.WAIT_ON for deed in deeds[:-1])
        assert deeds[-1] is (Deed.PROPOSE if enough else Deed.WAIT_ON)


def test_an_accepted_proposal_is_taken_over_unchanged() -> None:
    """The one that was accepted under the highest ballot wins, not the one with the highest id."""
    older = accepted_under(Ballot(8, B), (A, B))
    newer = accepted_under(Ballot(8, C), (B, C))
    later = msgspec.structs.replace(older, ballot=Ballot(9, B))  # taken over once already
    for accepted, expected in (({B: older}, older), ({B: older, C: newer}, newer), ({B: newer, C: later}, later)):
        attempt = Attempt(VIEW, Ballot(9, C), {D: "d"}, 0, MAJORITY)
        attempt.take(Input.WANTED)
        ballot = Ballot(10, C)
        attempt.collects(ballot, (B, C), 10)
        for member in (B, C):
            attempt.on_collect_ack(member, bound(ballot, accepted.get(member)), 20)
        proposal = attempt.proposes(C, (), 30)
        assert (proposal.view, proposal.going_on) == (expected.view, expected.going_on)
        assert proposal.ballot == ballot
        (holder,) = set(proposal.sides[0].holders.values())
        assert accepted[holder] is expected, "it holds the cut"


def test_a_new_history_waits_until_the_view_whose_runs_are_lost_has_no_majority() -> None:
    """Former incarnations of A and B report a view with three joiners, which may have it.  A and the joiners are a
    majority of that view, so the answers of B and C are not enough."""
    joiners = {Address(name, "0" * 16): name for name in "XYZ"}
    side = Side(VIEW, (A, B, C), {A: 3, B: 1, C: 0}, {A: A, B: A})
    members = (A, B, C, *joiners)
    view = AgreedView(ViewId(8, A), members, tuple(member.name.lower() for member in members), since=(0,) * 6)
    decided = difference(Proposal(Ballot(8, A), view, (side,), ()), VIEW.id)
    ballot = Ballot(10, C)
    attempt = Attempt(VIEW, ballot, {}, 0, MAJORITY)
    attempt.take(Input.WANTED)
    attempt.collects(ballot, (A, B, C), 10)
    for member in (A, B):
        attempt.on_collect_ack(member, CollectAck(ballot, [], leaving=True, accepted=decided), 20)
    assert attempt.on_collect_ack(C, CollectAck(ballot, [2, 1], leaving=False), 20) is Deed.PROPOSE
    proposal = attempt.proposes(C, (), 30)
    assert proposal.view.members == (C,) and proposal.view.history != VIEW.history
    assert [attempt.on_accept(member, Accept(ballot), 40) for member in (C, B)] == [Deed.WAIT_ON, Deed.WAIT_ON]
    assert attempt.on_accept(A, Accept(ballot), 40) is Deed.INSTALL


def test_a_decided_view_that_a_member_gave_up_may_have_a_majority_without_it() -> None:
    """C gave up a view of A, B, C and D.  An operator vouches for A: B and D are a majority of the others."""
    members = (A, B, C, D)
    lost = AgreedView(ViewId(8, A), members, ("a", "b", "c", "d"))
    for vouched, decides in (((A,), False), ((A, B), True)):
        attempt = Attempt(VIEW, Ballot(9, C), {}, 0, MAJORITY, vouched, lost)
        attempt.take(Input.WANTED)
        asked = tuple(member for member in (B, C) if member not in vouched)
        attempt.collects(BALLOT, asked, 10)
        for member in asked:
            attempt.on_collect_ack(member, held(), 20)
        attempt.proposes(C, (), 30)
        assert attempt.on_accept(C, Accept(BALLOT), 40) is (Deed.INSTALL if decides else Deed.WAIT_ON)


def test_joiners_are_at_most_as_many_as_go_on() -> None:
    joiners = {Address(name, "0" * 16): name for name in "WXYZ"}
    for quorum, count in ((MAJORITY, 3), (EVERYBODY, 4)):
        attempt = Attempt(VIEW, Ballot(8, A), joiners, 0, quorum)
        attempt.take(Input.WANTED)
        attempt.collects(BALLOT, (A, B, C), 10)
        for member in (A, B, C):
            attempt.on_collect_ack(member, held(), 20)
        assert len(attempt.proposes(A, (), 30).view.members) == 3 + count


def test_a_vouched_member_is_in_no_further_view() -> None:
    """A process offers to answer for it and has not answered yet: it was asked, and nobody waits for it."""
    attempt = Attempt(VIEW, Ballot(8, A), {}, 0, MAJORITY, (C,))
    attempt.take(Input.WANTED)
    attempt.collects(BALLOT, (A, B, C), 10)
    assert [attempt.on_collect_ack(member, held(), 20) for member in (A, B)][-1] is Deed.PROPOSE
    assert attempt.proposes(A, (), 30).view.members == (A, B)
    assert attempt.silent() == [A, B, C]
