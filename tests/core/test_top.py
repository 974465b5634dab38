"""The top: runs form, are numbered, delivered and written down; own messages arrive; a member leaves."""

from __future__ import annotations

import random
from collections.abc import Set

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.columns import checksum
from pygroups.core.errors import UsageError
from pygroups.core.events import (
    Blocked,
    Event,
    Excluded,
    Freed,
    FreedTo,
    Gap,
    Gone,
    Leave,
    NewView,
    Stability,
    Unblocked,
    Undelivered,
)
from pygroups.core.layer import NEVER, Env
from pygroups.core.limits import ENTRY_BYTES, RUN_MESSAGES_MAX, Config
from pygroups.core.run import Run, pack, unpack
from pygroups.core.suspicion_events import Suspect
from pygroups.core.top import Delivered, Reached, Top
from pygroups.core.view import AgreedView, ViewId

A, B, C = (Address(name, "0" * 16) for name in "ABC")


class Bench:
    """A top alone; the test plays the layers below and the application."""

    def __init__(
        self, *, services: Set[str] = frozenset(), view: bool = True, journaling: bool = True, **config: int
    ) -> None:
        self.env = Env(A, 0, random.Random(1), Config(**config), journaling=journaling)
        self.env.services |= services
        self.top = Top(self.env)
        self.stream_next: dict[Address, int] = {}
        if view:
            self.view(1, A, B)
            self.turn()
            self.records()

    def view(self, number: int, *members: Address, **more: object) -> NewView:
        view = AgreedView(ViewId(number, members[0]), members, tuple(m.name for m in members))
        fields: dict[str, object] = {"previous": None, "starts": None} | more
        event = NewView(view, transitional=(A,), joined=(A,), left=(), primary=True, **fields)  # type: ignore[arg-type]
        self.top.up_event(event)
        return event

    def turn(self) -> tuple[list[Run], list[Run | Event]]:
        """End the turn: the runs that were cut, and all that came out at the top."""
        self.top.end_turn()
        below, self.top.below = self.top.below, []
        above, self.top.above = self.top.above, []
        self.asked = [item for item in below if not isinstance(item, Run)]
        return [item for item in below if isinstance(item, Run)], above

    def cut(self) -> list[Run]:
        return self.turn()[0]

    def deliver(self, run: Run) -> None:
        """The layers below bring `run` back as the next of its origin's stream."""
        assert run.origin is not None
        seq = self.stream_next.get(run.origin, 0)
        self.stream_next[run.origin] = seq + 1
        self.top.up(run.push("nakack").placed(run.origin, seq))

    def records(self, *kinds: str) -> list[dict[str, object]]:
        records, self.env.records = self.env.records, []
        return [fields | {"kind": kind} for kind, _, fields in records if not kinds or kind in kinds]


def from_b(first: int, *payloads: bytes) -> Run:
    return Run(B, None, (), B, first, 0, len(payloads), pack(payloads))


# -- runs form


def test_a_lone_message_goes_at_once() -> None:
    bench = Bench()
    assert bench.top.accept(b"x") == 1
    (run,) = bench.cut()
    assert (run.src, run.dest, run.heads, run.origin, run.first, run.count) == (A, None, (), A, 1, 1)
    assert unpack(run.body) == [b"x"]
    assert bench.cut() == [], "nothing is cut twice"


def test_what_is_accepted_in_one_turn_is_one_run() -> None:
    bench = Bench()
    assert [bench.top.accept(payload) for payload in (b"x", b"y", b"")] == [1, 2, 3]
    (run,) = bench.cut()
    assert (run.first, run.count, unpack(run.body)) == (1, 3, [b"x", b"y", b""])


def test_a_full_run_is_cut_within_the_turn_however_many_are_in_flight() -> None:
    bench = Bench(run_bytes=1_000, window=100_000, runs_in_flight=1)
    for _ in range(10):
        bench.top.accept(bytes(300))
    assert [run.count for run in bench.top.below if isinstance(run, Run)] == [3, 3, 3]
    assert bench.cut()[-1].count == 3, "the last one is not full, and three are in flight"
    assert bench.top.gauges() == {"unsent": 1, "in_flight": 3}


