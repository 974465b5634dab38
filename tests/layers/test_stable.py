"""STABLE: votes as pure values, the layer by hand, and over NAKACK under a network that loses, repeats and reorders.
The conversations: text/stable."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.events import Consumed, Excluded, Gone, Held, HeldQuery, NewView, Released, Stability, Stop
from pygroups.core.layer import NEVER, Env
from pygroups.core.limits import MEMBERS_MAX, MILLISECOND, SECOND, STABLE_QUIET, Config
from pygroups.core.run import Run, pack
from pygroups.core.view import AgreedView, Ballot, ViewId
from pygroups.layers.flush import Flush
from pygroups.layers.nakack import Data, HighestSeq
from pygroups.layers.profiles import PROFILES, Profile
from pygroups.layers.stable.layer import Stable
from pygroups.layers.stable.votes import Origin, StabilityMsg, Vote, Votes, Wanted
from tests.layers.streams_world import Network, World

A, B, C, D, E = (Address(name, f"{number:016x}") for number, name in enumerate("ABCDE", 1))
VIEW = AgreedView(ViewId(1, A), (A, B, C), ("a", "b", "c"))
MINUTE = 60 * SECOND


def vote(
    number: int, delivered: list[int], seen: list[int] | None = None, view: AgreedView = VIEW, *, urgent: bool = False
) -> Vote:
    marks = [next + 1 for next in delivered]
    return Vote(view.id, number, delivered, seen or delivered, marks, marks, urgent)


# -- votes alone


def test_dig_01_what_a_member_said_is_merged_by_the_higher_part() -> None:
    votes = Votes((A, B, C, D, E))
    assert votes.not_set() == [A, B, C, D, E]
    assert votes.add(A, vote(1, [499, 26, 26], [502, 27, 35]), 0)
    assert votes.add(A, vote(2, [500, 26, 25], [501, 26, 33]), 0)
    assert (votes.last[A].delivered, votes.last[A].seen) == ([500, 26, 26], [502, 27, 35])
    for voter in (B, D):
        votes.add(voter, vote(1, [0, 0, 0]), 0)
    assert not votes.all_set()
    assert votes.not_set() == [C, E]


def test_join_02_an_older_digest_lowers_nothing() -> None:
    votes = Votes((A, B, C))
    votes.add(A, vote(1, [10, 30, 50]), 0)
    assert not votes.add(A, vote(2, [10, 30, 35]), 0), "and is no news"
    assert votes.last[A].delivered == [10, 30, 50]


def test_what_is_purged_is_the_minimum_and_what_is_looked_for_the_maximum() -> None:
    """M26: the maximum would forget what somebody still lacks.  M23: delivered and seen are not the same."""
    votes = Votes((A, B, C))
    for voter, delivered, seen in ((A, [9, 4, 2], [9, 4, 7]), (B, [8, 6, 2], [9, 6, 2]), (C, [9, 5, 2], [9, 5, 3])):
        votes.add(voter, vote(1, delivered, seen), 0)
    msg = votes.combined(VIEW.id, 1)
    assert (msg.purge, msg.seen) == ([8, 4, 2], [9, 6, 7])
    assert (msg.delivered, msg.consumed) == ([9, 5, 3], [9, 5, 3])


def test_without_everybody_there_is_no_stability() -> None:
    votes = Votes((A, B, C))
    votes.add(A, vote(1, [1, 1, 1]), 0)
    with pytest.raises(AssertionError, match="without each member's vote"):
        votes.combined(VIEW.id, 1)


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=6), st.randoms())
def test_votes_of_one_member_combine_in_any_order(said: list[list[int]], chance: random.Random) -> None:
    shuffled = said[:]
    chance.shuffle(shuffled)
    votes = Votes((A,))
    for number, delivered in enumerate(shuffled):
        votes.add(A, vote(number, delivered), 0)
    assert votes.last[A].delivered == [max(column) for column in zip(*said, strict=True)]


def test_consumed_bytes_are_exact_where_everything_is_consumed_and_shared_out_between() -> None:
    origin = Origin(5, 1_000, own=False)
    origin.deliver(5, 2, 100)
    origin.deliver(7, 2, 500)
    assert origin.consume(7) and (origin.consumed, origin.consumed_bytes) == (7, 300)
    assert origin.consume(99) and (origin.consumed, origin.consumed_bytes) == (9, 600), "no more than was delivered"
    assert not origin.consume(8) and origin.consumed == 9
    origin.deliver(7, 2, 500)
    assert origin.next == 9, "what was ordered twice moves nothing"


def test_own_messages_need_only_be_delivered_here() -> None:
    origin = Origin(1, 1_000, own=True)
    origin.deliver(1, 3, 100)
    assert (origin.consumed, origin.consumed_bytes) == (4, 100)


# -- the layer by hand


def layer(me: Address = A, view: AgreedView | None = VIEW, config: Config | None = None) -> Stable:
    env = Env(me, 0, random.Random(1), config or Config(), journaling=True)
    env.services = Stable.gives
    stable = Stable(env)
    if view is not None:
        install(stable, view)
    return stable


def install(stable: Stable, view: AgreedView, digest: dict[Address, int] | None = None) -> None:
    stable.up_event(NewView(view, None, (), view.members, (), True, digest))
    stable.above.clear()


def end_turn(stable: Stable, seen: dict[Address, int] | None = None) -> list[tuple[Address | None, object]]:
    """End the turn, answer in NAKACK's place, and give back what was sent."""
    stable.end_turn()
    sent: list[tuple[Address | None, object]] = []
    while stable.below:
        items, stable.below = stable.below, []
        for item in items:
            if isinstance(item, HeldQuery):
                assert item.asker is Stable
                stable.up_event(Held(Stable, {}, seen or {}))
            elif isinstance(item, Run):
                sent.append((item.dest, item.head))
    return sent


