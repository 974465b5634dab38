"""MERGE2 and pauses: a process that was paused, and the pause of a leader between two merges."""

from __future__ import annotations

import random

import pytest

from pygroups.core.address import Address
from pygroups.core.events import NewView
from pygroups.core.fingerprint import digest
from pygroups.core.layer import Env
from pygroups.core.limits import SECOND, Config
from pygroups.core.merge_events import MergeWanted, Occupied
from pygroups.core.run import Run
from pygroups.core.view import AgreedView, MergeId, Subgroup, ViewId
from pygroups.layers.merge2.heads import FindReq, FindRsp, MergeOver, MergeReq, MergeRsp, Sighted
from pygroups.layers.merge2.layer import Merge2, Round
from pygroups.layers.merge2.rules import MergeAnswer, hears_more

A, B, C, D = MEMBERS = tuple(Address(name, "0" * 16) for name in "ABCD")


def view(number: int, *members: Address) -> AgreedView:
    return AgreedView(ViewId(number, members[0]), members, tuple(member.name for member in members))


ALONE, OTHERS = view(5, A), view(7, B, C, D)


def member() -> Merge2:
    """A, alone in its view.  It knows B, C and D, which are in another one."""
    merge2 = Merge2(Env(A, 0, random.Random(1), Config()))
    merge2.down_event(Occupied(False, 5))
    merge2.down_event(NewView(ALONE, None, (), (A,), (), True, None))
    merge2.finding.learn_views([OTHERS])
    return merge2


def sent(merge2: Merge2) -> list[Run]:
    runs = [item for item in merge2.below if isinstance(item, Run)]
    merge2.above, merge2.below = [], []
    return runs


def asks(merge2: Merge2, peer: Address, asked_at: int = 1) -> list[FindRsp]:
    """`peer` asks for the view; the answers."""
    question = FindReq(asked_at, peer.name, digest(merge2.env.fingerprint), OTHERS.id)
    merge2.up(Run(peer, A, (question,)))
    return [run.head for run in sent(merge2) if isinstance(run.head, FindRsp)]


def answers(merge2: Merge2, peer: Address) -> None:
    """`peer` answers a question of now."""
    merge2.finding.ask([peer])
    merge2.up(Run(peer, A, (FindRsp(merge2.env.now, None, OTHERS),)))


def later(merge2: Merge2, seconds: float) -> list[Run]:
    """The messages to others in this time."""
    end, runs = merge2.env.now + int(seconds * SECOND), []
    while merge2.wake <= end:
        merge2.env.now = max(merge2.wake, merge2.env.now)
        merge2.timer()
        runs += sent(merge2)
    merge2.env.now = end
    return runs


# -- this process was paused


def test_questions_that_lay_in_the_sockets_during_a_pause_are_not_answered() -> None:
    """The answer would tell the asker a round trip as long as the pause, and the asker would have as much patience."""
    merge2 = member()
    assert len(asks(merge2, B)) == 1
    merge2.env.now += 20 * SECOND
    merge2.after_pause()
    assert asks(merge2, B) == []
    assert merge2.env.drops["question soon after a pause"] == 1
    merge2.env.now += merge2.env.config.merge_interval
    assert len(asks(merge2, B)) == 1


def test_a_merge_that_lay_in_the_sockets_during_a_pause_reserves_nothing() -> None:
    """Its leader may have cancelled it long ago.  A leader that still waits asks again."""
    merge2 = member()
    merge2.after_pause()
    request = MergeReq(MergeId(1, B), (ALONE, OTHERS))
    merge2.up(Run(B, A, (request,)))
    assert (merge2.reserved, sent(merge2)) == (None, [])
    merge2.env.now += merge2.env.config.merge_interval
    merge2.up(Run(B, A, (request,)))
    assert merge2.reserved == request.merge


def test_an_asker_that_was_not_answered_is_known_to_be_there() -> None:
    merge2 = member()
    merge2.finding.known[B].unanswered = 100
    merge2.after_pause()
    merge2.up(Run(B, A, (FindReq(1, "B", digest(merge2.env.fingerprint), OTHERS.id),)))
    assert [type(run.head) for run in sent(merge2) if run.dest == B] == [FindReq]