def test_a_run_takes_so_many_messages_and_no_more() -> None:
    bench = Bench(run_bytes=1_000, window=100_000)
    bench.top.open.payloads = [b""] * (RUN_MESSAGES_MAX - 1)  # sizes alone never let it come to this
    bench.top.accept(b"last")
    assert bench.top.below == []
    bench.top.accept(b"first")
    (run,) = (item for item in bench.top.below if isinstance(item, Run))
    assert run.count == RUN_MESSAGES_MAX
    assert bench.top.open.first == RUN_MESSAGES_MAX + 1


def test_while_enough_are_in_flight_the_run_stays_open_and_grows() -> None:
    bench = Bench(runs_in_flight=2)
    runs = []
    for number in range(1, 6):
        assert bench.top.accept(b"%d" % number) == number
        runs += bench.cut()
    assert [(run.first, run.count) for run in runs] == [(1, 1), (2, 1)]
    bench.deliver(runs[0])
    assert [(run.first, run.count) for run in bench.cut()] == [(3, 3)], "one is done: all that waited goes as one"
    bench.top.accept(b"6")
    assert bench.cut() == []


def test_where_everybody_counts_a_delivery_here_does_not_end_a_flight() -> None:
    bench = Bench(services={"MARKS"}, runs_in_flight=1)
    bench.top.accept(b"1")
    (run,) = bench.cut()
    bench.deliver(run)
    bench.top.accept(b"2")
    assert bench.cut() == []
    bench.top.up_event(Stability({}, {}, delivered=2, consumed=1))
    assert [run.first for run in bench.cut()] == [2]


def test_the_largest_payload_is_accepted_and_a_larger_one_is_refused() -> None:
    bench = Bench(run_bytes=1_000, payload_max=5_000, window=100_000)
    assert bench.top.accept(bytes(5_000)) == 1
    with pytest.raises(UsageError, match="the payload has 5,001 bytes; the limit is 5,000"):
        bench.top.accept(bytes(5_001))
    assert bench.top.accept(b"x") == 2, "what was refused has used no number"


def test_a_payload_that_is_larger_than_a_run_is_alone_in_its_run() -> None:
    bench = Bench(run_bytes=1_000, window=100_000, runs_in_flight=9)
    for size in (10, 1_000, 1_001, 5_000, 10, 10):
        bench.top.accept(bytes(size))
    assert [(run.first, run.count) for run in bench.cut()] == [(1, 1), (2, 1), (3, 1), (4, 1), (5, 2)]


def test_without_a_view_multicasts_wait_and_go_with_the_first_one() -> None:
    bench = Bench(view=False)
    bench.top.accept(b"x")
    assert bench.cut() == []
    bench.view(1, A)
    assert [run.first for run in bench.cut()] == [1]


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(0, 400), st.none(), st.just(-1)), max_size=80), st.integers(1, 5))
def test_numbers_count_from_one_without_holes_and_nothing_is_lost(script: list[int | None], in_flight: int) -> None:
    """A number is a payload of that size, None ends the turn, -1 lets the oldest run in flight arrive."""
    bench = Bench(run_bytes=500, window=1_000, runs_in_flight=in_flight)
    accepted: list[bytes] = []
    cut: list[Run] = []
    for step in script:
        if step is None:
            cut += bench.cut()
            assert not bench.top.open.payloads or len(bench.top.flight) >= in_flight
        elif step < 0:
            if bench.top.flight:
                bench.deliver(bench.top.flight[0])
        else:
            accepted.append(bytes([len(accepted) % 256]) * step)
            assert bench.top.accept(accepted[-1]) == len(accepted)
    while bench.top.open.payloads:
        cut += bench.cut()
        if bench.top.flight:
            bench.deliver(bench.top.flight[0])
    cut += bench.cut()
    payloads: list[bytes] = []
    for run in cut:
        assert run.first == len(payloads) + 1
        assert len(run.body) <= 500 + 2 * ENTRY_BYTES
        payloads += unpack(run.body)
    assert payloads == accepted


# -- the window