def advance(stable: Stable, to: int) -> list[tuple[Address | None, object]]:
    sent = []
    while stable.wake <= to:
        stable.env.now = max(stable.env.now, stable.wake)
        stable.timer()
        assert stable.wake > stable.env.now
        sent += end_turn(stable)
    stable.env.now = to
    return sent


def run_of(origin: Address, number: int, stream: Address | None = None, seq: int = 0, size: int = 1) -> Run:
    body = pack([b"x" * size])
    return Run(stream or origin, None, (), origin, number, 0, 1, body, stream or origin, seq)


def test_an_answer_to_somebody_else_goes_on_up() -> None:
    stable = layer()
    stable.up_event(Held(Flush, {A: 1}, {A: 1}))
    assert stable.above == [Held(Flush, {A: 1}, {A: 1})]


def test_a_vote_says_delivered_and_seen_apart() -> None:
    """M23: number 5 was seen beyond a hole, and 2 is the first that was not delivered."""
    stable = layer(B)
    end_turn(stable)
    for seq in range(2):
        stable.up(run_of(A, seq + 1, seq=seq))
    ((dest, head),) = advance(stable, SECOND)[:1]
    assert dest == A and isinstance(head, Vote)
    assert (head.delivered, head.seen) == ([2, 0, 0], [0, 0, 0]), "seen is what the layer with streams answers"
    stable.up(run_of(A, 3, seq=2))
    stable.clock.due = True
    ((_, head),) = end_turn(stable, {A: 6, B: 0, C: 0})
    assert isinstance(head, Vote)
    assert (head.delivered, head.seen, head.numbers) == ([3, 0, 0], [6, 0, 0], [4, 1, 1])


def test_in_total_order_the_stream_is_the_sequencers_and_the_numbers_are_the_origins() -> None:
    stable = layer(C)
    end_turn(stable)
    stable.up(run_of(B, 1, stream=A, seq=0))
    stable.up(run_of(A, 1, stream=A, seq=1))
    stable.up(run_of(B, 2, stream=A, seq=2))
    stable.up(run_of(B, 1, stream=A, seq=3))  # ordered twice after a failover; the sequencer's layer drops it
    stable.clock.due = True
    ((_, head),) = end_turn(stable)
    assert isinstance(head, Vote)
    assert (head.delivered, head.numbers) == ([4, 0, 0], [2, 3, 1])


def test_what_passes_is_passed_on() -> None:
    stable = layer()
    unicast = Run(B, A, ("a head of another layer",), B, 1, 0, 1, pack([b"x"]))
    stable.up(unicast)
    stable.up(run_of(B, 1))
    assert stable.above[0] is unicast
    assert len(stable.above) == 2
    assert stable.origins.get(B) is not None and stable.origins[B].next == 2, "a unicast has no number here"


