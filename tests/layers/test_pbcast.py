"""PBCAST: the scenarios PB-01 to PB-08 of design note 002, and the invariants PB-I1 to PB-I8."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import msgspec
import pytest
from msgspec import structs

from pygroups.core.address import Address
from pygroups.core.events import Consumed, Event, Excluded, Gap, Leave, NewView
from pygroups.core.layer import NEVER, Env
from pygroups.core.limits import MILLISECOND, SECOND, Config
from pygroups.core.run import Run, pack
from pygroups.core.suspicion_events import HeartbeatOf
from pygroups.core.view import AgreedView, ViewId
from pygroups.layers.pbcast import decide
from pygroups.layers.pbcast.heads import FORMER_MAX, Data, Gossip, Lacks, Purged, StartReq, Starts
from pygroups.layers.pbcast.layer import ANSWER_BYTES, LATE_KEEP, Pbcast
from pygroups.layers.pbcast.store import Store, size_of

from .gossip_world import FRAME, GossipWorld, Node

DATAGRAM = 1_400


def runs_to(node: Node, kind: type) -> list[Run]:
    """Take the runs with a head of `kind` that the layer has sent since the last call."""
    sent = [item for item in node.layer.below if isinstance(item, Run) and isinstance(item.head, kind)]
    node.layer.below = []
    return sent


def message(origin: Address, first: int, text: bytes = b"x") -> Run:
    return Run(origin, None, (Data(),), origin, first, 0, 1, pack([text]))


def gossip_of(node: Node, digest: dict[Address, int], number: int = 1, lacking: int | None = None) -> Run:
    """A gossip of `node` that only it has seen."""
    view = node.world.view
    size, rank = len(view.members), view.members.index(node.me)
    ranks = [(view.members.index(name), high) for name, high in digest.items()]
    without = ((1 << size) - 1) & ~(1 << rank) if lacking is None else lacking
    head = Gossip(
        rank, number, view.id, ranks, decide.packed(1 << rank, size), decide.packed(((1 << size) - 1) & ~without, size)
    )
    return Run(node.me, None, (head,))


def quiet(members: int, **config: int) -> GossipWorld:
    """A world in which the layers are called by hand."""
    return GossipWorld(members, 0.0, **config)


def take(node: Node, *runs: Run) -> list[Run | Event]:
    """Give the layer these runs in one turn.  Returns the items for the layer above."""
    node.env.now = node.world.now
    for run in runs:
        node.layer.up(run)
    node.layer.end_turn()
    above, node.layer.above = node.layer.above, []
    return above


# -- PB-01 and PB-I1: all messages reach all members


@pytest.mark.parametrize("subset", [100, 300])
def test_PB_01_ten_members_and_30_percent_of_loss(subset: int) -> None:
    world = GossipWorld(10, 0.3, subset=subset)
    world.send(1_000, 10, 20)
    world.run(30)
    assert world.share_missed() == 0, "the world itself checks the order of each sender"
    assert world.lost > 1_000


# -- PB-I3, PB-04 and PB-I6: the load of a member does not grow with the group


def test_PB_I3_a_gossip_fits_a_datagram_in_the_largest_group() -> None:
    size, most = 1_024, 1 << 30
    bits = decide.packed((1 << size) - 1, size)
    head = Gossip(1_023, most, ViewId(most, Address("host-1234567", "f" * 16)), [(1_023, most)] * 64, bits, bits, True)
    assert FRAME + len(msgspec.msgpack.encode(head)) <= DATAGRAM
    former = [(Address(f"host-{rank:07}", "f" * 16), most) for rank in range(FORMER_MAX)]
    head.digest = [*former, *head.digest[FORMER_MAX:]]
    assert FRAME + len(msgspec.msgpack.encode(head)) <= DATAGRAM


@pytest.mark.parametrize("members", [2, 10, 100])
def test_PB_I3_a_member_sends_each_gossip_to_few(members: int) -> None:
    world = quiet(members)
    others = members - 1
    count = decide.fanout(others, members, 300)
    assert count <= decide.FANOUT_MAX
    node = world.nodes[0]
    node.send()
    node.layer.below = []
    node.layer._gossip()
    sent = runs_to(node, Gossip)
    assert len(sent) == min(count, others) and len({run.dest for run in sent}) == len(sent)


def test_PB_I3_a_gossip_to_all_at_once_is_sent_once() -> None:
    world = quiet(5, use_mcast_for_gossip=1)
    a, b, *_ = world.nodes
    a.send()
    a.layer.below = []
    a.layer._gossip()
    (run,) = runs_to(a, Gossip)
    assert run.dest is None
    take(b, run)
    assert b.env.counters["gossips"] == 1 and not runs_to(b, Gossip), "nobody passes it on"


def test_PB_04_the_dynamic_interval_of_the_seed() -> None:
    rng, members, average = Random(4), 10, 30 * SECOND
    drawn = [decide.interval(rng, members, NEVER, average) for _ in range(10_000)]
    assert all(0 < pause <= 600 * SECOND for pause in drawn)
    mean = sum(drawn) / len(drawn)
    assert 290 * SECOND < mean < 310 * SECOND
    assert 29 * SECOND < mean / members < 31 * SECOND, "a gossip of some member every 30 seconds"
    assert decide.interval(rng, members, 7 * SECOND, average) == 7 * SECOND, "static: the given interval"


@pytest.mark.parametrize("members", [2, 10, 100])
def test_PB_I6_the_mean_time_between_gossips_received_is_the_desired_one(members: int) -> None:
    world = GossipWorld(members, 0.0, desired_avg_gossip=100 * MILLISECOND, subset=1_000)
    world.nodes[0].send()
    world.run(2)
    before = [node.env.counters.get("gossips", 0) + node.layer.gossips for node in world.nodes]
    seconds = 4_000 / members
    world.run(seconds)
    after = [node.env.counters.get("gossips", 0) + node.layer.gossips for node in world.nodes]
    mean = seconds * members / (sum(after) - sum(before))
    assert 0.085 < mean < 0.125


def test_the_interval_follows_the_size_of_the_group() -> None:
    rng = Random(1)
    few = sum([decide.interval(rng, 10, NEVER, SECOND) for _ in range(1_000)])
    many = sum([decide.interval(rng, 100, NEVER, SECOND) for _ in range(1_000)])
    assert 8 < many / few < 12


# -- PB-02 and PB-08: what is forgotten


def test_PB_02_the_numbers_of_the_seed() -> None:
    assert decide.purge_below({"P": 25, "Q": 3, "R": 100}, 10) == {"P": 15, "R": 90}


def test_PB_08_a_group_of_one_forgets_its_own_messages() -> None:
    world = quiet(1, lag=10)
    node = world.nodes[0]
    for _ in range(50):
        node.send()
    world.run(10)
    own = node.layer.store.of(node.me)
    assert own.low == 41, "the next message is 51, and the lag is 10"


def test_a_gossip_that_all_have_lets_members_forget() -> None:
    world = quiet(3, lag=1)
    a, b, c = world.nodes
    take(b, *[message(a.me, n) for n in range(1, 6)])
    last = gossip_of(a, {a.me: 6}, lacking=1 << 1)  # only b is not known to have all
    take(b, structs.replace(last, src=c.me))
    assert b.layer.store.of(a.me).low == 5


def test_M41_a_member_that_lacks_a_message_stays_in_the_list() -> None:
    world = quiet(3, lag=1)
    a, b, _ = world.nodes
    take(b, *[message(a.me, n) for n in range(1, 5)])
    take(b, gossip_of(a, {a.me: 6}, lacking=1 << 1))
    assert b.layer.store.of(a.me).low == 1, "b itself lacks message 5"
    entry = b.layer.cache.find(a.me, 1)
    assert entry is not None and entry.lacking == 1 << 1


def test_messages_are_forgotten_after_a_time_and_above_a_limit_of_bytes() -> None:
    store, origin = Store(3 * size_of(message(Address("A", "0"), 1))), Address("A", "0" * 16)
    for first in range(1, 6):
        store.keep(message(origin, first), first)
    assert store.of(origin).low == 3, "there is room for three"
    store.purge_older(5)
    assert store.of(origin).low == 5
    assert store.bytes_held == size_of(message(origin, 5))


def test_the_list_of_ages_does_not_outgrow_the_runs() -> None:
    store, origin = Store(1 << 30), Address("A", "0" * 16)
    for first in range(1, 1_000):
        store.keep(message(origin, first), first)
        store.purge(origin, first - 2)
    assert len(store.ages) < 100 and store.runs_kept <= 4


# -- PB-05, PB-06 and PB-07: gossips that are ignored


def test_PB_05_a_gossip_of_a_non_member_is_ignored_and_counted() -> None:
    world = quiet(3)
    a, b, _ = world.nodes
    stranger = Address("X", "9" * 16)
    take(b, structs.replace(gossip_of(a, {a.me: 9}), src=stranger))
    assert b.env.drops["gossip of a non-member"] == 1
    assert not b.layer.repair.wants and b.layer.store.of(a.me).known == 1
    assert any(isinstance(item, HeartbeatOf) for item in b.layer.below), "it may be in a view that this member lacks"


def test_a_gossip_of_an_unknown_view_is_ignored_and_its_view_is_reported() -> None:
    world = quiet(3)
    a, b, _ = world.nodes
    run = gossip_of(a, {a.me: 9})
    assert isinstance(run.head, Gossip)
    later = structs.replace(run.head, view=ViewId(7, a.me))
    take(b, Run(a.me, None, (later,)))
    assert b.env.drops["gossip of an unknown view"] == 1
    assert HeartbeatOf(a.me, ViewId(7, a.me)) in b.layer.below


def test_PB_06_a_gossip_is_handled_once() -> None:
    world = quiet(5)
    a, b, *_ = world.nodes
    take(b, message(a.me, 1))
    b.layer.below = []
    run = gossip_of(a, {a.me: 3})
    take(b, run)
    first = [type(item.head) for item in b.layer.below if isinstance(item, Run)]
    assert Lacks in first and Gossip in first
    b.layer.below = []
    take(b, run)
    assert b.layer.below == [], "no second request, and the gossip is not passed on again"
    assert b.env.counters["gossips again"] == 1


def test_PB_07_a_flood_of_gossips_is_cut_and_delays_no_message() -> None:
    world = quiet(3, gossip_queue=100)
    a, b, c = world.nodes
    for number in range(10_000):
        b.layer.up(gossip_of(a, {a.me: 2}, number))
        assert len(b.layer.queue) <= 100
        if number == 5_000:
            b.layer.up(message(c.me, 1))
            assert [item.origin for item in b.layer.above if isinstance(item, Run)] == [c.me], "it waits for no gossip"
    assert b.env.drops["gossip beyond the queue"] == 9_900


# -- requests and gaps


def test_requests_go_to_several_members() -> None:
    world = quiet(20)
    a = world.nodes[0]
    asked = set()
    for node in world.nodes[2:]:
        take(node, message(a.me, 2))
        world.now = 10 * SECOND
        node.env.now = world.now
        node.layer.timer()
        asked |= {run.dest for run in runs_to(node, Lacks)}
        world.now = 0
    assert len(asked) > 8, "a message that many lost is not requested from its sender alone"


def test_a_request_is_answered_with_one_run_at_least() -> None:
    """A run of 64 KiB of payloads, as TCP carries it, is larger than what one answer has otherwise."""
    world = quiet(3)
    a, b, _ = world.nodes
    for number in (1, 2):
        a.layer.down(message(a.me, number, bytes(ANSWER_BYTES)).pop())
    a.layer.below = []
    take(a, Run(b.me, a.me, (Lacks([(a.me, 1, 3)]),)))
    assert [run.first for run in runs_to(a, Data)] == [1]


def test_a_member_that_does_not_answer_is_followed_by_another() -> None:
    world = quiet(5)
    a, b, *_ = world.nodes
    take(b, message(a.me, 2))
    asked: list[Address | None] = []
    for tenth in range(1, 30):
        b.env.now = world.now = tenth * SECOND // 10
        b.layer.timer()
        asked += [run.dest for run in runs_to(b, Lacks)]
    assert len(set(asked[:4])) == 4


def test_PB_I2_a_message_that_nobody_has_is_announced() -> None:
    world = quiet(3)
    a, b, _ = world.nodes
    take(b, message(a.me, 4))
    b.env.now = world.now = SECOND
    b.layer.timer()
    (first,) = runs_to(b, Lacks)
    assert first.dest is not None
    assert take(b, Run(first.dest, b.me, (Purged([(a.me, 4)]),))) == []
    (second,) = runs_to(b, Lacks)
    assert second.dest is not None and second.dest != first.dest
    above = take(b, Run(second.dest, b.me, (Purged([(a.me, 4)]),)))
    assert above[0] == Gap(a.me, 1, 3, ()), "both others said that they do not have it"
    assert [item.first for item in above[1:] if isinstance(item, Run)] == [4]


def test_PB_I2_no_member_waits_for_ever() -> None:
    world = quiet(3, gossip_patience=3 * SECOND)
    a, b, _ = world.nodes
    take(b, message(a.me, 3))
    b.env.now = world.now = 4 * SECOND
    b.layer.timer()
    above = b.layer.above
    assert above[0] == Gap(a.me, 1, 2, ())
    assert [item.first for item in above[1:] if isinstance(item, Run)] == [3]
    assert not b.layer.repair.wants


@pytest.mark.parametrize(
    ("early", "known", "lows", "to"),
    [(4, 9, [], 4), (None, 9, [], 9), (None, 9, [6, 7], 6), (8, 9, [6, 20], 6), (8, 9, [1], 8)],
)
def test_a_member_goes_on_at_the_lowest_message_that_can_be_had(
    early: int | None, known: int, lows: list[int], to: int
) -> None:
    assert decide.skip_to(2, early, known, lows) == to


def test_a_member_that_was_cut_off_gets_the_rest_from_a_late_join_handler() -> None:
    world = GossipWorld(5, 0.0, gossip_keep=2 * SECOND, desired_avg_gossip=200 * MILLISECOND)
    handler, late = world.nodes[1], world.nodes[4]
    handler.layer.late, handler.layer.keep, handler.layer.lag = True, 600 * SECOND, 10_000
    world.send(20, 1, 2)
    world.run(3)  # the others know the handler by its gossips
    late.runs = False
    world.send(100, 1, 10)
    world.run(10)
    late.runs = True
    late.due = -1
    late.layer.wake = world.now
    late.settle()
    world.run(20)
    assert late.missed == 0 and late.delivered == 120


def test_a_member_that_was_cut_off_announces_what_nobody_holds() -> None:
    world = GossipWorld(5, 0.0, gossip_keep=2 * SECOND, desired_avg_gossip=200 * MILLISECOND)
    late = world.nodes[4]
    late.runs = False
    for _ in range(100):
        world.nodes[0].send()
        world.run(0.1)
    world.run(10)
    late.runs = True
    late.due = -1
    late.layer.wake = world.now
    late.settle()
    world.run(30)
    assert late.delivered + late.missed == 100 and late.missed > 50


# -- a joiner


def joiner(world: GossipWorld) -> tuple[Node, AgreedView]:
    """A node that gets its first view, with all members of `world`."""
    me = Address("J", "a" * 16)
    view = AgreedView(
        ViewId(2, world.view.members[0]), (*world.view.members, me), tuple(["m:1"] * (1 + len(world.nodes)))
    )
    node = Node(world, me, world.nodes[0].env.config)
    node.layer.up_event(NewView(view, None, (me,), view.members, (), True, None))
    return node, view


def test_a_joiner_begins_where_the_leader_of_its_view_is() -> None:
    world = quiet(2)
    a, b = world.nodes
    for _ in range(5):
        a.send()
    node, view = joiner(world)
    (request,) = runs_to(node, StartReq)
    assert request.dest == a.me
    assert node.layer.above == [], "the view waits for the starts"
    a.layer.up_event(NewView(view, world.view.id, (), (node.me,), (), True, None))
    a.layer.below = []
    take(a, structs.replace(request, src=node.me))
    (answer,) = runs_to(a, Starts)
    (event,) = take(node, answer)
    assert isinstance(event, NewView) and event.starts == {a.me: 6, b.me: 1, node.me: 1}
    (delivered,) = take(node, message(a.me, 6))
    assert isinstance(delivered, Run) and delivered.seq == 6


def test_a_joiner_asks_another_member_if_the_first_one_is_silent() -> None:
    world = quiet(4)
    node, _ = joiner(world)
    asked = [run.dest for run in runs_to(node, StartReq)]
    for turn in range(1, 9):
        node.env.now = turn * SECOND
        node.layer.timer()
        asked += [run.dest for run in runs_to(node, StartReq)]
    assert len(set(asked)) > 1
    node.env.now = 60 * SECOND
    node.layer.timer()
    assert isinstance(node.layer.above[0], NewView), "in the end it begins with the first message of each"


def test_what_came_behind_the_first_view_of_a_joiner_follows_it() -> None:
    world = quiet(2)
    node, view = joiner(world)
    one = Run(world.nodes[0].me, node.me, (), world.nodes[0].me, 1, 0, 1, pack([b"to one"]))
    node.layer.up(one)
    take(node, Run(world.nodes[0].me, node.me, (Starts(view.id, [1, 1, 1]),)))
    node.layer.up(one)
    assert node.layer.above == [one] or node.layer.above[-1] is one


def test_a_joiner_that_is_let_go_before_its_start_hands_up_all_its_views() -> None:
    world = quiet(2)
    node, view = joiner(world)
    later = structs.replace(view, id=ViewId(3, view.id.leader))
    node.layer.up_event(NewView(later, view.id, view.members, (), (), True, None))
    node.layer.up_event(Excluded("left", ""))
    above = node.layer.above
    assert [item.view.id.number for item in above if isinstance(item, NewView)] == [2, 3]
    assert isinstance(above[-1], Excluded) and node.layer.wake == NEVER


# -- order, own messages, and a program that reads slowly


def test_PB_I7_messages_come_in_the_order_of_their_sender() -> None:
    world = quiet(3)
    a, b, _ = world.nodes
    above = take(b, *[message(a.me, n) for n in (2, 4, 1, 3, 3, 1, 5)])
    firsts = [item.first for item in above if isinstance(item, Run)]
    assert firsts == [1, 2, 3, 4, 5]
    assert all(one < two for one, two in pairwise(firsts))


def test_own_messages_are_delivered_at_the_send() -> None:
    world = quiet(3)
    node = world.nodes[0]
    node.layer.down(Run(node.me, None, (), node.me, 1, 0, 2, pack([b"a", b"b"])))
    (run,) = node.layer.above
    assert isinstance(run, Run) and (run.stream, run.seq, run.count) == (node.me, 1, 2)


def test_a_program_that_does_not_read_limits_what_it_is_given() -> None:
    world = quiet(3, queue_max=10 * size_of(message(Address("A", "0"), 1)))
    a, b, _ = world.nodes
    delivered = take(b, *[message(a.me, n) for n in range(1, 31)])
    assert len(delivered) == 11
    assert b.env.drops["multicast that the application has no room for"] > 0
    b.layer.below = []
    world.now = b.env.now = 10 * SECOND
    b.layer.timer()
    assert not runs_to(b, Lacks), "it asks for nothing that it has no room for"
    b.layer.down_event(Consumed({a.me: 12}))
    assert not b.layer.unread.is_full
    world.now = b.env.now = 11 * SECOND
    b.layer.timer()
    assert runs_to(b, Lacks)


def test_a_member_that_leaves_gossips_once_more_and_answers_for_a_while() -> None:
    world = quiet(3)
    node = world.nodes[0]
    node.send()
    node.layer.below = []
    node.layer.down_event(Leave())
    kinds = [type(item.head) if isinstance(item, Run) else type(item) for item in node.layer.below]
    assert Gossip in kinds and Leave not in kinds
    node.layer.below = []
    node.env.now = 5 * SECOND
    node.layer.timer()
    assert any(isinstance(item, Leave) for item in node.layer.below)


# -- a handler that starts again


def stored(first: int, origin: Address) -> Run:
    return Run(origin, None, (), origin, first, 0, 1, pack([b"x"]), origin, first)


def restarted(stored: list[tuple[Run, int]], joined_at: int) -> Pbcast:
    """A late-join handler that has stored messages of another member, and begins with the message `joined_at` of it."""
    me, other = Address("H", "1" * 16), Address("A", "0" * 16)
    env = Env(me, 1_000, Random(1), Config(late_join_handler=1))
    env.stored, env.kept = stored, []
    layer = Pbcast(env)
    view = AgreedView(ViewId(2, other), (other, me), ("a:1", "h:1"))
    layer.up_event(NewView(view, None, view.members, (me,), (), True, None))
    layer.up(Run(other, me, (Starts(view.id, [joined_at, 1]),)))
    layer.end_turn()
    layer.below.clear()
    return layer


def answer(layer: Pbcast, other: Address, low: int, high: int) -> tuple[list[int], list[tuple[Address, int]]]:
    """The messages that the layer sends for a request, and what it says to hold no more."""
    layer.up(Run(other, layer.env.me, (Lacks([(other, low, high)]),)))
    layer.end_turn()
    sent, layer.below = layer.below, []
    runs = [one for one in sent if isinstance(one, Run)]
    lows = [low for one in runs if isinstance(one.head, Purged) for low in one.head.lows]
    return [one.first for one in runs if isinstance(one.head, Data)], lows


def test_a_handler_that_starts_again_sends_stored_messages() -> None:
    other = Address("A", "0" * 16)
    layer = restarted([(stored(number, other), 5) for number in range(3, 8)], joined_at=10)
    assert answer(layer, other, 3, 8) == ([3, 4, 5, 6, 7], [])
    assert answer(layer, other, 1, 4) == ([3], [(other, 3)])
    assert answer(layer, other, 7, 10) == ([7], [])
    assert answer(layer, other, 8, 10) == ([], [(other, 10)]), "it does not have those of the time when it did not run"
    layer.up(Run(other, None, (Data(),), other, 10, 0, 1, pack([b"x"])))
    assert layer.env.kept is not None and [one.first for one in layer.env.kept] == [10]
    assert answer(layer, other, 8, 11) == ([10], [(other, 10)])


def test_a_handler_uses_no_stored_message_that_it_may_deliver_again() -> None:
    other = Address("A", "0" * 16)
    layer = restarted([(stored(number, other), 5) for number in range(3, 8)], joined_at=5)
    assert answer(layer, other, 3, 5) == ([], [(other, 5)])


def test_a_handler_takes_no_messages_of_an_origin_that_it_has_only_stored() -> None:
    former = Address("Z", "2" * 16)
    layer = restarted([(stored(1, former), 5)], joined_at=1)
    layer.above.clear()
    layer.up(Run(former, None, (Data(),), former, 2, 0, 1, pack([b"x"])))
    assert layer.above == [] and layer.env.counters["drop multicast of a non-member"] == 1


def test_a_handler_announces_what_it_has_only_stored_of_a_member_that_comes_back() -> None:
    former, other = Address("Z", "2" * 16), Address("A", "0" * 16)
    layer = restarted([(stored(number, former), 5) for number in (1, 2)], joined_at=1)
    layer.above.clear()
    view = AgreedView(ViewId(3, other), (other, layer.env.me, former), ("a:1", "h:1", "z:1"))
    layer.up_event(NewView(view, layer.view and layer.view.id, view.members[:2], (former,), (), True, None))
    layer.up(Run(former, None, (Data(),), former, 3, 0, 1, pack([b"x"])))
    assert layer.above[1] == Gap(former, 1, 2, ())
    assert [item.first for item in layer.above if isinstance(item, Run)] == [3]
    assert answer(layer, other, 1, 2) == ([], []), "nothing of another member"
    assert answer(layer, former, 1, 3) == ([1, 2], [])


# -- members that are none any more


def test_a_gossip_names_former_members_in_turn_while_their_messages_are_kept() -> None:
    world = quiet(4, lag=1)
    node = world.nodes[0]
    gone = [Address(f"G{number:02}", "9" * 16) for number in range(FORMER_MAX + 2)]
    for name in gone:
        node.layer.store.begin(name, 1)
        node.layer.on_data(message(name, 1))
    node.send()
    named: dict[Address, None] = {}
    for _ in range(2):
        node.layer.below = []
        node.layer._gossip()
        digest = runs_to(node, Gossip)[0].head.digest  # type: ignore[union-attr]
        assert len(digest) == FORMER_MAX + 1 and (0, 2) in digest
        named |= {of: None for of, high in digest if isinstance(of, Address) and high == 2}
    assert sorted(named) == gone
    node.env.now = 60 * SECOND
    node.layer._gossip()
    assert runs_to(node, Gossip)[-1].head.digest == [(0, 2)]  # type: ignore[union-attr]


def test_a_member_that_never_met_a_former_member_lacks_nothing_of_it_and_says_so() -> None:
    world = quiet(3)
    a, b, c = world.nodes
    former = Address("Z", "2" * 16)
    head = gossip_of(a, {}).head
    assert isinstance(head, Gossip)
    take(b, Run(a.me, None, (structs.replace(head, digest=[(former, 9)]),)))
    assert not b.layer.repair.wants and b.layer.cache.find(a.me, 1).lacking == 1 << 2  # type: ignore[union-attr]
    b.layer.below = []
    take(b, Run(c.me, b.me, (Lacks([(former, 3, 9)]),)))
    (refusal,) = runs_to(b, Purged)
    assert refusal.head == Purged([(former, 9)])


def test_a_handler_forgets_stored_messages_that_are_too_old() -> None:
    other = Address("A", "0" * 16)
    layer = restarted([(stored(3, other), LATE_KEEP), (stored(4, other), LATE_KEEP - 1)], joined_at=9)
    assert answer(layer, other, 3, 5) == ([4], [(other, 4)])