def test_room_counts_what_is_open_and_what_is_cut_until_it_is_freed() -> None:
    bench = Bench(run_bytes=1_000, window=10_000)
    assert bench.top.room() == 10_000
    bench.top.accept(bytes(100))
    assert bench.top.room() == 10_000 - 100 - ENTRY_BYTES
    (run,) = bench.cut()
    assert bench.top.room() == 10_000 - len(run.body)
    bench.top.accept(b"to B alone", to=B)
    assert bench.top.room() == 10_000 - len(run.body), "unicasts are outside of it"
    bench.top.up_event(Freed(len(run.body)))
    assert bench.top.room() == 10_000
    assert not any(isinstance(event, Freed) for event in bench.turn()[1]), "the application hears nothing of it"


# -- unicasts


def test_unicasts_are_numbered_for_each_receiver_and_go_at_once() -> None:
    bench = Bench(runs_in_flight=1)
    bench.top.accept(b"in flight")
    assert [bench.top.accept(b"b1", to=B), bench.top.accept(b"c1", to=C), bench.top.accept(b"b2", to=B)] == [1, 1, 2]
    multicast, to_b, to_c = bench.cut()
    assert multicast.dest is None
    assert (to_b.dest, to_b.first, unpack(to_b.body)) == (B, 1, [b"b1", b"b2"])
    assert (to_c.dest, to_c.first, unpack(to_c.body)) == (C, 1, [b"c1"])
    assert bench.top.accept(b"b3", to=B) == 3
    assert [run.first for run in bench.cut()] == [3], "nothing keeps a unicast's run open"
    assert len(bench.top.flight) == 1, "they are not in flight"
    assert [record["count"] for record in bench.records("send")] == [1], "their records are UNICAST2's"


def test_a_unicast_is_delivered_without_a_position() -> None:
    bench = Bench()
    bench.top.up(Run(B, A, (), B, 1, 0, 1, pack([b"x"])))
    bench.deliver(from_b(1, b"y"))
    unicast, multicast = (event for event in bench.turn()[1] if isinstance(event, Delivered))
    assert (unicast.position, multicast.position) == (-1, 0)
    assert [record["first"] for record in bench.records("deliver")] == [1], "its record is UNICAST2's"


def test_an_unnumbered_multicast_is_dropped_whatever_layer_let_it_pass() -> None:
    bench = Bench()
    bench.top.up(from_b(1, b"x"))
    bench.top.up(from_b(1, b"x").push("head of nobody"))
    assert bench.turn()[1] == []
    assert bench.env.drops == {"multicast of no stream": 1, "head of no layer": 1}


def test_a_run_without_payload_is_not_delivered() -> None:
    bench = Bench()
    bench.top.up(Run(B, None, (), stream=B))
    assert bench.turn()[1] == []


# -- deliveries


def test_positions_count_messages_from_the_start_of_the_view() -> None:
    bench = Bench()
    bench.deliver(from_b(1, b"x", b"y"))
    bench.deliver(from_b(3, b"z"))
    before = bench.turn()[1]
    bench.view(2, A, B, previous=ViewId(1, A))
    bench.deliver(from_b(4, b"w"))
    events = [event for event in before + bench.turn()[1] if isinstance(event, Delivered)]
    assert [(event.view, event.position) for event in events] == [
        (ViewId(1, A), 0),
        (ViewId(1, A), 2),
        (ViewId(2, A), 0),
    ]
    assert [record["position"] for record in bench.records("deliver")] == [0, 2, 0]


def test_what_is_delivered_is_written_down_with_what_identifies_it() -> None:
    bench = Bench()
    bench.deliver(from_b(5, b"x", b"y"))
    (record,) = bench.records("deliver")
    body = pack([b"x", b"y"])
    assert record == {
        "kind": "deliver",
        "origin": "B",
        "origin_incarnation": "0" * 16,
        "first": 5,
        "count": 2,
        "bytes": len(body),
        "checksum": checksum(body),
        "stream": B,
        "seq": 0,
        "position": 0,
    }


def test_a_send_is_written_down_once_at_its_cut() -> None:
    bench = Bench()
    bench.top.accept(b"x")
    assert bench.records("send") == []
    (run,) = bench.cut()
    (record,) = bench.records("send")
    assert (record["first"], record["count"], record["checksum"]) == (1, 1, checksum(run.body))