def test_consumed_stops_here_and_other_events_do_not() -> None:
    stable = layer()
    stable.up(run_of(B, 1))
    stable.below.clear()
    stable.down_event(Consumed({B: 2}))
    assert stable.below == [] and stable.origins[B].consumed == 2
    stable.down_event(HeldQuery(Flush))
    assert stable.below == [HeldQuery(Flush)]


def test_stability_goes_up_and_down_with_the_own_numbers() -> None:
    stable = layer(B)
    for seq in range(3):
        stable.up(run_of(A, seq + 1, seq=seq))
    stable.above.clear()
    stable.below.clear()
    stable.up(Run(A, None, (StabilityMsg(VIEW.id, 1, [2, 0, 0], [3, 0, 1], [5, 6, 7], [8, 9, 10]),)))
    expected = Stability({A: 2, B: 0, C: 0}, {A: 3, B: 0, C: 1}, 6, 9)
    assert stable.above == [expected] and stable.below == [expected]
    assert ("purge", None, {"digest": {A: 2, B: 0, C: 0}}) in stable.env.records


@pytest.mark.parametrize(
    ("src", "change", "reason"),
    [
        (B, {}, "stability from a member that does not count"),
        (A, {"view": ViewId(0, A)}, "old view"),
        (A, {"view": ViewId(2, A)}, "stability of a later view"),
        (A, {"purge": [1]}, "malformed stability"),
        (A, {"consumed": [1] * 4}, "malformed stability"),
        (A, {"purge": [4, 0, 0]}, "stability of messages that were not delivered here"),
    ],
)
def test_stability_that_does_not_hold_up_changes_nothing(src: Address, change: dict[str, object], reason: str) -> None:
    stable = layer(C)
    for seq in range(3):
        stable.up(run_of(A, seq + 1, seq=seq))
    stable.above.clear()
    right = StabilityMsg(VIEW.id, 1, [3, 0, 0], [3, 0, 0], [4, 1, 1], [1, 1, 1])
    stable.up(Run(src, None, (msgspec.structs.replace(right, **change),)))
    assert stable.above == [] and stable.last is None
    assert stable.env.drops == {reason: 1}
    stable.up(Run(A, None, (right,)))
    assert stable.last == right, "and the right one is taken"


@pytest.mark.parametrize(
    ("me", "voter", "change", "reason"),
    [
        (A, D, {}, "vote of no member"),
        (A, B, {"view": ViewId(0, A)}, "old view"),
        (A, B, {"seen": [1]}, "malformed vote"),
        (A, B, {"numbers": [1] * 9}, "malformed vote"),
        (B, C, {}, "vote to a member that does not count"),
    ],
)
def test_a_vote_that_does_not_hold_up_counts_for_nothing(
    me: Address, voter: Address, change: dict[str, object], reason: str
) -> None:
    stable = layer(me)
    stable.up(Run(voter, me, (msgspec.structs.replace(vote(1, [0, 0, 0]), **change),)))
    assert stable.votes.last == {}
    assert stable.env.drops == {reason: 1}


def test_vectors_are_bounded() -> None:
    long = vote(1, [0] * (MEMBERS_MAX + 1))
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(long), type=Vote)


def test_votes_of_a_later_view_wait_for_it() -> None:
    later = AgreedView(ViewId(2, A), (A, B), ("a", "b"))
    stable = layer()
    stable.up(Run(B, A, (vote(1, [0, 0], view=later),)))
    assert stable.env.drops == {"vote of a view that does not follow": 1}, "nobody asked to stop for it"
    stable.up_event(Stop(Ballot(2, B)))
    stable.up(Run(B, A, (vote(1, [0, 0], view=later),)))
    assert stable.gauges()["early"] == 1
    install(stable, later)
    assert stable.votes.not_set() == [A] and stable.gauges()["early"] == 0


def test_what_is_fetched_after_the_stop_counts_up_to_the_cut() -> None:
    """More was fetched for a higher ballot than the view holds that comes: FLUSH hands none of that up."""
    stable = layer(C)
    stable.up(run_of(A, 1))
    stable.up_event(Stop(Ballot(3, B)))
    stable.up(run_of(A, 2, seq=1))
    stable.up(run_of(A, 3, seq=2))
    assert stable.origins[A].next == 2
    view = AgreedView(ViewId(2, B), (B, C), ("b", "c"))
    stable.up_event(NewView(view, ViewId(1, A), (B, C), (), (A,), True, None, cut={A: 2}))
    assert (stable.origins[A].next, stable.passed) == (3, {})


