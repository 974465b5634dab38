"""NAKACK alone, by hand, and under a network that loses, repeats and reorders.  The conversations: text/nakack."""

from __future__ import annotations

import random
from itertools import pairwise

import msgspec
import pytest

from pygroups.core.address import Address
from pygroups.core.events import Event, Excluded, Fetch, Held, HeldQuery, NewView, Served, Stability, Stop
from pygroups.core.layer import NEVER, Env
from pygroups.core.limits import SECOND, XMIT_RANGES_MAX, Config
from pygroups.core.run import Run, pack
from pygroups.core.suspicion_events import Suspect
from pygroups.core.view import AgreedView, Ballot, ViewId
from pygroups.layers.flush import Flush
from pygroups.layers.nakack import Data, HighestSeq, Nakack, XmitReq
from pygroups.layers.streams.stream import UNLIMITED
from pygroups.wire.codec import Codec
from tests.layers.streams_world import Network, World

A, B, C, D = (Address(name, f"{number:016x}") for number, name in enumerate("ABCD", 1))
VIEW = AgreedView(ViewId(1, A), (A, B, C), ("a", "b", "c"))
DATAGRAM = 1_400


def view_event(view: AgreedView) -> NewView:
    return NewView(view, None, (view.members[0],), view.members, (), True, None)


def layer(me: Address = C, view: AgreedView | None = VIEW, config: Config | None = None) -> Nakack:
    nakack = Nakack(Env(me, 0, random.Random(1), config or Config()))
    if view is not None:
        nakack.up_event(view_event(view))
        nakack.above.clear()
    return nakack


def data(seq: int, stream: Address = A, origin: Address | None = None, view: AgreedView = VIEW) -> Run:
    """Run number `seq` of `stream`, as its member multicast it."""
    origin = origin or stream
    head = Data(view.id, stream, seq)
    return Run(stream, None, (head,), origin, seq + 1, 0, 1, pack([b"%d" % seq]))


def delivered(nakack: Nakack) -> list[tuple[Address | None, int]]:
    """What was handed up since the last call."""
    items, nakack.above = nakack.above, []
    return [(item.stream, item.seq) for item in items if isinstance(item, Run)]


def sent(nakack: Nakack) -> list[tuple[Address | None, object]]:
    """Who was sent what since the last call."""
    items, nakack.below = nakack.below, []
    return [(item.dest, item.head) for item in items if isinstance(item, Run)]


def advance(nakack: Nakack, to: int) -> None:
    while nakack.wake <= to:
        nakack.env.now = max(nakack.env.now, nakack.wake)
        nakack.timer()
        assert nakack.wake > nakack.env.now
    nakack.env.now = to


def drops(nakack: Nakack) -> dict[str, int]:
    return nakack.env.drops


# -- what is kept, and whom it names


def test_what_is_kept_still_names_who_multicast_it() -> None:
    """The seed's shallow copy: B wrote it, the sequencer A multicast it, C keeps it and B's name is not A's."""
    nakack = layer()
    nakack.up(data(0, stream=A, origin=B))
    (up,) = nakack.above
    assert isinstance(up, Run)
    assert (up.stream, up.seq, up.src, up.origin, up.heads) == (A, 0, A, B, ())
    kept = nakack.streams.by_name[A].runs[0]
    assert (kept.src, kept.origin, kept.head) == (A, B, Data(VIEW.id, A, 0))


def test_a_run_that_was_sent_again_looks_like_the_one_that_was_lost() -> None:
    first = data(0, stream=A, origin=B)
    here, there = layer(C), layer(B)
    here.up(first)
    here.up(Run(B, C, (XmitReq(VIEW.id, A, ((0, 1),)),)))
    (again,) = (item for item in here.below if isinstance(item, Run))
    assert (again.src, again.dest, again.origin, again.body) == (C, B, B, first.body)
    there.up(again)
    (up,) = there.above
    assert isinstance(up, Run)
    assert (up.stream, up.seq, up.src, up.dest, up.origin) == (A, 0, A, None, B)
    assert there.streams.by_name[A].runs[0].src == A