def test_a_member_that_archives_writes_the_payloads_down() -> None:
    bench = Bench()
    bench.env.archiving = True
    bench.deliver(from_b(1, b"x", b"y"))
    assert [record["payload"] for record in bench.records("deliver")] == [[b"x", b"y"]]


@pytest.mark.parametrize("body", [b"\xc0", pack([b"x"]), pack([b"x", b"y", b"z"])])
def test_a_malformed_body_ends_nobody_who_archives(body: bytes) -> None:
    bench = Bench()
    bench.env.archiving = True
    bench.deliver(Run(B, None, (), B, 1, 0, 2, body))
    assert [record["payload"] for record in bench.records("deliver")] == [None]
    assert bench.env.drops == {"malformed body": 1}


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_checksums_are_signed_longs(body: bytes) -> None:
    assert -(1 << 63) <= checksum(body) < 1 << 63


def test_a_checksum_that_others_can_compute() -> None:
    """XXH3-64 of no bytes is 2d06800538d394c2, of `a` e6c632b61e964e1f."""
    assert checksum(b"") == 0x2D06800538D394C2
    assert checksum(b"a") == 0xE6C632B61E964E1F - (1 << 64)


def test_the_view_comes_to_the_application_in_its_place() -> None:
    bench = Bench()
    bench.deliver(from_b(1, b"x"))
    event = bench.view(2, A, previous=ViewId(1, A), starts={B: 7, C: 1})
    bench.deliver(from_b(7, b"y"))
    kinds = [type(one) for one in bench.turn()[1]]
    assert kinds == [Delivered, NewView, Delivered]
    (record,) = bench.records("view")
    assert record["members"] == event.view.members
    assert (record["previous_number"], record["previous_creator"]) == (1, A)
    assert record["digest"] == {B: 6}, "the last number that the state holds, for those who have one"
    assert bench.env.view == ViewId(2, A)


def test_events_of_other_layers_pass() -> None:
    bench = Bench()
    event = Suspect(B, False)
    bench.top.up_event(event)
    assert bench.turn()[1] == [event]


def test_a_block_and_its_end_are_recorded_behind_the_deliveries_before_them() -> None:
    bench = Bench()
    bench.deliver(from_b(1, b"x"))
    for event in (Blocked("too few"), Unblocked()):
        bench.top.up_event(event)
    bench.deliver(from_b(2, b"y"))
    records = bench.records()
    assert [record["kind"] for record in records] == ["deliver", "block", "unblock", "deliver"]
    assert records[1] == {"kind": "block", "reason": "no majority", "detail": "too few"}


def test_a_process_without_a_view_records_no_block() -> None:
    """It waits for the members of a former view, and has delivered nothing that could stop."""
    bench = Bench(view=False)
    for event in (Blocked("missing: B"), Unblocked()):
        bench.top.up_event(event)
    assert bench.records() == []
    assert [type(event) for event in bench.turn()[1]] == [Blocked, Unblocked]


# -- own messages arrive


def test_reached_says_what_was_delivered_here_and_what_everywhere() -> None:
    bench = Bench()
    bench.top.accept(b"x")
    bench.top.accept(b"y")
    (run,) = bench.cut()
    bench.deliver(run)
    assert bench.turn()[1][-1] == Reached(3, 1)
    assert bench.turn()[1] == [], "it is told when something has changed"
    bench.top.up_event(Stability({}, {}, delivered=3, consumed=1))
    bench.top.up_event(Stability({}, {}, delivered=2, consumed=1))
    assert bench.turn()[1] == [Reached(3, 3)], "what is stable stays stable"


def test_others_messages_reach_nothing() -> None:
    bench = Bench()
    bench.deliver(from_b(1, b"x"))
    assert not any(isinstance(event, Reached) for event in bench.turn()[1])


def test_with_a_view_that_follows_all_who_came_along_have_delivered() -> None:
    bench = Bench()
    bench.top.accept(b"x")
    (run,) = bench.cut()
    bench.deliver(run)
    bench.turn()
    bench.view(2, A, B, previous=ViewId(1, A))
    assert bench.turn()[1][-1] == Reached(2, 2)


