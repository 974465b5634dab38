"""Numbered streams without NAKACK: when a hole is asked for, and a layer of other heads whose member A numbers all."""

from __future__ import annotations

import random
from typing import Annotated, ClassVar

import msgspec
import pytest
from msgspec import Meta

from pygroups.core.address import Address
from pygroups.core.events import Fetch, Held, HeldQuery, Served, Stability
from pygroups.core.layer import NEVER, Env, Layer
from pygroups.core.limits import MILLISECOND, XMIT_RANGES_MAX, Config
from pygroups.core.run import Run, pack
from pygroups.core.view import ViewId
from pygroups.layers.flush import Flush
from pygroups.layers.streams.stream import Stream
from pygroups.layers.streams.view_streams import ViewStreams

A, B, C, D = (Address(name, f"{number:016x}") for number, name in enumerate("ABCD", 1))
ONE, TWO = ViewId(1, A), ViewId(2, A)
PERIOD = Config().nakack_period
LATER = 10 * PERIOD


def stream_that_lacks(low: int, high: int) -> Stream:
    """A stream that has all below `low`, lacks [low, high) and has number `high`."""
    stream = Stream()
    for seq in range(low):
        stream.append(run_of(seq))
    stream.put(high, run_of(high))
    return stream


def run_of(seq: int, src: Address = A, dest: Address | None = None, view: ViewId = ONE) -> Run:
    return Run(src, dest, (Bcast(view, seq),), B, seq + 1, 0, 1, pack([b"%d" % seq]))


class Bcast(msgspec.Struct, array_like=True, frozen=True, tag=200):
    """From the member that numbers all multicasts of the view."""

    view: ViewId
    seq: int


class Resend(msgspec.Struct, array_like=True, tag=201):
    """To any member: send these again."""

    view: ViewId
    stream: Address
    ranges: Annotated[tuple[tuple[int, int], ...], Meta(max_length=XMIT_RANGES_MAX)]


class OneNumbers(Layer):
    """A layer whose view has one stream, that of the member A."""

    heads: ClassVar[tuple[type, ...]] = (Bcast, Resend)

    def __init__(self, me: Address, config: Config | None = None) -> None:
        super().__init__(Env(me, 0, random.Random(1), config or Config()))
        self.streams = ViewStreams(self, Resend)
        self.install(ONE)

    def install(self, view: ViewId) -> None:
        self.streams.begin(view, (A, B, C), names=[A])
        for run in self.streams.take_future():
            self.up(run)

    def down(self, run: Run) -> None:
        sent = run.push(Bcast(ONE, self.streams.own.next))
        self.streams.number(sent)
        self.below.append(sent)

    def up(self, run: Run) -> None:
        head = run.head
        if isinstance(head, Bcast):
            above = self.streams.take(head.view, A, head.seq, run)
            if above is not None:
                self.above.append(above)
        elif isinstance(head, Resend):
            self.streams.requested(head.view, head.stream, head.ranges, run)

    def timer(self) -> None:
        self.streams.check_holes()
        self.wake = self.streams.next_check()

    def wait(self, duration: int) -> None:
        """Let time pass, and fire what is due on the way."""
        until = self.env.now + duration
        while self.wake <= until:
            self.env.now = max(self.env.now, self.wake)
            self.timer()
        self.env.now = until

    def handed_up(self) -> list[int]:
        """The numbers of the runs that were handed up since the last call; all must be of A's stream."""
        items, self.above = self.above, []
        runs = [item for item in items if isinstance(item, Run)]
        assert all(run.stream == A for run in runs)
        return [run.seq for run in runs]

    def sent(self) -> list[tuple[Address | None, object]]:
        """What was sent since the last call, and to which member."""
        items, self.below = self.below, []
        return [(item.dest, item.head) for item in items if isinstance(item, Run)]


# -- when a hole is asked for: the table of docs/layers/streams.md


@pytest.mark.parametrize(
    ("fetched", "progressed", "pause_is_over", "asked_from"),
    [
        (True, True, False, None),
        (True, True, True, None),
        (True, False, False, None),
        (True, False, True, 2),
        (False, True, True, 2),
        (False, False, True, 2),
        (False, True, False, 5),
        (False, False, False, 5),
    ],
)
def test_when_a_hole_is_asked_for(fetched: bool, progressed: bool, pause_is_over: bool, asked_from: int | None) -> None:
    stream = stream_that_lacks(2, 9)
    stream.fetch = Fetch(A, 0, 9, B) if fetched else None
    stream.asked, stream.progressed, stream.again_at = 5, progressed, LATER
    assert stream.ask_from(LATER if pause_is_over else LATER - 1) == asked_from


@pytest.mark.parametrize(
    ("ripe", "limit", "fetch", "low", "ranges"),
    [
        (0, 100, None, 2, []),  # no hole is older than a period
        (9, 100, None, 2, [(2, 9)]),
        (4, 100, None, 2, [(2, 4)]),  # the rest of the hole is younger
        (9, 100, None, 6, [(6, 9)]),  # below was asked for
        (9, 2, None, 2, []),  # stopped
        (0, 100, 12, 2, [(2, 9), (10, 12)]),  # fetched: all of it, however young, and beyond what was heard of
    ],
)
def test_what_one_request_names(
    ripe: int, limit: int, fetch: int | None, low: int, ranges: list[tuple[int, int]]
) -> None:
    stream = stream_that_lacks(2, 9)
    stream.ripe, stream.limit = ripe, limit
    stream.fetch = Fetch(A, 0, fetch, B) if fetch is not None else None
    assert stream.to_ask_for(low, Config()) == ranges