def test_answers_that_lay_in_the_sockets_during_a_pause_measure_nothing() -> None:
    merge2 = member()
    merge2.finding.ask([B])
    asked_at, merge2.env.now = merge2.env.now, merge2.env.now + 20 * SECOND
    merge2.after_pause()
    merge2.up(Run(B, A, (FindRsp(asked_at, None, OTHERS),)))
    assert merge2.finding.longest_round_trip() == 0
    assert merge2.env.drops["answer to no question"] == 1


# -- the pause of a leader between two merges


def cancelled(merge2: Merge2) -> None:
    """Seven merges of A were cancelled.  B hears A and C, A hears B."""
    merge2.failures = 6
    while merge2.round is None:
        answers(merge2, B)
        later(merge2, 0.1)
    merge2.up(Run(B, A, (MergeRsp(merge2.round.merge, None, OTHERS, hears=(A, B, C)),)))
    while merge2.round is not None:
        answers(merge2, B)
        later(merge2, 0.1)
    assert merge2.failures == 7
    assert merge2.pause_until > merge2.env.now + 4 * SECOND


def leads(merge2: Merge2) -> bool:
    """Whether A asks for a merge within two intervals in which it hears B and C."""
    for _ in range(25):
        if any(isinstance(run.head, MergeReq) for run in later(merge2, 0.1)):
            return True
        answers(merge2, B)
    return False


def test_a_pause_ends_when_the_leader_hears_a_process_that_it_did_not_hear() -> None:
    merge2 = member()
    cancelled(merge2)
    answers(merge2, C)
    assert merge2.pause_until == merge2.env.now
    assert leads(merge2)


def test_a_pause_does_not_end_when_the_same_processes_answer() -> None:
    merge2 = member()
    cancelled(merge2)
    assert not leads(merge2)


def test_a_pause_ends_once() -> None:
    """The links of C come and go.  The pause after the next merge has its whole length again."""
    merge2 = member()
    cancelled(merge2)
    answers(merge2, C)
    merge2.pause_until = until = merge2.env.now + 10 * SECOND
    answers(merge2, C)
    assert merge2.pause_until == until


@pytest.mark.parametrize(("contacts", "ends"), [({C: "C"}, False), ({C: "C", D: "D"}, True), ({}, False)])
def test_a_pause_ends_when_another_member_hears_more(contacts: dict[Address, str], ends: bool) -> None:
    """B heard C and did not hear D, and reports the processes that it hears now."""
    merge2 = member()
    cancelled(merge2)
    merge2.up(Run(B, A, (Sighted(contacts),)))
    assert (merge2.pause_until == merge2.env.now) is ends


def test_a_merge_that_goes_well_leaves_nothing_behind() -> None:
    merge2 = member()
    cancelled(merge2)
    sides = (Subgroup(ALONE.id, (A,)), Subgroup(OTHERS.id, (B, C, D)))
    merge2.down_event(NewView(view(9, *MEMBERS), ALONE.id, (A,), (), (), True, None, subgroups=sides))
    assert (merge2.failures, merge2.pause_until, merge2.cancelled) == (0, 0, None)


def test_hears_more() -> None:
    answer = MergeAnswer(OTHERS, (A, C))
    assert hears_more(answer, (A, B, C, D), (D,))
    assert not hears_more(answer, (A, C), (D,)), "D was not asked"
    assert not hears_more(answer, (A, B, C, D), (A, C))
    assert not hears_more(None, (A, D), (D,)), "the process gave no answer"


# -- the end of a merge that was cancelled


def reserved_for(merge2: Merge2, merge: MergeId) -> None:
    merge2.up(Run(B, A, (MergeReq(merge, (ALONE, OTHERS)),)))
    assert merge2.reserved == merge