def test_unknown_are_the_numbers_that_were_accepted_and_not_delivered_here() -> None:
    bench = Bench(runs_in_flight=1)
    assert list(bench.top.unknown()) == []
    bench.top.accept(b"1")
    (run,) = bench.cut()
    bench.top.accept(b"2")
    bench.cut()
    assert list(bench.top.unknown()) == [1, 2]
    bench.deliver(run)
    assert list(bench.top.unknown()) == [2]


# -- leaving


def test_leave_waits_for_own_runs_in_flight_and_for_what_is_not_cut() -> None:
    bench = Bench(runs_in_flight=1)
    bench.top.accept(b"1")
    (first,) = bench.cut()
    bench.top.accept(b"2")
    bench.top.down_event(Leave())
    assert [record["reason"] for record in bench.records("leave")] == ["asked"]
    assert bench.cut() == [] and bench.asked == []
    bench.deliver(first)
    (second,) = bench.cut()
    assert bench.asked == []
    bench.deliver(second)
    assert bench.cut() == [] and [type(event) for event in bench.asked] == [Leave]
    bench.turn()
    assert bench.asked == [], "it is asked once"


def test_leave_waits_for_what_waits_for_a_view() -> None:
    bench = Bench(view=False)
    bench.top.accept(b"1")
    bench.top.down_event(Leave())
    assert bench.cut() == [] and bench.asked == []
    bench.view(1, A)
    (run,) = bench.cut()
    bench.deliver(run)
    bench.turn()
    assert [type(event) for event in bench.asked] == [Leave]


def test_other_wishes_pass_at_once() -> None:
    bench = Bench()
    wish = Suspect(B, False)
    bench.top.down_event(wish)
    bench.turn()
    assert bench.asked == [wish]


def test_a_member_that_the_others_do_not_let_go_goes_all_the_same() -> None:
    bench = Bench(runs_in_flight=1, leave_timeout=7_000)
    bench.top.accept(b"1")
    bench.cut()
    bench.records()
    bench.env.now = 100
    bench.top.down_event(Leave())
    assert bench.top.wake == 7_100
    bench.env.now = 7_100
    bench.top.timer()
    assert bench.top.wake == NEVER
    (left,) = (event for event in bench.turn()[1] if isinstance(event, Excluded))
    (gone,) = bench.asked
    assert isinstance(gone, Gone), "so that what nobody acknowledged is reported"
    assert left.reason == "left" and "within leave_timeout" in left.detail
    leave, undelivered, stop = bench.records()
    assert leave["kind"] == "leave"
    assert (undelivered["kind"], undelivered["first"], undelivered["count"]) == ("undelivered", 1, 1)
    assert (stop["kind"], stop["reason"]) == ("stop", "left")


def test_the_end_is_told_once_and_nothing_follows_it() -> None:
    bench = Bench()
    bench.top.accept(b"1")
    (run,) = bench.cut()
    bench.top.accept(b"never sent")
    bench.top.accept(b"nor this", to=B)
    bench.deliver(run)
    bench.env.drop("old view")
    bench.top.up_event(Excluded("excluded", "in a later view"))
    bench.deliver(from_b(1, b"too late"))
    bench.top.up_event(Excluded("left", "by time"))
    bench.env.drop("old view")
    bench.env.record_drops()
    runs, events = bench.turn()
    assert runs == []
    assert [type(event) for event in events] == [Delivered, Reached, Undelivered, Excluded], (
        "who waits for a message hears that it has arrived before the end is told"
    )
    assert [record["kind"] for record in bench.records()] == ["send", "deliver", "drop", "stop"]
    bench.env.drop("old view")
    bench.env.record_drops()
    assert bench.turn() == ([], []) and bench.records() == []
    assert list(bench.top.unknown()) == [2]


def test_what_is_accepted_with_the_news_of_the_end_goes_nowhere() -> None:
    """The layers below have begun anew: they would number it as they numbered the first messages of the view."""
    bench = Bench(run_bytes=100)
    bench.top.up_event(Excluded("excluded", ""))
    for _ in range(5):
        bench.top.accept(b"x" * 60)
        bench.top.accept(b"x" * 60, to=B)
    runs, events = bench.turn()
    assert runs == []
    assert [type(event) for event in events] == [Undelivered, Excluded]
    assert events[0].numbers == range(1, 6)
    assert bench.top.unknown() == range(1, 6)