def test_a_message_that_is_consumed_before_it_counts_is_consumed_when_it_does() -> None:
    """UNIFORM releases it in the turn in which the view ends, and the application reads it before the next view."""
    stable = layer(C)
    stable.up_event(Stop(Ballot(3, B)))
    stable.up(run_of(A, 1))
    stable.down_event(Released(A, 1))
    stable.down_event(Consumed({A: 2}))
    assert stable.origins[A].consumed == 1
    view = AgreedView(ViewId(2, B), (A, B, C), ("a", "b", "c"))
    stable.up_event(NewView(view, ViewId(1, A), (A, B, C), (), (), True, None, cut={A: 1}))
    assert (stable.origins[A].next, stable.origins[A].consumed) == (2, 2)


def test_numbers_of_a_life_live_on_and_begin_with_the_digest() -> None:
    stable = layer(C)
    stable.up(run_of(A, 1))
    stable.down_event(Consumed({A: 2}))
    install(stable, AgreedView(ViewId(2, B), (B, C), ("b", "c")))
    assert (stable.origins[A].next, stable.origins[A].consumed) == (2, 2), "A may come back"
    joiner = layer(D, view=None)
    install(joiner, AgreedView(ViewId(3, B), (B, C, D), ("b", "c", "d")), {A: 7, B: 9})
    ((_, head),) = end_turn(joiner)
    assert isinstance(head, Vote)
    assert (head.numbers, head.consumed) == ([9, 1, 1], [9, 1, 1])
    assert joiner.origins[A].next == 7


def test_numbers_of_former_members_are_bounded_and_the_oldest_go_first() -> None:
    stable = layer(C, config=Config(marks_max=1))
    for origin in (A, B):
        stable.up(run_of(origin, 1))
    install(stable, AgreedView(ViewId(2, C), (C,), ("c",)))
    assert list(stable.origins) == [B]


def test_who_is_out_says_nothing() -> None:
    stable = layer(B)
    stable.up(run_of(A, 1))
    stable.up_event(Excluded("left", ""))
    assert advance(stable, MINUTE) == []
    assert set(stable.gauges().values()) == {0}


def test_nothing_is_said_before_the_first_view() -> None:
    stable = layer(view=None)
    stable.down_event(Consumed({A: 5}))
    assert advance(stable, MINUTE) == [] and end_turn(stable) == []


# -- suspension


def test_a_suspended_coordinator_tells_nobody_until_it_resumes() -> None:
    stable = layer(A)
    end_turn(stable)
    stable.suspend(MINUTE)
    for voter in (B, C):
        stable.up(Run(voter, A, (vote(1, [0, 0, 0]),)))
    assert end_turn(stable) == []
    stable.resume()
    assert [type(head) for _, head in advance(stable, SECOND)][:1] == [StabilityMsg]


def test_no_suspension_is_longer_than_its_limit() -> None:
    stable = layer(B, config=Config(stable_suspend_max=SECOND))
    end_turn(stable)
    stable.suspend(MINUTE)
    stable.up(run_of(A, 1))
    assert [type(head) for _, head in advance(stable, SECOND + 1)] == [Vote]


def test_a_suspended_coordinator_answers_no_vote_that_is_repeated() -> None:
    """STB-I4: an answer is a result, and lets its receiver purge."""
    stable = layer(A)
    for voter in (B, C):
        stable.up(Run(voter, A, (vote(1, [0, 0, 0]),)))
    assert [type(head) for _, head in end_turn(stable)] == [StabilityMsg]
    stable.suspend(MINUTE)
    stable.up(Run(B, A, (vote(2, [0, 0, 0]),)))
    assert end_turn(stable) == []


# -- stagger, and canceling


def test_members_vote_at_different_times() -> None:
    """All members get a message at the same moment: their votes reach the coordinator one by one."""
    names = "ABCDEFGHIJ"
    world = World(names)
    world.install(names, 1)
    world.run(MINUTE)
    voted: dict[str, int] = {}

    def votes(src: str, dest: str, run: Run) -> bool:
        if isinstance(run.head, Vote):
            voted.setdefault(src, world.now)
        return False

    world.lose_if = votes
    world.send("B", 1)
    world.settle()
    times = sorted(voted.values())
    assert len(times) == len(names) - 1
    assert len(set(times)) > 5 and times[-1] - times[0] > world.config.stable_period // 40