def test_a_further_multicast_puts_the_announcement_off_and_wakes_nobody() -> None:
    nakack, period = layer(A), Config().nakack_period
    for now in range(0, 10 * period, period):
        nakack.env.now = now
        nakack.down(Run(A, None, (), A, now + 1, 0, 1, pack([b"a"])))
        assert nakack.wake == now + period * 3 // 2
    nakack.up(data(1, stream=B))
    assert nakack.wake == nakack.env.now  # a hole is looked at at once
    advance(nakack, nakack.env.now)
    asks_at = nakack.wake
    assert asks_at <= nakack.env.now + period
    nakack.down(Run(A, None, (), A, nakack.env.now + 2, 0, 1, pack([b"a"])))
    assert nakack.wake == asks_at


def test_a_hole_is_asked_of_the_stream_and_not_of_the_origin() -> None:
    """M5: the origin never multicast it, and has it in no stream of its own."""
    nakack = layer()
    nakack.up(data(0, stream=A, origin=B))
    nakack.up(data(2, stream=A, origin=B))
    advance(nakack, 20_000)
    assert sent(nakack) == [(A, XmitReq(VIEW.id, A, ((1, 2),)))]


def test_any_holder_answers_also_for_what_it_has_beyond_a_hole() -> None:
    nakack = layer()
    nakack.up(data(2))
    nakack.up(Run(B, C, (XmitReq(VIEW.id, A, ((0, UNLIMITED),)),)))
    assert sent(nakack) == [(B, Data(VIEW.id, A, 2))]


def test_one_request_is_answered_with_each_run_once() -> None:
    nakack = layer()
    for seq in range(3):
        nakack.up(data(seq))
    nakack.up(Run(B, C, (XmitReq(VIEW.id, A, ((0, 2), (1, 3), (0, UNLIMITED), (2, 1))),)))
    assert [head for _, head in sent(nakack)] == [Data(VIEW.id, A, seq) for seq in range(3)]


def test_who_is_no_member_gets_nothing() -> None:
    nakack = layer()
    nakack.up(data(0))
    nakack.up(Run(D, C, (XmitReq(VIEW.id, A, ((0, 1),)),)))
    assert sent(nakack) == []
    assert drops(nakack) == {"request of no member": 1}


def test_nobody_else_sends_in_our_stream() -> None:
    nakack = layer(A)
    nakack.up(data(0, stream=A))
    assert delivered(nakack) == []
    assert drops(nakack) == {"run of another member in the own stream": 1}
    nakack.down(Run(A, None, (), A, 1, 0, 1, pack([b"x"])))
    assert delivered(nakack) == [(A, 0)]


def test_a_number_without_payload_is_counted_and_not_handed_up() -> None:
    nakack = layer()
    nakack.up(data(1))
    nakack.up(Run(A, None, (Data(VIEW.id, A, 0),)))
    assert delivered(nakack) == [(A, 1)]
    assert nakack.env.counters["runs without payload"] == 1


# -- bounds


def test_what_is_far_ahead_is_dropped_and_asked_for_when_its_turn_comes() -> None:
    nakack = layer(config=Config(nakack_early_max=4))
    for seq in (1, 3, 4, 1_000_000):
        nakack.up(data(seq))
    assert drops(nakack) == {"run too far ahead": 2}
    assert nakack.gauges()["early"] == 2
    advance(nakack, 20_000)
    assert sent(nakack) == [(A, XmitReq(VIEW.id, A, ((0, 1), (2, 3))))], "not beyond what it would take"
    for seq in (0, 2):
        nakack.up(data(seq))
    advance(nakack, 60_000)
    assert sent(nakack)[-1] == (A, XmitReq(VIEW.id, A, ((4, 8),)))