def test_a_member_that_was_told_the_end_has_no_timer_left() -> None:
    bench = Bench(leave_timeout=7_000)
    bench.top.down_event(Leave())
    bench.turn()
    bench.top.up_event(Excluded("left", ""))
    bench.turn()
    assert bench.top.wake == NEVER


def test_what_comes_to_one_member_with_the_news_of_its_end_is_delivered_before_it() -> None:
    """It was acknowledged already; multicasts that come then belong to nobody's view."""
    bench = Bench()
    bench.top.up_event(Excluded("excluded", ""))
    bench.top.up(Run(B, A, (), B, 1, 0, 1, pack([b"to A"])))
    bench.deliver(from_b(1, b"to all"))
    _, events = bench.turn()
    assert [event.run.body for event in events if isinstance(event, Delivered)] == [pack([b"to A"])]
    assert isinstance(events[-1], Excluded)
    bench.top.up(Run(B, A, (), B, 2, 0, 1, pack([b"too late"])))
    assert bench.turn()[1] == []


# -- the window of messages to one member


def test_the_window_to_one_member_counts_what_it_has_not_consumed() -> None:
    bench = Bench(run_bytes=1_000, window=4_000)
    top = bench.top
    assert top.room(B) == top.room(C) == 4_000
    top.accept(bytes(1_000), B)
    assert top.room(B) == 4_000 - 1_000 - ENTRY_BYTES and top.room() == top.room(C) == 4_000
    (run,) = bench.cut()
    assert top.room(B) == 4_000 - len(run.body)
    top.up_event(FreedTo(B, len(run.body)))
    assert top.room(B) == 4_000 and top.wake <= bench.env.now, "a turn begins, and senders are woken"
    top.accept(bytes(500), B)
    bench.turn()
    top.up_event(FreedTo(B, None))
    assert top.room(B) == 4_000
    top.up_event(FreedTo(C, 7))
    assert top.room(C) == 4_000


def test_receivers_outside_the_view_are_remembered_within_a_bound() -> None:
    """Their numbers go on; beyond the bound the ones that were first written to are forgotten."""
    bench = Bench(unicast_peers_max=3)
    outsiders = [Address("X", f"{number:016x}") for number in range(10)]
    bench.top.accept(b"to B", B)
    for outsider in outsiders:
        bench.top.accept(b"x", outsider)
    bench.turn()
    bench.top.accept(b"open", outsiders[0])
    bench.view(2, A, B)
    assert list(bench.top.unicasts) == [B, outsiders[0], outsiders[9]]
    assert bench.top.accept(b"again", B) == 2
    assert bench.top.accept(b"again", outsiders[9]) == 2


def test_a_sender_is_told_who_holds_its_window_only_while_it_is_shut() -> None:
    bench = Bench(run_bytes=1_000, window=4_000)
    top = bench.top
    top.up_event(Stability({}, {}, 1, 1, (B,)))
    assert top.waits_for() == ()
    for _ in range(4):
        top.accept(bytes(900))
    assert top.waits_for() == (B,)
    top.up_event(Stability({}, {}, 1, 1))
    assert top.waits_for() == (B,), "that says nothing of it"
    top.up_event(Stability({}, {}, 1, 2))
    assert top.waits_for() == (), "the window moves"
    top.up_event(Stability({}, {}, 1, 2, (C, B)))
    bench.view(2, A, B)
    assert top.waits_for() == (), "who is in the new view was not counted yet"


def test_an_own_message_that_is_in_the_state_of_a_merge_is_awaited_no_longer() -> None:
    """The other side delivered it, and its state has it.  The application gets both lists of gaps with the view."""
    bench = Bench()
    bench.top.accept(b"own")
    assert bench.turn()[0]
    own = Gap(A, 1, 1, (B,))
    bench.view(2, A, B, previous=ViewId(1, A), starts={A: 2}, with_state=True, without_state=(own,))
    _, above = bench.turn()
    assert [type(event) for event in above] == [NewView, Reached]
    assert above[1] == Reached(2, 1)
    assert bench.top.flight == []
    assert own.size > 0, "its bytes leave the window"
    assert [record["kind"] for record in bench.records()] == ["send", "view"], (
        "the journal has the gaps of the state alone"
    )
