"""The pure decisions of MERGE2, and random maps of views, which all end in one view."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.events import Gap, NewView
from pygroups.core.layer import Env
from pygroups.core.limits import Config
from pygroups.core.merge_events import MergeWanted
from pygroups.core.run import Run
from pygroups.core.standing import WaitsForState
from pygroups.core.top import Top
from pygroups.core.view import AgreedView, Ballot, Lack, MergeId, ViewId
from pygroups.layers.gms.decisions.attempt import Deed, Stage
from pygroups.layers.gms.decisions.merge_attempt import TRIES_MAX, MergeAttempt, merged
from pygroups.layers.gms.heads import Accept, CollectAck
from pygroups.layers.merge2 import rules
from pygroups.layers.merge2.rules import MergeAnswer
from pygroups.layers.sequencer import Data as SequencerData
from pygroups.layers.sequencer import Sequencer
from tests.merging import INTERVAL, Map, mapped, whole

A, B, C, D, E = (Address(name, "0" * 16) for name in "ABCDE")
A2 = Address("A", "1" * 16)
EVERYBODY = (A, B, C, D, E)


def view(number: int, *members: Address) -> AgreedView:
    return AgreedView(ViewId(number, members[0]), members, tuple(member.name for member in members))


AB, CD, JUST_E = view(5, A, B), view(7, C, D), view(6, E)


def says(of: AgreedView, hears: tuple[Address, ...] = EVERYBODY) -> MergeAnswer:
    return MergeAnswer(of, hears)


def test_the_acting_coordinator_is_the_first_that_is_there() -> None:
    assert rules.acting_coordinator(AB, {A: None, B: None}) == A
    assert rules.acting_coordinator(AB, {B: None}) == B
    assert rules.acting_coordinator(AB, {}) is None


def test_the_lowest_acting_coordinator_leads() -> None:
    assert rules.leader({C: CD, D: CD, B: AB}) == B
    assert rules.leader({C: CD, D: CD, A: AB, B: AB}) == A
    assert rules.leader({A: AB, B: AB}) is None  # one view: nothing to merge (MRG-I8)
    assert rules.leader({C: view(9, A, C, B), D: view(8, B, A, C, D)}) == C  # MRG-23: A and B are in another view


def test_all_that_hear_each_other_take_part() -> None:
    answers = {A: says(AB), B: says(AB), C: says(CD), D: says(CD), E: says(JUST_E)}
    assert rules.take_part(A, answers) == ((AB, (A, B)), (CD, (C, D)), (JUST_E, (E,)))


def test_a_member_that_refuses_is_left_out() -> None:
    """MRG-07: B and D are busy."""
    answers: dict[Address, MergeAnswer | None] = {A: says(AB), B: None, C: says(CD), D: None}
    assert rules.take_part(A, answers) == ((AB, (A,)), (CD, (C,)))


def test_a_member_that_was_not_asked_keeps_its_view_out() -> None:
    """A and D joined B after the leader had made its list: a merge without B would take them out of a working view."""
    just_c, abd = view(3, C), view(6, B, A, D)
    answers = {C: says(just_c, (C, A, D)), A: says(abd, (A, B, D, C)), D: says(abd, (A, B, D, C))}
    assert rules.take_part(C, answers) == ()


def test_a_view_that_is_about_to_change_stays_out() -> None:
    answers: dict[Address, MergeAnswer | None] = {A: says(AB), B: says(AB), C: says(CD), D: None, E: says(JUST_E)}
    assert rules.take_part(A, answers, {D: None}) == ((AB, (A, B)), (JUST_E, (E,)))
    assert rules.take_part(A, answers, {B: None}) == ()


def test_a_view_with_a_silent_member_that_is_heard_stays_out() -> None:
    """MRG-I9: a merge takes no member out of a view that works."""
    answers = {A: says(AB), B: says(AB), C: says(CD), E: says(JUST_E)}
    assert rules.take_part(A, answers) == ((AB, (A, B)), (JUST_E, (E,)))
    answers[C] = says(CD, (A, B, C, E))  # C does not hear D either
    assert rules.take_part(A, answers) == ((AB, (A, B)), (CD, (C,)), (JUST_E, (E,)))
    del answers[B]
    assert rules.take_part(A, answers) == ()  # it is the leader's own view


@pytest.mark.parametrize("deaf", [(A, C), (C, A)])
def test_two_views_with_members_that_do_not_hear_each_other_stay_apart(deaf: tuple[Address, Address]) -> None:
    one, other = deaf
    answers = {A: says(AB), B: says(AB), C: says(CD), D: says(CD), E: says(JUST_E)}
    answers[one] = says(answers[one].view, tuple(member for member in EVERYBODY if member != other))
    assert rules.take_part(A, answers) == ((AB, (A, B)), (JUST_E, (E,)))


def test_two_lives_of_one_name_stay_apart() -> None:
    answers = {A: says(AB, (*EVERYBODY, A2)), B: says(AB, (*EVERYBODY, A2)), A2: says(view(3, A2))}
    assert rules.take_part(A, answers) == ()


def test_a_process_in_a_view_without_itself_is_ignored() -> None:
    assert rules.take_part(A, {A: says(AB), B: says(AB), C: says(AB)}) == ()


# -- the attempt


def attempt() -> MergeAttempt:
    wanted = MergeWanted(MergeId(1, A), 7, ((AB, (A, B)), (CD, (C, D))))
    return MergeAttempt(AB, wanted, Ballot(8, A), 0)


def held(marks: dict[Address, int], held: list[int] | None = None, **other: object) -> CollectAck:
    return CollectAck(Ballot(8, A), held or [], False, True, True, marks, **other)  # type: ignore[arg-type]


def test_a_merge_of_two_views() -> None:
    """DIG-01: per origin the highest mark of all, of origins in no view too."""
    one = attempt()
    answers = {
        A: held({A: 499, B: 26, E: 9}, [3, 1]),
        B: held({A: 500, B: 26, E: 9}, [4, 1]),
        C: held({C: 33, A: 26}, [2]),
        D: held({C: 35, A: 26, E: 12}, [3]),
    }
    deeds = [one.on_collect_ack(member, answer, 10) for member, answer in answers.items()]
    assert deeds == [Deed.WAIT_ON] * 3 + [Deed.PROPOSE]
    proposal = one.proposes(A, (), 20)
    assert proposal.view.members == (A, B, C, D)
    assert proposal.view.id == ViewId(8, A)
    assert [(side.old, side.members) for side in proposal.sides] == [(AB.id, (A, B)), (CD.id, (C, D))]
    assert proposal.sides[0].cut == {A: 4, B: 1}
    assert proposal.sides[0].holders == {A: B, B: A}
    assert proposal.sides[1].cut == {C: 3, D: 0} and proposal.sides[1].holders == {C: D, D: D}
    assert proposal.digest == {A: (500, 0), B: (26, 0), C: (35, 1), E: (12, 1)}
    assert proposal.primary
    assert not proposal.sides[0].marks, "nobody waits for a state"
    deeds = [one.on_accept(member, Accept(Ballot(8, A)), 30) for member in (A, B, C, D)]
    assert deeds[-1] is Deed.INSTALL


def test_the_marks_of_the_sides_go_along_while_a_member_waits_for_a_state() -> None:
    waits = CollectAck(Ballot(8, A), [], False, WaitsForState(C, CD.id), True, {C: 4})
    proposal = merged(Ballot(8, A), ((AB, (A,)), (CD, (D,))), {A: held({A: 2}), D: waits})
    assert [side.marks for side in proposal.sides] == [{A: 2}, {C: 4}]


def test_what_members_never_delivered_goes_along_where_marks_differ() -> None:
    """C announced 26 to 30 of A in an earlier merge, and D joined after 33 of A; of B, nobody announces a gap."""
    answers = {
        A: held({A: 28, B: 26}, missing={B: ((1, 9),)}),
        C: held({A: 40, B: 26}, missing={A: ((26, 31),), B: ((1, 20),)}),
        D: held({A: 40, B: 26}, missing={A: ((1, 34),)}),
    }
    proposal = merged(Ballot(8, A), ((AB, (A,)), (CD, (C, D))), answers)
    assert proposal.digest == {A: (40, 1), B: (26, 0)}
    assert proposal.lacks == {A: (Lack(28, 31, (C,)), Lack(28, 34, (D,)))}


def test_the_silent_and_the_refusing_are_left_out() -> None:
    one = attempt()
    one.on_collect_ack(A, held({}), 10)
    one.on_collect_ack(C, held({}), 10)
    assert one.leave_out((D,)) is None
    assert one.late() is Deed.PROPOSE
    assert one.asked == (A, C)
    assert one.proposes(A, (), 20).view.members == (A, C)


def test_fewer_than_two_views_are_no_merge() -> None:
    one = attempt()
    one.on_collect_ack(A, held({}), 10)
    one.on_collect_ack(B, held({}), 10)
    assert one.late() is Deed.AGAIN_LATER
    assert one.stage is Stage.FAILED
    assert one.again() is None


def test_again_with_those_that_accepted() -> None:
    one = attempt()
    for member in (A, B, C, D):
        one.on_collect_ack(member, held({}), 10)
    one.proposes(A, (), 20)
    for member in (A, B, D):
        one.on_accept(member, Accept(Ballot(8, A)), 30)
    assert one.late() is Deed.AGAIN_LATER
    again = one.again()
    assert again is not None
    assert again.sides == ((AB, (A, B)), (CD, (D,)))
    last = MergeAttempt(AB, one.wanted, Ballot(9, A), 40, TRIES_MAX)
    assert last.again() is None


# -- own messages that only the other side delivered


def own(first: int, count: int) -> Run:
    return Run(A, None, (), A, first, 0, count, bytes(10 * count))


def ordered(first: int, count: int) -> Run:
    """The same from B, the coordinator of the merged view."""
    return Run(B, None, (SequencerData(),), A, first, 0, count, bytes(10 * count), B, 1)


def merged_view(first: int, count: int) -> NewView:
    gap = Gap(A, first, count, (C,))
    return NewView(view(8, B, A, C), AB.id, (B, A), (C,), (), True, None, gaps=(gap,))


def test_mrg_31_sequencer_forwards_no_message_that_the_other_side_delivered() -> None:
    """Messages 1 to 3 were delivered there, and 4 was not: it is forwarded again, and the table ends empty."""
    layer = Sequencer(Env(A, 0, Random(1), Config()))
    layer.up_event(NewView(view(5, B, A), None, (A,), (), (), True, None))
    for run in (own(1, 2), own(3, 1), own(4, 1)):
        layer.down(run)
    layer.below.clear()
    layer.up_event(merged_view(1, 3))
    assert [run.first for run in layer.below if isinstance(run, Run)] == [4]
    layer.up(ordered(4, 1))
    assert layer.gauges()["forward_table"] == 0
    layer.up(ordered(1, 2))
    assert layer.env.counters["drop ordered twice"] == 1


def test_mrg_31_the_top_announces_own_messages_and_gives_their_window_back() -> None:
    env = Env(A, 0, Random(1), Config(), journaling=True)
    top = Top(env)
    top.up_event(NewView(AB, None, (A,), (), (), True, None))
    for payload in (b"one", b"two"):
        top.accept(payload)
        top.end_turn()
    top.above.clear()
    sizes = [len(run.body) for run in top.flight]
    top.up_event(merged_view(1, 1))
    _, gap = top.above
    assert isinstance(gap, Gap) and (gap.first, gap.count) == (1, 1)
    assert gap.size == max(sizes[0], env.config.run_bytes_min)
    assert [run.first for run in top.flight] == [2]
    assert top.unknown() == range(2, 3)
    assert [kind for kind, _, _ in env.records][-2:] == ["view", "gap"]


# -- random maps


@st.composite
def maps(draw: st.DrawFn) -> Map:
    """Any view for each of some members: each is in its own view, and equal views have one id.  A view may name up to
    two processes that have ended, also as its coordinator."""
    named = "ABCDEFGH"[: draw(st.integers(2, 8))]
    ended = draw(st.lists(st.sampled_from(named), unique=True, max_size=min(2, len(named) - 2)))
    names = [name for name in named if name not in ended]
    ids: dict[str, int] = {}
    views: dict[str, tuple[int, str]] = {}
    for name in names:
        others = draw(st.lists(st.sampled_from(named), unique=True, max_size=len(named) - 1))
        members = draw(st.permutations([name, *(other for other in others if other != name)]))
        same = draw(st.sampled_from(["own", *views]))
        listed = " ".join(members)
        if same != "own" and name in views[same][1].split():
            listed = views[same][1]
        views[name] = (ids.setdefault(listed, len(ids) + 1), listed)
    return views


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(maps(), st.integers(0, 1 << 16), st.sampled_from(["total", "fifo"]))
def test_every_map_of_views_ends_in_one_view(views: Map, seed: int, profile: str) -> None:
    """MRG-I1 and MRG-I4: one view within 20 intervals, after at most 4 starts of a merge."""
    with mapped(views, profile, seed=seed) as group:
        for member in group.members:
            member.sends(2, every=0.1)
        group.until(lambda: whole(group), 20 * INTERVAL, step=0.01)
        assert sum(member.counters["merges begun"] for member in group.members) <= 4
        group.settles()