def test_runs_of_later_views_are_kept_up_to_a_limit() -> None:
    later = AgreedView(ViewId(2, A), VIEW.members, VIEW.contacts)
    nakack = layer(config=Config(future_runs_max=3))
    for seq in range(5):
        nakack.up(data(seq, view=later))
    assert nakack.gauges()["future"] == 3
    assert drops(nakack) == {"too many runs of a later view": 2}
    nakack.up_event(view_event(later))
    assert delivered(nakack) == [(A, 0), (A, 1), (A, 2)]
    assert nakack.gauges()["future"] == 0


def test_runs_of_later_views_are_bounded_in_bytes_too() -> None:
    """Another process can send runs of views to come: they may not fill the memory."""
    later = AgreedView(ViewId(2, A), VIEW.members, VIEW.contacts)
    size = len(data(0).body)
    nakack = layer(config=Config(future_bytes=3 * size))
    for seq in range(5):
        nakack.up(data(seq, view=later))
    assert nakack.gauges()["future"] == 3
    assert drops(nakack) == {"too many runs of a later view": 2}
    nakack.up_event(view_event(later))
    assert delivered(nakack) == [(A, 0), (A, 1), (A, 2)]
    for seq in range(3):
        nakack.up(data(seq, view=AgreedView(ViewId(3, A), VIEW.members, VIEW.contacts)))
    assert nakack.gauges()["future"] == 3, "there is room for as many again"


@pytest.mark.parametrize("limit", ["nakack_answer_runs", "nakack_answer_bytes"])
def test_answers_are_limited_per_period_and_asker(limit: str) -> None:
    """A request names many runs: a few are sent again now, and the next ones when the asker asks again."""
    few = 3 if limit == "nakack_answer_runs" else 3 * len(data(0).body)
    nakack = layer(config=Config(**{limit: few}))
    for seq in range(8):
        nakack.up(data(seq))
    request = XmitReq(VIEW.id, A, ((0, UNLIMITED),))
    nakack.up(Run(B, C, (request,)))
    nakack.up(Run(B, C, (request,)))
    assert [head for _, head in sent(nakack)] == [Data(VIEW.id, A, seq) for seq in range(3)]
    assert drops(nakack) == {"requests for more runs than are sent at once": 2}
    nakack.up(Run(A, C, (request,)))
    assert len(sent(nakack)) == 3, "of another asker nothing was sent before"
    nakack.env.now += nakack.env.config.nakack_period
    nakack.up(Run(B, C, (XmitReq(VIEW.id, A, ((3, UNLIMITED),)),)))
    assert [head for _, head in sent(nakack)] == [Data(VIEW.id, A, seq) for seq in range(3, 6)]


def test_a_run_larger_than_the_limit_of_answers_is_sent_again_alone() -> None:
    nakack = layer(config=Config(nakack_answer_bytes=1))
    for seq in range(2):
        nakack.up(data(seq))
    nakack.up(Run(B, C, (XmitReq(VIEW.id, A, ((0, 2),)),)))
    assert [head for _, head in sent(nakack)] == [Data(VIEW.id, A, 0)]


def test_members_that_lost_the_same_run_do_not_repeat_their_requests_together() -> None:
    """Back-off with jitter: the first request leaves after a period; its repetitions at times of their own."""
    asked_at: list[tuple[int, ...]] = []
    for seed in range(20):
        nakack = Nakack(Env(C, 0, random.Random(seed), Config()))
        nakack.up_event(view_event(VIEW))
        nakack.up(data(1))
        times = []
        while nakack.env.now < 5 * SECOND:
            advance(nakack, nakack.wake)
            times += [nakack.env.now] * len(sent(nakack))
        asked_at.append(tuple(times))
    assert {times[0] for times in asked_at} == {20_000}
    assert len({times[-1] for times in asked_at}) > 10
    pauses = [later - sooner for times in asked_at for sooner, later in pairwise(times)]
    assert max(pauses) <= 520_000 and min(pauses[-1:]) >= 370_000


def test_before_the_first_view_runs_are_kept_and_questions_answered() -> None:
    nakack = layer(view=None)
    nakack.up(data(0))
    nakack.up(Run(A, C, (HighestSeq(VIEW.id, 1),)))
    nakack.down_event(HeldQuery(Flush))
    assert nakack.above == [Held(Flush, {}, {})]
    nakack.above.clear()
    nakack.up_event(view_event(VIEW))
    assert delivered(nakack) == [(A, 0)]