def test_a_repetition_is_canceled_by_the_result_and_news_arm_it_again() -> None:
    stable = layer(B)
    end_turn(stable)
    stable.up(run_of(A, 1))
    stable.down_event(Consumed({A: 2}))
    said = [head for _, head in advance(stable, 900 * MILLISECOND) if isinstance(head, Vote)]
    assert len(said) >= 2 and said[-1].delivered == [1, 0, 0], "repeated while no result comes"
    result = StabilityMsg(VIEW.id, 1, [1, 0, 0], [1, 0, 0], [2, 1, 1], [2, 1, 1])
    stable.up(Run(A, None, (result,)))
    assert stable.wake < NEVER, "a repetition was due"
    assert advance(stable, MINUTE) == [], "and does not leave"
    stable.up(run_of(A, 2, seq=1))
    ((dest, head),) = advance(stable, MINUTE + SECOND // 2)[:1]
    assert dest == A and isinstance(head, Vote) and head.delivered == [2, 0, 0]


# -- scenarios over NAKACK


def quiet(world: World) -> None:
    """All have all, hold nothing, and say nothing any more: settle() has seen that nobody waits."""
    names = list(world.members)
    for process in world.members.values():
        assert process.held() == {}, process.address.name
        assert process.delivered == world[names[0]].delivered


def test_the_coordinator_finds_a_tail_that_it_lacks_itself() -> None:
    """A lost B's last run and all that B announces; C voted that it exists."""
    world = World("ABC")
    world.install("ABC", 1)
    world.run(SECOND)
    world.lose_if = lambda src, dest, run: (
        (src, dest) == ("B", "A") and isinstance(run.head, (Data, HighestSeq)) and run.dest is None
    )
    world.send("B", 1)
    world.settle()
    assert world["A"].numbers("B") == [1]
    quiet(world)


@pytest.mark.parametrize("sender", "AB")
def test_what_stability_sets_free_leaves_at_once(sender: str) -> None:
    """The top holds the fifth run back until four are stable.  At the coordinator that happens after its turn's end."""
    world = World("AB")
    world.install("AB", 1)
    world.run(SECOND)
    for number in range(5):
        world.send(sender, number)
    assert len(world[sender].top.open.payloads) == 1
    world.run(world.now + 2_000)
    assert [process.numbers(sender) for process in world.members.values()] == [list(range(5))] * 2


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    network=st.builds(
        Network,
        loss=st.sampled_from([0.0, 0.1, 0.4]),
        repeat=st.sampled_from([0.0, 0.3]),
        copies=st.integers(1, 3),
        delay_min=st.just(50),
        delay_max=st.sampled_from([100, 5_000, 60_000]),
    ),
    sends=st.lists(st.tuples(st.sampled_from("ABC"), st.integers(1, 4), st.integers(0, 40_000)), max_size=40),
)
def test_after_any_disorder_all_have_all_and_nothing_is_left(
    seed: int, network: Network, sends: list[tuple[str, int, int]]
) -> None:
    world = World("ABC", seed=seed, network=network)
    world.install("ABC", 1)
    numbers = dict.fromkeys("ABC", 0)
    for name, count, pause in sends:
        world.send(name, *range(numbers[name], numbers[name] + count))
        numbers[name] += count
        world.run(world.now + pause)
    world.network = Network()  # it heals
    world.settle()
    for process in world.members.values():
        for origin, count in numbers.items():
            assert process.numbers(origin) == list(range(count))
    quiet(world)
    sent = world.frames_sent
    world.run(world.now + MINUTE)
    assert world.frames_sent == sent
    assert all(process.stack.wake() == NEVER for process in world.members.values())


def test_whoever_leaves_by_time_votes_no_more() -> None:
    """What comes in the turn of its end its application is not given: nobody may hear that it was."""
    stable = layer()
    stable.up(Run(B, None, (), B, 1, 0, 1, pack([b"x"]), B, 0))
    stable.down_event(Gone())
    stable.up(Run(B, None, (), B, 2, 0, 1, pack([b"y"]), B, 1))
    assert [type(event) for event in stable.below] == [Gone]
    stable.below.clear()
    assert end_turn(stable) == []
    stable.on_vote(vote(1, [0, 2, 0]), B)
    assert end_turn(stable) == []
    assert stable.env.counters["drop vote after the stop"] == 1