def test_the_leader_tells_those_that_take_part_and_those_that_did_not_answer() -> None:
    """A hears B, and D refused: B and C may be reserved."""
    merge2 = member()
    while merge2.round is None:
        answers(merge2, B)
        later(merge2, 0.1)
    round, told = merge2.round, list[Run]()
    merge2.up(Run(B, A, (MergeRsp(round.merge, None, OTHERS, hears=(A, B, C)),)))
    merge2.up(Run(D, A, (MergeRsp(round.merge, None, None, changes=True),)))
    while merge2.round is not None:
        told = later(merge2, 0.1)
    assert {run.dest for run in told if isinstance(run.head, MergeOver)} == {B, C}
    merge2.up(Run(C, A, (MergeRsp(round.merge, None, OTHERS),)))
    assert [run.head for run in sent(merge2)] == [MergeOver(round.merge)], "the news to C was lost, or came early"
    merge2.up(Run(D, A, (MergeRsp(round.merge, None, None),)))
    assert sent(merge2) == [], "who refuses is not reserved"


def test_an_answer_to_the_merge_that_gms_carries_out_does_not_end_it() -> None:
    merge2 = member()
    round = asked_all(merge2, c_changes=False)
    while merge2.round is not None:
        merge2.env.now = merge2.wake
        merge2.timer()
    sent(merge2)
    merge2.up(Run(C, A, (MergeRsp(round.merge, None, OTHERS, hears=MEMBERS),)))
    assert not any(isinstance(run.head, MergeOver) for run in sent(merge2))


@pytest.mark.parametrize(
    ("src", "over", "ends"), [(B, MergeId(2, B), True), (C, MergeId(2, B), False), (B, MergeId(1, B), False)]
)
def test_a_reservation_ends_with_its_merge(src: Address, over: MergeId, ends: bool) -> None:
    merge2 = member()
    reserved_for(merge2, MergeId(2, B))
    merge2.up(Run(src, A, (MergeOver(over),)))
    assert (merge2.reserved is None) is ends
    assert (merge2.requested is None) is ends, "nobody waits for its answer"
    assert merge2.env.drops.get("end of another merge", 0) == (not ends)


def test_a_view_change_under_way_keeps_its_reservation_until_it_is_over() -> None:
    """GMS may be bound to this merge."""
    merge2 = member()
    reserved_for(merge2, MergeId(2, B))
    merge2.down_event(Occupied(True, 5))
    merge2.up(Run(B, A, (MergeOver(MergeId(2, B)),)))
    assert merge2.reserved == MergeId(2, B)
    merge2.down_event(Occupied(False, 5))
    later(merge2, 2)
    assert merge2.reserved is None


# -- a process that is reserved for another merge


def asked_all(merge2: Merge2, *, c_changes: bool) -> Round:
    """A asks B, C and D to merge.  B and D take part, and C refuses."""
    while merge2.round is None:
        for peer in (B, C, D):
            answers(merge2, peer)
        later(merge2, 0.1)
    round = merge2.round
    for peer, view in ((B, OTHERS), (C, None), (D, OTHERS)):
        changes = c_changes and peer == C
        merge2.up(Run(peer, A, (MergeRsp(round.merge, None, view, hears=MEMBERS, changes=changes),)))
    return round


def wanted(merge2: Merge2) -> list[tuple[Address, ...]]:
    """The members of each side of the merge that GMS shall carry out."""
    [merge] = [item for item in merge2.above if isinstance(item, MergeWanted)]
    return [here for _, here in merge.sides]


def test_a_process_that_is_reserved_for_another_merge_is_asked_again() -> None:
    """The other merge may be cancelled.  A merge without C would change C's view twice."""
    merge2 = member()
    round = asked_all(merge2, c_changes=False)
    assert [run.dest for run in later(merge2, 0.3) if isinstance(run.head, MergeReq)] == [C]
    assert merge2.round is round
    merge2.up(Run(C, A, (MergeRsp(round.merge, None, OTHERS, hears=MEMBERS),)))
    assert wanted(merge2) == [(A,), (B, C, D)]


def test_a_process_that_stays_reserved_is_left_out() -> None:
    """MRG-07."""
    merge2 = member()
    asked_all(merge2, c_changes=False)
    while merge2.round is not None:
        merge2.env.now = merge2.wake
        merge2.timer()
    assert wanted(merge2) == [(A,), (B, D)]


def test_a_process_whose_view_changes_is_not_waited_for() -> None:
    merge2 = member()
    asked_all(merge2, c_changes=True)
    assert (merge2.round, merge2.failures) == (None, 1)