@pytest.mark.parametrize("missing", [7, 64, 200])
def test_a_request_asks_for_few_runs_and_goes_on_when_they_have_come(missing: int) -> None:
    nakack = layer(config=Config(nakack_request_runs=50))
    nakack.up(data(missing))
    advance(nakack, 20_000)
    asked: list[int] = []
    while requests := sent(nakack):
        ((peer, request),) = requests
        assert isinstance(request, XmitReq) and peer == A
        ((low, high),) = request.ranges
        assert high - low <= 50
        asked += range(low, high)
        for seq in range(low, high):
            nakack.up(data(seq))
    assert asked == list(range(missing)), "all of them, each once, without waiting for a period in between"


def test_a_request_fits_a_datagram() -> None:
    """NAK-I4, with the longest names and numbers there are."""
    longest = Address("n" * 64, "f" * 16)
    other = Address("m" * 64, "e" * 16)
    ranges = tuple((UNLIMITED - 2 * n - 1, UNLIMITED - 2 * n) for n in range(XMIT_RANGES_MAX))
    request = XmitReq(ViewId(1 << 62, longest), other, ranges)
    (frame,) = Codec("g" * 64, Nakack.heads).encode(longest, other, [Run(longest, other, (request,))])
    assert len(frame) <= DATAGRAM
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(
            msgspec.msgpack.encode(XmitReq(VIEW.id, A, (*ranges, (0, 1)))),
            type=XmitReq,
        )


def test_many_holes_make_requests_of_many_ranges_and_no_more() -> None:
    nakack = layer(config=Config(nakack_request_runs=1_000))
    for seq in range(1, 200, 2):
        nakack.up(data(seq))
    advance(nakack, 20_000)
    ((_, request),) = sent(nakack)
    assert isinstance(request, XmitReq)
    assert request.ranges == tuple((seq, seq + 1) for seq in range(0, 2 * XMIT_RANGES_MAX, 2))


# -- suspicion, the flush, the end


def test_who_is_suspected_is_not_asked() -> None:
    nakack = layer()
    nakack.up_event(Suspect(A, False))
    nakack.up(data(1))
    advance(nakack, 10 * SECOND)
    assert {peer for peer, _ in sent(nakack)} == {B}


def test_a_suspicion_does_not_outlive_the_membership() -> None:
    nakack = layer()
    nakack.up_event(Suspect(B, True))
    nakack.up_event(view_event(AgreedView(ViewId(2, A), (A, C), ("a", "c"))))
    assert nakack.streams.holes.suspects == {}


def test_after_the_stop_nothing_new_is_sent_and_nothing_announced() -> None:
    nakack = layer(A)
    nakack.down(Run(A, None, (), A, 1, 0, 1, pack([b"x"])))
    nakack.up_event(Stop(Ballot(2, B)))
    sent(nakack)
    advance(nakack, 10 * SECOND)
    assert sent(nakack) == [] and nakack.wake == NEVER
    with pytest.raises(AssertionError, match="about to end"):
        nakack.down(Run(A, None, (), A, 2, 0, 1, pack([b"y"])))


def test_a_stopped_member_asks_for_nothing_but_what_is_fetched() -> None:
    nakack = layer()
    nakack.up(data(1))
    nakack.up_event(Stop(Ballot(2, B)))
    nakack.up(Run(A, C, (HighestSeq(VIEW.id, 9),)))
    advance(nakack, 10 * SECOND)
    assert sent(nakack) == []
    nakack.down_event(Fetch(A, 0, 2, B))
    assert sent(nakack) == [(B, XmitReq(VIEW.id, A, ((0, 1),)))]