# -- the pace


def who_counts(delivered: int) -> Stable:
    """A, at the moment in which it has told all that everybody has delivered so much of its stream but one run."""
    stable = layer()
    for seq in range(delivered):
        stable.up(run_of(A, seq + 1, seq=seq))
    for voter in (B, C):
        stable.on_vote(vote(1, [delivered - 1, 0, 0]), voter)
    sent = end_turn(stable)
    assert [head.purge for _, head in sent if isinstance(head, StabilityMsg)] == [[delivered - 1, 0, 0]]
    stable.on_vote(vote(2, [delivered, 0, 0]), B)
    stable.env.now = 20 * MILLISECOND
    assert not [head for _, head in end_turn(stable) if isinstance(head, StabilityMsg)], "C has not"
    return stable


def test_what_nobody_waits_for_is_told_when_all_have_voted_or_after_a_while() -> None:
    stable = who_counts(5)
    stable.clock.at = stable.wake = NEVER  # no vote of its own comes in between
    stable.on_vote(vote(2, [5, 0, 0]), C)
    assert not end_turn(stable)
    assert not advance(stable, STABLE_QUIET - 1)
    sent = advance(stable, STABLE_QUIET)
    assert [head.purge for _, head in sent if isinstance(head, StabilityMsg)] == [[5, 0, 0]]


def test_what_somebody_may_wait_for_is_told_at_once() -> None:
    stable = who_counts(5)
    stable.on_vote(vote(2, [5, 0, 0], urgent=True), C)
    sent = end_turn(stable)
    assert [head.purge for _, head in sent if isinstance(head, StabilityMsg)] == [[5, 0, 0]]


@pytest.mark.parametrize("ordered", [False, True])
def test_runs_make_a_vote_urgent_where_a_sender_waits_for_it(ordered: bool) -> None:
    env = Env(B, 0, random.Random(1), Config())
    env.services = Stable.gives | ({"TOTAL"} if ordered else set())
    stable = Stable(env)
    install(stable, VIEW)
    end_turn(stable)
    env.now = 10 * MILLISECOND
    for seq in range(2):
        assert not stable.clock.urgent
        stable.up(run_of(A, seq + 1, seq=seq))
    sent = end_turn(stable)
    assert [isinstance(head, Vote) and head.urgent for _, head in sent] == ([] if ordered else [True])


def test_a_vote_sets_the_timer_for_the_next_one_alone() -> None:
    stable = layer(B)
    end_turn(stable)
    stable.env.now = 10 * MILLISECOND
    stable.up(run_of(A, 1, seq=0))
    assert stable.wake <= Config().stable_period  # the first news
    stable.on_wanted(Wanted(2), A)
    ((_, head),) = end_turn(stable)
    assert isinstance(head, Vote)
    assert stable.wake == stable.clock.at == 10 * MILLISECOND + Config().stable_period  # its repetition


def test_the_pace_is_that_of_votes_and_not_of_news() -> None:
    """News soon after a vote waits for half a period to a period after it; news after silence is told at once."""
    period = Config().stable_period
    stable = layer(B)
    end_turn(stable)
    stable.env.now = 10 * MILLISECOND
    stable.up(run_of(A, 1, seq=0))
    assert period // 2 <= stable.clock.at <= period
    advance(stable, 60 * SECOND)
    stable.up(run_of(A, 2, seq=1))
    assert 60 * SECOND <= stable.clock.at <= 60 * SECOND + period // 10


# -- its place in the stacks (decision 0080)


@pytest.mark.parametrize("profile", [profile for profile in PROFILES.values() if Stable in profile.layers])
def test_the_place_of_STABLE(profile: Profile) -> None:
    """Above what numbers and keeps streams: a vote is for what was handed up in order.  Below what holds runs back or
    drops them: a run that never reaches the top has a place in its stream too."""
    stable, layers = profile.layers.index(Stable), profile.layers
    above = [layer for layer in layers[:stable] if layer.gives & {"STREAMS", "FIFO_MULTICAST", "MEMBERSHIP"}]
    below = [layer for layer in layers[stable:] if layer.gives & {"VIRTUAL_SYNCHRONY", "UNIFORM"}]
    assert (above, below) == ([], [])
    assert any("VIRTUAL_SYNCHRONY" in layer.gives for layer in layers[:stable])
    assert any("STREAMS" in layer.gives for layer in layers[stable:])
