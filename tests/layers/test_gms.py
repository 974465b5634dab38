"""GMS: its pure decisions as tables, and what a script as text cannot say.  The conversations stand in text/gms."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pygroups.core import driver_events, events
from pygroups.core.address import Address
from pygroups.core.layer import Env
from pygroups.core.limits import MEMBERS_MAX, SECOND, Config
from pygroups.core.run import Run
from pygroups.core.state_events import ViewWanted
from pygroups.core.suspicion_events import HeartbeatOf, LifeVerified, Suspect, Unsuspect, VerifyLife
from pygroups.core.view import AgreedView, Ballot, ViewId
from pygroups.layers.gms.decisions import decide
from pygroups.layers.gms.decisions.proposal import Proposal, Side, difference, proposal_of
from pygroups.layers.gms.decisions.suspicion import Suspicion
from pygroups.layers.gms.heads import (
    Accuse,
    Collect,
    Done,
    Elsewhere,
    Excluded,
    Install,
    InstallAck,
    Join,
    LeaveReq,
    Propose,
    Ready,
    ReadyRsp,
    Refuse,
    Stuck,
    ViewReq,
)
from pygroups.layers.gms.layer import Gms
from pygroups.layers.gms.member.accusing import hearers
from pygroups.layers.gms.member.other_views import cannot_follow

ENDED, SILENT, UNHEARD = Suspicion.ENDED, Suspicion.SILENT, Suspicion.UNHEARD

A, B, C, D = (Address(name, "0" * 16) for name in "ABCD")
VIEW = AgreedView(ViewId(7, A), (A, B, C), ("a", "b", "c"))
OF_A = AgreedView(ViewId(1, A), (A,), ("a",))

positions = st.lists(st.integers(0, 9), max_size=3)


@pytest.mark.parametrize(
    ("suspects", "leads"),
    [([], A), ([A], B), ([B], A), ([A, B], C), ([A, B, C], None)],
)
def test_the_first_member_that_is_not_suspected_leads(suspects: list[Address], leads: Address | None) -> None:
    assert decide.leader(VIEW, suspects) == leads


@given(st.dictionaries(st.sampled_from([A, B, C]), positions, min_size=1))
def test_the_cut_is_the_furthest_that_one_of_those_asked_holds(held: dict[Address, list[int]]) -> None:
    cut, holders = decide.cut(held, VIEW.members, B)
    assert list(cut) == list(VIEW.members)
    whole = {member: positions + [0] * (3 - len(positions)) for member, positions in held.items()}
    for rank, (stream, end) in enumerate(cut.items()):
        assert end == max(positions[rank] for positions in whole.values())
        candidates = [member for member in (B, A, C) if member in whole and whole[member][rank] == end]
        assert holders[stream] == (candidates[0] if end else stream), "on a tie the leader, then the first in the view"


def test_the_next_view_has_those_who_go_on_in_their_old_order_then_joiners_by_address() -> None:
    after = decide.next_view(VIEW, Ballot(8, B), (C, B), {D: "d", A: "new"})
    assert after == AgreedView(ViewId(8, B), (C, B, A, D), ("c", "b", "new", "d"), since=(0, 0, 8, 8))


def test_a_ballot_is_above_the_view_and_everything_heard_of() -> None:
    assert decide.next_number(VIEW, 3) == 8
    assert decide.next_number(VIEW, 12) == 13


@pytest.mark.parametrize(
    ("made", "start"),
    [([], 120), ([50], 120), ([50, 60], 50 + SECOND), ([10, 50, 60], 50 + SECOND)],
)
def test_joins_wait_for_their_batch_and_for_the_rate_of_views(made: list[int], start: int) -> None:
    assert decide.when_to_start(100, 20, made, 2) == start


def leader_of_two() -> Gms:
    """A, which has just decided on a view with B, and B has it."""
    env = Env(A, 0, random.Random(1), Config())
    env.contact = "a"
    gms = Gms(env)
    gms.down_event(events.Join())
    gms.up_event(driver_events.Found({}, may_found=True))
    view = AgreedView(ViewId(2, A), (A, B), ("a", "b"))
    assert gms.view is not None
    gms.install(Proposal(view.id, view, (Side(gms.view, (A,), {A: 0}, {}),), ()), None)
    gms.down_event(events.Installed(view.id, {}))
    gms.up(Run(B, A, (InstallAck(view.id),)))
    gms.above, gms.below = [], []
    return gms


def installs(proposal: Proposal, starts: dict[Address, int] | None) -> Install:
    """The message to a joiner, or to a member of the first earlier view."""
    return Install(difference(proposal, None if starts is not None else proposal.sides[0].old), starts)


def told(gms: Gms) -> list[tuple[Address | None, object]]:
    """What `gms` has sent since it was asked last."""
    sent = [(item.dest, item.head) for item in gms.below if isinstance(item, Run)]
    gms.below = []
    return sent


SECOND_B = Address("B", "f" * 16)


def test_9_a_living_members_name_is_refused() -> None:
    """Scenario 9, first half."""
    gms = leader_of_two()
    gms.up(Run(SECOND_B, A, (Join(SECOND_B, "there", ""),)))
    assert VerifyLife(B) in gms.below
    gms.below = []
    gms.up_event(LifeVerified(B))
    assert gms.below == [VerifyLife(B)], "it may have answered a question of before its end: asked once more"
    gms.below = []
    gms.up_event(LifeVerified(B))
    assert [(dest, type(head)) for dest, head in told(gms)] == [(SECOND_B, Refuse)]


OTHERS = tuple(Address(name, "0" * 16) for name in "STUVW")  # members of a group with other settings


def joiner_among_others() -> Gms:
    """D, which has found a group with other settings; each member of that group refuses D."""
    gms = Gms(Env(D, 0, random.Random(1), Config()))
    gms.down_event(events.Join())
    told(gms)
    gms.up_event(driver_events.Found(dict.fromkeys(OTHERS, "there"), may_found=False))
    asked = [dest for dest, _ in told(gms)]
    assert len(asked) == 3
    for other in asked:  # the loop extends this list
        assert other is not None
        gms.up(Run(other, D, (Refuse("refused", f"not as {other.name}"),)))
        asked += [dest for dest, _ in told(gms)]
    assert sorted(str(other) for other in asked) == [str(other) for other in OTHERS], "each is asked once"
    assert gms.above == [], "another group may not have been found yet"
    return gms


def refusals(gms: Gms) -> list[str]:
    return [event.reason for event in gms.above if isinstance(event, events.Excluded)]


def test_a_refused_joiner_asks_the_members_of_another_group_only() -> None:
    gms = joiner_among_others()
    for _ in range(3):
        gms.up_event(driver_events.Found({**dict.fromkeys(OTHERS, "there"), A: "a"}, may_found=False))
        assert [dest for dest, _ in told(gms)] == [A]
        gms.timer()
    assert refusals(gms) == []


def test_a_joiner_that_found_only_groups_with_other_settings_ends_refused_at_its_next_search() -> None:
    gms = joiner_among_others()
    gms.timer()
    assert refusals(gms) == ["refused"]


def test_a_refused_joiner_founds_no_group() -> None:
    gms = joiner_among_others()
    gms.up_event(driver_events.Found({}, may_found=True))
    assert refusals(gms) == ["refused"] and gms.view is None


def test_a_joiner_that_finds_a_member_of_another_version_joins_the_group_that_it_can_read() -> None:
    gms = Gms(Env(D, 0, random.Random(1), Config()))
    gms.down_event(events.Join())
    gms.up_event(driver_events.Found({A: "a", B: "b"}, may_found=False))
    told(gms)
    gms.up_event(driver_events.Incompatible(A, "versions"))
    gms.timer()
    gms.up_event(driver_events.Found({A: "a", B: "b"}, may_found=False))
    assert [dest for dest, _ in told(gms)] == [B] and refusals(gms) == []


def test_each_member_refuses_a_joiner_with_other_settings() -> None:
    """A member that does not lead answers too: else the joiner would not learn that this member is in that group."""
    gms = member_of_three(B)
    gms.up(Run(D, B, (Join(D, "there", "another profile"),)))
    assert [(dest, type(head)) for dest, head in told(gms)] == [(D, Refuse)]


def test_a_sign_of_life_from_before_the_end_refuses_nobody() -> None:
    gms = leader_of_two()
    gms.up(Run(SECOND_B, A, (Join(SECOND_B, "there", ""),)))
    gms.up_event(LifeVerified(B))
    told(gms)
    gms.up_event(Suspect(B, proven=True))
    ((_, ready), (to, _)) = [(dest, head) for dest, head in told(gms) if isinstance(head, Ready)]
    assert isinstance(ready, Ready) and to == SECOND_B


def test_9_a_dead_members_name_is_taken_over_in_the_same_view() -> None:
    """Scenario 9, second half: one attempt excludes the former life and takes the new one in."""
    gms = leader_of_two()
    gms.up(Run(SECOND_B, A, (Join(SECOND_B, "there", ""),)))
    gms.up_event(Suspect(B, proven=True))
    ((_, ready), (to, _)) = [(dest, head) for dest, head in told(gms) if isinstance(head, Ready)]
    assert isinstance(ready, Ready) and to == SECOND_B
    gms.up(Run(SECOND_B, A, (ReadyRsp(ready.ballot, None, None, False),)))
    gms.down_event(events.Bound(Ballot(3, A), {A: 4, B: 2}))
    assert gms.binding.proposal is not None
    assert gms.binding.proposal.view.members == (A, SECOND_B)


def test_a_joiner_that_does_not_answer_waits_and_delays_a_crash_only_for_a_moment() -> None:
    gms = leader_of_two()
    gms.up(Run(C, A, (Join(C, "there", ""),)))
    gms.up_event(Suspect(B, proven=True))
    gms.env.now += gms.env.config.batch
    gms.timer()
    gms.down_event(events.Bound(Ballot(3, A), {A: 0, B: 0}))
    assert gms.binding.proposal is not None
    assert gms.binding.proposal.view.members == (A,)


def test_a_joiner_hands_on_nothing_and_a_member_hands_a_join_on_once() -> None:
    env = Env(B, 0, random.Random(1), Config())
    gms = Gms(env)
    gms.up(Run(C, B, (Join(C, "there", ""),)))
    assert told(gms) == [], "a process without a view has nobody to hand it to"
    gms.down_event(events.Join())
    gms.install(
        Proposal(Ballot(2, A), AgreedView(ViewId(2, A), (A, B), ("a", "b")), (Side(OF_A, (A,), {}, {}),), ()),
        {},
    )
    told(gms)
    gms.up(Run(C, B, (Join(C, "there", ""),)))
    gms.up(Run(A, B, (Join(C, "there", ""),)))
    assert [(dest, type(head)) for dest, head in told(gms)] == [(A, Join)]


def member_of_three(name: Address) -> Gms:
    """`name`, in a view of A, B and C, told by A."""
    env = Env(name, 0, random.Random(1), Config())
    env.contact = name.name
    gms = Gms(env)
    gms.down_event(events.Join())
    gms.install(Proposal(VIEW.id, VIEW, (Side(OF_A, (A,), {}, {}),), ()), {})
    told(gms)
    gms.above = []
    return gms


@pytest.mark.parametrize(("ended", "asks"), [(B, True), (SECOND_B, False), (D, False)])
def test_the_leader_is_asked_because_of_members_alone(ended: Address, asks: bool) -> None:
    """A process that is not in the view may end: no view change is to come of it, and nobody would stop asking."""
    gms = member_of_three(C)
    gms.up_event(Suspect(ended, proven=True))
    while gms.wake < SECOND:
        gms.env.now = gms.wake
        gms.timer()
    assert (A in [to for to, head in told(gms) if isinstance(head, Ready)]) is asks


def test_a_joiner_that_asks_again_gets_the_installation_from_those_who_came_with_it() -> None:
    """A, which was to tell B, may be gone; once all have the installation, nobody has to keep it."""
    gms = member_of_three(C)
    gms.up(Run(B, C, (Join(B, "b", ""),)))
    ((to, install),) = told(gms)
    assert to == B and isinstance(install, Install) and install.starts is not None
    proposal = proposal_of(install.difference, None)
    assert proposal is not None
    assert proposal.view == msgspec.structs.replace(VIEW, since=(0, 7, 7)), "B and C joined with this view"
    gms.up(Run(A, C, (Done(VIEW.id),)))
    gms.up(Run(B, C, (Join(B, "b", ""),)))
    assert [(dest, type(head)) for dest, head in told(gms)] == [(A, Join)]


def test_a_request_to_leave_is_handed_on_once_by_a_member_that_does_not_lead() -> None:
    gms = member_of_three(B)
    gms.up(Run(C, B, (LeaveReq(VIEW.id, C),)))
    assert told(gms) == [(A, LeaveReq(VIEW.id, C))]
    gms.up(Run(A, B, (LeaveReq(VIEW.id, C),)))
    assert told(gms) == []


def test_suspicions_are_told_to_the_view_and_taken_back() -> None:
    gms = member_of_three(C)
    for event, accused in [
        (Suspect(B, proven=False), {B: SILENT}),
        (Suspect(B, proven=True), {B: ENDED}),
        (Unsuspect(B), {}),
    ]:
        gms.env.now += gms.env.config.batch
        gms.up_event(event)
        accusations = [(dest, head.suspects) for dest, head in told(gms) if isinstance(head, Accuse)]
        assert accusations == [(A, accused), (B, accused)]


def test_in_a_large_view_those_that_may_lead_hear_of_suspicions() -> None:
    """Of 30 members the first eight, and the first eight that are not suspected; a leader that gives way tells all."""
    members = tuple(Address(f"m{number:02}", "0" * 16) for number in range(30))
    view, config = AgreedView(ViewId(7, A), members, ("",) * 30), Config()
    me, first = members[20], members[:8]
    assert tuple(hearers(view, {}, me, config)) == first
    assert tuple(hearers(view, {members[25]: ENDED}, me, config)) == first
    suspects = dict.fromkeys(members[:9], ENDED)
    assert tuple(hearers(view, suspects, me, config)) == (*first, *members[9:17])
    assert tuple(hearers(view, {members[0]: UNHEARD}, members[0], config)) == members[1:]
    assert len(tuple(hearers(view, suspects, me, Config(heartbeat_all=30)))) == 29, "a small view"


def test_who_need_not_hear_any_more_hears_that_a_suspicion_is_taken_back() -> None:
    env = Env(D, 0, random.Random(1), Config(heartbeat_all=2, heartbeat_neighbors=1))
    gms = Gms(env)
    gms.down_event(events.Join())
    view = AgreedView(ViewId(7, A), (A, B, C, D), ("a", "b", "c", "d"))
    gms.install(Proposal(view.id, view, (Side(OF_A, (A,), {}, {}),), ()), {})
    for event, heard in [
        (Suspect(A, proven=False), {A: {A: SILENT}, B: {A: SILENT}, C: {A: SILENT}}),
        (Unsuspect(A), {A: {}, B: {}, C: {}}),
    ]:
        told(gms)
        gms.env.now += gms.env.config.batch
        gms.up_event(event)
        assert {dest: head.suspects for dest, head in told(gms) if isinstance(head, Accuse)} == heard


def test_suspicions_that_follow_each_other_are_told_together() -> None:
    gms = member_of_three(C)
    for event in [
        Suspect(B, proven=False),
        Suspect(A, proven=False),
        Suspect(B, proven=True),
    ]:
        gms.up_event(event)
    assert [head.suspects for dest, head in told(gms) if dest == A and isinstance(head, Accuse)] == [{B: SILENT}]
    gms.env.now += gms.env.config.batch
    gms.timer()
    both = {B: ENDED, A: SILENT}
    assert [head.suspects for dest, head in told(gms) if dest == A and isinstance(head, Accuse)] == [both]


def test_a_leader_that_is_told_of_a_proof_looks_itself_and_asks_ready() -> None:
    gms = member_of_three(A)
    gms.up(Run(C, A, (Accuse(VIEW.id, {B: ENDED}),)))
    assert VerifyLife(B) in gms.below
    assert [dest for dest, head in told(gms) if isinstance(head, Ready)] == [B, C]
    gms.up(Run(D, A, (Accuse(VIEW.id, {B: ENDED}),)))
    assert gms.env.counters["drop suspicion of a stranger"] == 1


def test_a_leader_that_says_that_most_do_not_hear_it_is_replaced_until_it_takes_that_back() -> None:
    gms = member_of_three(B)
    gms.up(Run(A, B, (Accuse(VIEW.id, {A: SILENT}),)))
    (ready, *_) = [head for _, head in told(gms) if isinstance(head, Ready)]
    gms.up(Run(A, B, (ReadyRsp(ready.ballot, VIEW.id, None, False),)))
    assert A in gms.suspicions and gms.leading.change.attempt is not None, "an answer takes nothing back"
    gms.up(Run(A, B, (Accuse(VIEW.id, {}),)))
    assert A not in gms.suspicions and gms.leading.change.attempt is None


def test_a_leader_gives_way_after_two_questions_that_most_of_its_accusers_left_unanswered() -> None:
    gms = member_of_three(A)
    for accuser in (B, C):
        gms.up(Run(accuser, A, (Accuse(VIEW.id, {A: SILENT}),)))
    said: list[dict[Address, Suspicion]] = []
    for _ in range(5):
        gms.env.now = gms.wake
        gms.timer()
        unanswered = gms.env.counters.get("Ready left unanswered by most", 0)
        said = [head.suspects for dest, head in told(gms) if dest == B and isinstance(head, Accuse)]
        if said:
            break
    assert said == [{A: UNHEARD}] and unanswered == 2
    gms.env.now += gms.env.config.batch
    gms.up(Run(B, A, (Accuse(VIEW.id, {}),)))
    assert [head.suspects for dest, head in told(gms) if dest == B and isinstance(head, Accuse)] == [{}]


def test_who_is_next_in_rank_looks_after_a_leader_that_others_take_for_dead_and_asks_nothing() -> None:
    gms = member_of_three(B)
    gms.up(Run(C, B, (Accuse(VIEW.id, {A: ENDED}),)))
    assert gms.below == [VerifyLife(A)]
    gms = member_of_three(B)
    gms.up(Run(A, B, (Accuse(VIEW.id, {C: ENDED}),)))
    assert gms.below == [], "A leads and knows"


def test_who_is_next_in_rank_and_accused_by_its_leader_asks_whether_the_leader_is_deaf() -> None:
    gms = member_of_three(B)
    gms.up(Run(A, B, (Accuse(VIEW.id, {B: SILENT, C: SILENT}),)))
    assert [(dest, type(head)) for dest, head in told(gms)] == [(A, Ready)]
    gms = member_of_three(C)
    gms.up(Run(A, C, (Accuse(VIEW.id, {B: SILENT, C: SILENT}),)))
    assert told(gms) == [], "B asks"


def test_what_a_joiner_hears_of_suspicions_before_it_has_the_view_waits_for_it() -> None:
    """Others have the view that B is let into, and suspect C; they say so once.  D is in no view with B."""
    env = Env(B, 0, random.Random(1), Config())
    env.contact = "b"
    gms = Gms(env)
    gms.down_event(events.Join())
    gms.up(Run(A, B, (Accuse(VIEW.id, {B: SILENT}),)))
    gms.up(Run(A, B, (Accuse(VIEW.id, {C: ENDED}),)))
    gms.up(Run(D, B, (Accuse(VIEW.id, {A: ENDED}),)))
    for number in range(2 * MEMBERS_MAX):
        gms.up(Run(Address("E", f"{number:016x}"), B, (Accuse(VIEW.id, {A: ENDED}),)))
    assert len(gms.later) == MEMBERS_MAX, "strangers take no memory"
    gms.up(Run(A, B, (installs(Proposal(VIEW.id, VIEW, (Side(OF_A, (A,), {}, {}),), ()), {}),)))
    assert gms.suspicions.accusations == {A: {C: ENDED}}
    assert gms.later == {}


def test_a_ready_that_was_left_unanswered_in_one_view_does_not_count_in_the_next() -> None:
    gms = member_of_three(B)
    gms.suspicions.left_unanswered(C, 2)
    assert C in gms.suspicions
    view = AgreedView(ViewId(8, A), (A, B, C), ("a", "b", "c"))
    gms.install(Proposal(view.id, view, (Side(VIEW, (A, B, C), {A: 0}, {}),), ()), None)
    assert C not in gms.suspicions and not gms.suspicions.unanswered


def test_an_exclusion_is_taken_from_members_of_the_view_alone() -> None:
    gms = member_of_three(C)
    next_view = AgreedView(ViewId(8, A), (A, B), ("a", "b"))
    install = installs(Proposal(next_view.id, next_view, (Side(VIEW, (A, B), {}, {}),), ()), None)
    gms.up(Run(D, C, (install,)))
    assert gms.above == []
    gms.up(Run(B, C, (install,)))
    assert isinstance(gms.above[-1], events.Excluded)


def test_a_view_that_a_member_asks_for_has_the_same_members() -> None:
    """Its provider gives no state: the view that follows chooses another one."""
    gms = member_of_three(C)
    gms.down_event(ViewWanted())
    assert told(gms) == [(A, ViewReq(VIEW.id, C))]
    leader = leader_of_two()
    assert leader.view is not None
    leader.up(Run(B, A, (ViewReq(leader.view.id, B),)))
    leader.env.now += leader.env.config.batch
    leader.timer()
    ((to, ready),) = told(leader)
    assert to == B and isinstance(ready, Ready)
    leader.up(Run(B, A, (ReadyRsp(ready.ballot, leader.view.id, None, False),)))
    assert [type(head) for _, head in told(leader)] == [Collect]


def test_an_accepted_ballot_is_remembered_for_each_leader_and_not_for_each_attempt() -> None:
    gms = member_of_three(C)
    for number in range(8, 108):
        ballot = Ballot(number, A)
        gms.up(Run(A, C, (Collect(ballot, VIEW.id),)))
        same = Proposal(ballot, VIEW, (Side(VIEW, (A, B, C), {}, {}),), ())
        gms.up(Run(A, C, (Propose(difference(same, VIEW.id)),)))
        gms.down_event(events.Fetched(ballot))
    assert gms.binding.accepted == {A: Ballot(107, A)}


def test_who_was_left_behind_many_views_ago_is_still_told_so() -> None:
    """It must not take the others for gone, and go on alone."""
    gms = leader_of_two()
    assert gms.view is not None
    shared = gms.view.id
    for number in range(3, 600):
        assert gms.view is not None
        view = AgreedView(ViewId(number, A), (A,), ("a",))
        gms.install(Proposal(view.id, view, (Side(gms.view, (A,), {A: 0}, {}),), ()), None)
    told(gms)
    gms.up_event(HeartbeatOf(B, shared))
    assert told(gms) == [(B, Excluded(shared))]
    gms.up_event(HeartbeatOf(B, ViewId(2, B)))
    assert told(gms) == [(B, Elsewhere(ViewId(599, A), ViewId(2, B)))], "in a view that this member was never in"


def test_16_a_collect_of_a_view_that_is_on_its_way_waits_for_it() -> None:
    gms = member_of_three(C)
    gms.binding.accepted[B] = Ballot(8, B)
    gms.up(Run(B, C, (Collect(Ballot(9, B), ViewId(8, B)),)))
    assert told(gms) == [(B, Stuck(Ballot(8, B), VIEW.id))]
    view = AgreedView(ViewId(8, B), (B, C), ("b", "c"))
    gms.up(Run(B, C, (installs(Proposal(view.id, view, (Side(VIEW, (B, C), {A: 0}, {}),), ()), None),)))
    assert gms.binding.ballot == Ballot(9, B)
    assert gms.later == {}


def test_the_suspected_do_not_count_in_the_rank_of_a_pause() -> None:
    assert [decide.rank(VIEW, (), member) for member in VIEW.members] == [0, 1, 2]
    assert decide.rank(VIEW, (A, B), C) == 0


@pytest.mark.parametrize(
    ("pairs", "out"),
    [
        ([], []),
        ([(B, C)], [C]),
        ([(B, C), (B, D)], [B]),
        ([(B, C), (C, D)], [C]),
        ([(B, C), (A, D)], [D, C]),
    ],
)
def test_of_a_pair_that_cannot_reach_each_other_one_goes(
    pairs: list[tuple[Address, Address]], out: list[Address]
) -> None:
    assert decide.left_out(pairs, (A, B, C, D)) == out


def test_a_joiner_that_was_invited_founds_only_when_nothing_comes_of_it() -> None:
    """Whoever invited it may have died, and others may have the view that it is in."""
    env = Env(B, 0, random.Random(1), Config())
    env.contact = "b"
    gms = Gms(env)
    gms.down_event(events.Join())
    gms.up(Run(A, B, (Ready(Ballot(2, A), ViewId(1, A)),)))
    assert events.Invited(True) in gms.below, "while that is open nobody else founds either"
    env.now = 2 * env.config.flush_timeout - 1
    gms.timer()
    gms.up_event(driver_events.Found({}, may_found=True))
    assert gms.view is None
    env.now += 1
    gms.timer()
    assert events.Invited(False) in gms.below
    gms.up_event(driver_events.Found({}, may_found=True))
    assert gms.view is not None and gms.view.members == (B,)


def test_more_than_a_view_can_hold_are_not_taken_in() -> None:
    gms = leader_of_two()
    for number in range(MEMBERS_MAX):
        joiner = Address(f"j{number}", "0" * 16)
        gms.up(Run(joiner, A, (Join(joiner, "there", ""),)))
    assert len(gms.leading.admission.joiners) == MEMBERS_MAX - 2
    assert gms.env.counters["drop too many joiners"] == 2


@pytest.mark.parametrize(
    ("id", "never"), [(ViewId(6, A), True), (ViewId(8, D), True), (ViewId(8, A), False), (ViewId(12, C), False)]
)
def test_a_view_with_a_lower_id_or_by_a_stranger_follows_no_view(id: ViewId, never: bool) -> None:
    assert cannot_follow(VIEW, id) is never


def test_12_a_member_counted_in_a_view_that_it_will_never_have_says_so() -> None:
    """D took A in, and A was taken in elsewhere; what A said of that was lost, and D goes on counting on it."""
    gms = leader_of_two()
    gms.up_event(HeartbeatOf(D, ViewId(9, D)))
    assert told(gms) == [(D, Elsewhere(ViewId(2, A), ViewId(9, D)))]
    gms.up_event(HeartbeatOf(B, ViewId(3, B)))
    assert told(gms) == [], "B may have made the next view, with the news of it on its way"


def test_what_the_old_view_was_to_stop_and_fetch_for_is_over_when_the_new_one_comes_in_the_same_turn() -> None:
    """A collects from itself and proposes, and in the same turn installs what B had from somebody else (total seed
    23731; test_gms_14_collected_and_installed_in_one_turn in tests/scenarios)."""
    gms = leader_of_two()
    assert gms.view is not None
    old, view = gms.view, AgreedView(ViewId(3, B), (B, A), ("b", "a"))
    gms.above = [events.Stop(Ballot(4, A)), events.FetchTo(Ballot(4, A), {A: 3}, {A: A})]
    gms.install(Proposal(view.id, view, (Side(old, (B, A), {A: 3}, {A: A}),), ()), None)
    assert [type(event) for event in gms.above] == [events.NewView]


def test_who_is_on_its_way_to_a_view_is_not_elsewhere() -> None:
    """A has accepted what B has installed and asks about: it lacks the installation, and says so."""
    gms = leader_of_two()
    assert gms.view is not None
    gms.binding.accepted[B] = Ballot(3, B)
    gms.up(Run(B, A, (Stuck(Ballot(4, B), ViewId(3, B)),)))
    assert told(gms) == [(B, Stuck(Ballot(3, B), gms.view.id))]
    gms.up(Run(B, A, (Stuck(Ballot(6, B), ViewId(5, B)),)))
    assert told(gms) == [(B, Elsewhere(gms.view.id, ViewId(5, B)))]


def test_17_a_member_whose_top_has_gone_installs_nothing_any_more() -> None:
    gms = leader_of_two()
    gms.down_event(events.Gone())
    assert gms.below == [events.Gone()]
    gms.up_event(Suspect(B, proven=True))
    assert (gms.gauges(), told(gms)) == ({}, [])