def test_what_is_beyond_the_fetch_is_not_handed_up() -> None:
    nakack = layer()
    for seq in (1, 3):
        nakack.up(data(seq))
    nakack.up_event(Stop(Ballot(2, B)))
    nakack.down_event(Fetch(A, 0, 3, B))
    nakack.above.clear()
    for seq in (0, 2, 3, 4):
        nakack.up(data(seq))
    assert [item for item in nakack.above if isinstance(item, Event)] == [Served(A, 3)]
    assert delivered(nakack) == [(A, 0), (A, 1), (A, 2)]


def test_a_fetch_of_many_holes_goes_on_as_the_answers_come() -> None:
    """More ranges than a request holds: the next request leaves when the last one's answers are there."""
    end = 4 * XMIT_RANGES_MAX
    nakack = layer()
    for seq in range(1, end, 2):
        nakack.up(data(seq))
    nakack.up_event(Stop(Ballot(2, B)))
    nakack.above.clear()
    nakack.down_event(Fetch(A, 0, end, B))
    while requests := sent(nakack):
        ((_, request),) = requests
        assert isinstance(request, XmitReq)
        for low, high in request.ranges:
            for seq in range(low, high):
                nakack.up(data(seq))
    assert nakack.above[-1] == Served(A, end)
    assert nakack.env.now == 0, "no period was waited for"


def test_whoever_is_out_holds_nothing_and_waits_for_nothing() -> None:
    nakack = layer()
    nakack.up(data(0))
    nakack.up(data(2))
    nakack.up(data(0, view=AgreedView(ViewId(2, A), VIEW.members, VIEW.contacts)))
    nakack.up_event(Excluded("left", ""))
    assert set(nakack.gauges().values()) == {0}
    assert nakack.wake == NEVER


def test_only_what_is_stable_is_forgotten() -> None:
    nakack = layer()
    for seq in range(5):
        nakack.up(data(seq))
    nakack.down_event(Stability({A: 3, B: 0, C: 0}, {A: 5, B: 0, C: 0}, 1, 1))
    assert sorted(nakack.streams.by_name[A].runs) == [3, 4]
    assert nakack.below == [], "the layers below have nothing to do with it"


# -- the fetch


@pytest.mark.parametrize("seed", range(20))
def test_those_who_fetch_to_one_cut_leave_with_the_same(seed: int) -> None:
    """A dies in the middle of sending; B and C stop at different times and fetch from each other."""
    config = Config(runs_in_flight=100)  # so that each message is a run
    world = World("ABC", seed=seed, config=config, network=Network(loss=0.3, repeat=0.2, delay_max=30_000))
    world.install("ABC", 1)
    for number in range(40):
        for name in "ABC":
            world.send(name, number)
        world.run(world.now + world.rng.randint(0, 3_000))
    world["A"].alive = False
    ballot = Ballot(2, world["B"].address)
    for name in "BC":
        world.happened(name, Stop(ballot))
        world[name].stack.asked(HeldQuery(Flush), world.now)
        world.run(world.now + world.rng.randint(0, 20_000))
        world.end_turn(world[name])
    held = {name: next(e.held for e in world[name].told if isinstance(e, Held)) for name in "BC"}
    cut = {stream: max(held[name][stream] for name in "BC") for stream in held["B"]}
    for name in "BC":
        for stream, high in cut.items():
            holder = "B" if held["B"][stream] >= held["C"][stream] else "C"
            world[name].stack.asked(Fetch(stream, 0, high, world[holder].address), world.now)
        world.end_turn(world[name])
    world.run(world.now + 20 * SECOND)
    for name in "BC":
        served = {event.stream: event.high for event in world[name].told if isinstance(event, Served)}
        assert served == cut
    for origin in "ABC":
        assert world["B"].numbers(origin) == world["C"].numbers(origin)
        assert world["B"].numbers(origin) == list(range(cut[world[origin].address]))


def test_stability_that_comes_with_the_end_is_of_nothing() -> None:
    nakack = layer()
    nakack.up(data(0))
    nakack.up_event(Excluded("excluded", ""))
    nakack.down_event(Stability({A: 1, B: 0, C: 0}, {A: 1, B: 0, C: 0}, 1, 1))
    assert nakack.streams.by_name == {}