def test_a_request_for_the_lowest_hole_doubles_the_pause_up_to_a_limit() -> None:
    config = Config(nakack_period=20 * MILLISECOND, nakack_backoff_max=50 * MILLISECOND)
    stream, now, pauses = stream_that_lacks(2, 9), 0, []
    for _ in range(4):
        stream.note_asked(2, 9, now, config, 0.0)
        pauses.append(stream.again_at - now)
        now = stream.again_at
    assert pauses == [20_000, 40_000, 50_000, 50_000]
    assert stream.tries == 4
    stream.note_asked(5, 9, now, config, 0.0)  # not the lowest: its own pause goes on
    assert (stream.again_at, stream.tries) == (now, 4)
    stream.anew(config.nakack_period)
    assert (stream.pause, stream.tries, stream.again_at) == (20_000, 0, 0)


def test_the_pause_of_the_first_request_is_a_period() -> None:
    stream = stream_that_lacks(0, 1)
    stream.note_asked(0, 1, 7, Config(), 0.0)
    assert stream.again_at == 7 + PERIOD


# -- a layer of other heads, in which one member numbers all


def test_the_member_that_numbers_hands_up_its_own_at_once() -> None:
    layer = OneNumbers(A)
    for number in (1, 2):
        layer.down(Run(A, None, (), A, number, 0, 1, pack([b"x"])))
    assert layer.handed_up() == [0, 1]
    assert layer.sent() == [(None, Bcast(ONE, 0)), (None, Bcast(ONE, 1))]


def test_a_member_without_a_stream_of_its_own_asks_the_one_that_numbers_and_then_any_other() -> None:
    layer = OneNumbers(C)
    for seq in (0, 3):
        layer.up(run_of(seq))
    layer.wait(PERIOD)
    assert layer.sent() == [(A, Resend(ONE, A, ((1, 3),)))]
    layer.streams.holes.suspects[A] = None
    layer.wait(PERIOD)
    assert layer.sent() == [(B, Resend(ONE, A, ((1, 3),)))]
    layer.up(run_of(2, src=B, dest=C))
    layer.up(run_of(1, src=B, dest=C))
    assert layer.handed_up() == [0, 1, 2, 3]
    assert (layer.streams.by_name[A].runs[1].src, layer.streams.by_name[A].runs[1].dest) == (A, None)
    assert layer.streams.next_check() == NEVER


def test_any_member_answers_members_and_nobody_else() -> None:
    layer = OneNumbers(B)
    layer.up(run_of(0))
    for asker in (C, D, C):
        layer.up(Run(asker, B, (Resend(ONE, A, ((0, 5),)),)))
    assert layer.sent() == [(C, Bcast(ONE, 0))]  # once: the second request of C is as old as the first
    assert layer.env.drops == {"request of no member": 1}


def test_an_answer_that_waits_in_the_lane_is_not_sent_again_until_it_has_arrived() -> None:
    layer = OneNumbers(B)
    layer.up(run_of(0))
    request = Run(C, B, (Resend(ONE, A, ((0, 5),)),))
    layer.up(request)
    assert layer.sent() == [(C, Bcast(ONE, 0))]
    layer.streams.answers.waits(C, Bcast(ONE, 0))
    for _ in range(3):
        layer.wait(LATER)
        layer.up(request)
    assert layer.sent() == []
    layer.up(Run(A, B, (Resend(ONE, A, ((0, 5),)),)))
    assert layer.sent() == [(A, Bcast(ONE, 0))]  # another asker
    layer.streams.answers.arrived(C, [Bcast(ONE, 0)])
    layer.up(request)
    assert layer.sent() == [(C, Bcast(ONE, 0))]  # it lacks the run all the same: it dropped what arrived


def test_the_flush_stops_asks_and_fetches() -> None:
    layer = OneNumbers(C)
    layer.up(run_of(0))
    layer.streams.stop()
    layer.up(run_of(1))
    assert layer.handed_up() == [0]
    assert layer.env.drops == {"run after the stop": 1}
    layer.streams.held(HeldQuery(Flush))
    assert layer.above == [Held(Flush, {A: 1}, {A: 1})]
    layer.above.clear()
    layer.streams.fetch(Fetch(A, 0, 2, B))
    assert layer.sent() == [(B, Resend(ONE, A, ((1, 2),)))]
    layer.up(run_of(1, src=B, dest=C))
    layer.up(run_of(2))
    assert [item.seq if isinstance(item, Run) else item for item in layer.above] == [1, Served(A, 2)]


def test_what_all_have_is_forgotten_and_what_some_member_has_is_asked_for() -> None:
    layer = OneNumbers(C)
    layer.up(run_of(0))
    layer.streams.stability(Stability({A: 1}, {A: 2}, 0, 0))
    assert layer.streams.by_name[A].held == 0
    layer.wait(PERIOD)
    assert layer.sent() == [(A, Resend(ONE, A, ((1, 2),)))]


def test_runs_of_the_next_view_wait_for_it() -> None:
    layer = OneNumbers(C)
    layer.up(run_of(0, view=TWO))
    assert layer.handed_up() == []
    layer.install(TWO)
    assert layer.handed_up() == [0]
    assert layer.streams.gauges() == {"stored": 1, "early": 0, "future": 0, "fetching": 0}


def test_an_announcement_is_asked_for_at_once() -> None:
    layer = OneNumbers(C)
    layer.streams.announced(ONE, A, 2, run_of(0))
    assert layer.sent() == [(A, Resend(ONE, A, ((0, 2),)))]
