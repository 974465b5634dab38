"""FRAGMENTATION by hand.  In a whole stack: tests/scenarios/test_fragmentation.py."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from pygroups.core.address import Address
from pygroups.core.events import (
    Block,
    ConnectionClosed,
    DeliveredTo,
    Event,
    Excluded,
    FreedTo,
    Leave,
    NewView,
    Undelivered,
)
from pygroups.core.layer import NEVER, Env
from pygroups.core.limits import ENTRY_BYTES, Config
from pygroups.core.run import Run, pack
from pygroups.core.view import AgreedView, ViewId
from pygroups.layers.fragmentation.layer import Fragmentation
from pygroups.layers.fragmentation.pieces import GivenUp, PiecesAsk, PiecesHere, PiecesMissed
from pygroups.layers.fragmentation.pieces_in import OUTSIDERS_MAX

A, B, C = (Address(name, f"{number:016x}") for number, name in enumerate("ABC", 1))
SIZE = 100 + 2 * ENTRY_BYTES  # of a piece
AHEAD = 4


def layer(me: Address = A, **config: int) -> Fragmentation:
    config = {"run_bytes": 100, "window": AHEAD * SIZE, "payload_max": 5_000} | config
    return Fragmentation(Env(me, 0, random.Random(1), Config(**config)))


def viewed(*members: Address, me: Address = A, number: int = 1) -> Fragmentation:
    one = layer(me)
    view(one, *members, number=number)
    return one


def view(one: Fragmentation, *members: Address, number: int = 1) -> None:
    agreed = AgreedView(ViewId(number, members[0]), members, ("x:1",) * len(members))
    one.up_event(NewView(agreed, None, members, (), (), True, None))
    one.above.clear()


def large(first: int, pieces: int, dest: Address | None = None) -> Run:
    """A run of one payload that takes so many pieces."""
    body = pack([bytes(random.Random(first).randbytes(pieces * SIZE - 8))])
    return Run(A, dest, (), A, first, 0, 1, body)


def small(first: int, dest: Address | None = None) -> Run:
    return Run(A, dest, (), A, first, 0, 1, pack([b"x"]))


def left(one: Fragmentation) -> list[tuple[int, int, int]]:
    """First, index and count of what was handed down since the last look."""
    runs, one.below = one.below, []
    return [(run.first, run.index, run.count) for run in runs if isinstance(run, Run)]


def given(one: Fragmentation) -> list[Run | Event]:
    items, one.above = one.above, []
    return items


def without_room(items: list[Run | Event]) -> list[Run | Event]:
    return [item for item in items if not isinstance(item, FreedTo)]


def pieces_of(run: Run, me: Address = A) -> list[Run]:
    """The pieces that a layer alone in its view makes of a run."""
    one = viewed(me, me=me)
    one.down(run)
    return [item for item in one.below if isinstance(item, Run)]


def arrives(one: Fragmentation, pieces: Sequence[Run], stream: Address | None = A) -> None:
    for seq, piece in enumerate(pieces):
        one.up(piece if stream is None else piece.push(None).placed(stream, seq))


def test_a_run_that_fits_passes_as_it_is() -> None:
    one = viewed(A, B)
    run = Run(A, None, (), A, 1, 0, 1, bytes(SIZE))
    one.down(run)
    assert one.below == [run]
    one.up(run.push(None).placed(A, 0))
    assert [item.body for item in one.above if isinstance(item, Run)] == [run.body]


@pytest.mark.parametrize("more", [1, SIZE, SIZE + 1])
def test_pieces_are_the_body_in_order_and_the_last_one_counts(more: int) -> None:
    run = Run(A, None, (), A, 7, 0, 1, random.Random(1).randbytes(SIZE + more))
    pieces = pieces_of(run)
    assert [piece.index for piece in pieces] == list(range(1, len(pieces) + 1))
    assert [piece.count for piece in pieces] == [0] * (len(pieces) - 1) + [1]
    assert {piece.first for piece in pieces} == {7}
    assert b"".join([piece.body for piece in pieces]) == run.body
    other = viewed(A, B, me=B)
    arrives(other, pieces)
    (whole,) = [item for item in given(other) if isinstance(item, Run)]
    assert (whole.body, whole.first, whole.index, whole.count, whole.seq) == (run.body, 7, 0, 1, len(pieces) - 1)
    assert other.gauges()["collected_bytes"] == 0


def test_so_many_pieces_are_on_their_way_as_all_receivers_allow() -> None:
    one = viewed(A, B, C)
    one.down(large(1, 10))
    assert left(one) == [(1, index, 0) for index in range(1, AHEAD + 1)]
    one.up(Run(B, A, (PiecesHere(1, 3, False),)))
    assert left(one) == [], "C has none yet"
    one.up(Run(C, A, (PiecesHere(1, 2, False),)))
    assert left(one) == [(1, 5, 0), (1, 6, 0)]
    one.up(Run(C, A, (PiecesHere(1, 1, False),)))  # an older one
    one.up(Run(C, A, (PiecesHere(9, 4, False),)))  # of another message
    one.up(Run(C, A, (PiecesHere(1, 7, False),)))  # more than was sent
    assert left(one) == []
    assert one.env.drops == {"pieces that were not sent": 1}


def test_a_receiver_says_how_far_it_is() -> None:
    one = viewed(A, B, me=B)
    arrives(one, pieces_of(large(1, 6))[:3])
    assert [run.head for run in one.below if isinstance(run, Run)] == [
        PiecesHere(1, index, False) for index in (1, 2, 3)
    ]


def test_what_comes_later_waits_until_the_last_piece_is_here() -> None:
    one = viewed(A)
    run = large(1, 3)
    one.down(run)
    one.down(small(2))
    one.down(large(3, 2))
    one.down(small(4))
    assert left(one) == [(1, 1, 0), (1, 2, 0), (1, 3, 1)]
    arrives(one, pieces_of(run))
    assert left(one) == [(2, 0, 1), (3, 1, 0), (3, 2, 1)]
    arrives(one, pieces_of(large(3, 2)))
    assert left(one) == [(4, 0, 1)]
    assert one.gauges() == {"pieces_to_send": 0, "waiting": 0, "collected_bytes": 0}


def test_messages_to_others_do_not_wait() -> None:
    one = viewed(A, B, C)
    one.down(large(1, 10))
    one.down(small(1, B))
    one.down(large(2, 10, B))
    one.down(small(1, C))
    assert [first for first, index, _ in left(one) if index == 0] == [1, 1]


def test_a_new_view_drops_pieces_and_begins_again() -> None:
    one = viewed(A, B)
    run = large(1, 10)
    one.down(run)
    one.down(small(2))
    arrives(one, pieces_of(run)[:2])
    one.up_event(Block())
    one.up(Run(B, A, (PiecesHere(1, 4, False),)))
    assert left(one) == [(1, index, 0) for index in range(1, AHEAD + 1)], "nothing new before the view"
    view(one, A, C, number=2)
    assert left(one) == [(1, index, 0) for index in range(1, AHEAD + 1)]
    assert one.gauges()["collected_bytes"] == 0
    one.up(pieces_of(run)[2].push(None).placed(A, 0))
    assert one.env.drops == {"piece out of place": 1}


def test_pieces_to_one_live_on_across_views() -> None:
    one = viewed(A, B, me=B)
    pieces = pieces_of(large(1, 4, A), A)
    to_b = [Run(A, B, (), A, piece.first, piece.index, piece.count, piece.body) for piece in pieces]
    arrives(one, to_b[:2], stream=None)
    view(one, A, B, C, number=2)
    arrives(one, to_b[2:], stream=None)
    assert [item.body for item in given(one) if isinstance(item, Run)] == [large(1, 4).body]


@pytest.mark.parametrize(("together", "again"), [((A, B), []), ((A,), [1, 2, 3, 4])])
def test_pieces_begin_again_to_a_receiver_that_comes_from_another_view(
    together: tuple[Address, ...], again: list[int]
) -> None:
    """There A was an outsider: B may have forgotten the pieces, and A does not know which ones arrived."""
    one = viewed(A, B)
    one.down(large(1, 10, B))
    assert [index for _, index, _ in left(one)] == [1, 2, 3, 4]
    one.up_event(NewView(AgreedView(ViewId(2, A), (A, B), ("x:1",) * 2), ViewId(1, A), together, (), (), True, None))
    assert [index for _, index, _ in left(one)] == again
    one.on_pieces_here(PiecesHere(1, 4, True), B)
    assert [index for _, index, _ in left(one)] == [5, 6, 7, 8]


def test_pieces_of_an_origin_that_comes_back_are_forgotten_if_no_more_arrive() -> None:
    """A gave the message up while B was outside its view, and B did not hear of that."""
    one = viewed(A, B, me=B)
    pieces = pieces_of(large(1, 10), A)
    to_b = [Run(A, B, (), A, piece.first, piece.index, piece.count, piece.body) for piece in pieces]
    arrives(one, to_b[:2], stream=None)
    view(one, B, number=2)
    view(one, A, B, number=3)
    assert one.gauges()["collected_bytes"] > 0
    one.env.now = one.wake
    one.timer()
    assert one.gauges()["collected_bytes"] == 0
    arrives(one, to_b[:2], stream=None)
    assert one.wake == NEVER, "pieces of a member are awaited for as long as it is one"


def test_what_a_receiver_will_not_get_is_reported() -> None:
    one = viewed(A, B, C)
    for run in (large(2, 10, B), small(3, B)):
        one.down(run)
    one.up_event(Undelivered(B, range(1, 2)))
    assert without_room(given(one)) == [Undelivered(B, range(1, 4))]
    one.down(large(4, 10, B))
    view(one, A, C, number=2)
    one.down(large(5, 10, C))
    one.up_event(Excluded("excluded", ""))
    assert without_room(given(one)) == [Undelivered(C, range(5, 6)), Excluded("excluded", "")]
    assert one.gauges() == {"pieces_to_send": 0, "waiting": 0, "collected_bytes": 0}


def test_the_receiver_of_a_message_that_is_given_up_forgets_its_pieces() -> None:
    """B's connection is given up, and B stays in the view."""
    one, other = viewed(A, B), viewed(A, B, me=B)
    one.down(large(1, 10, B))
    arrives(other, [run for run in one.below if isinstance(run, Run)], stream=None)
    one.below.clear()
    one.up_event(Undelivered(B, range(0)))
    (told,) = (item for item in one.below if isinstance(item, Run))
    assert told.head == GivenUp(1)
    other.up(Run(A, B, (GivenUp(2),)))
    assert other.gauges()["collected_bytes"] > 0
    other.up(told)
    assert other.gauges()["collected_bytes"] == 0
    one.below.clear()
    one.down(large(2, 2, B))
    one.down(small(3, B))
    assert not one.outgoing, "all of it is with UNICAST2"
    one.below.clear()
    one.up_event(Undelivered(B, range(2, 4)))
    assert [item.head for item in one.below if isinstance(item, Run)] == [GivenUp(2)]
    one.up_event(Undelivered(B, range(3, 4)))
    assert len(one.below) == 1, "3 was small"


def test_the_receiver_is_informed_also_after_it_left_the_view() -> None:
    """All pieces are with UNICAST2.  UNICAST2 gives them up after the view without B, and a merge brings B back."""
    one = viewed(A, B)
    one.down(large(1, 2, B))
    assert not one.outgoing
    view(one, A, number=2)
    one.below.clear()
    one.up_event(Undelivered(B, range(1, 2)))
    assert [item.head for item in one.below if isinstance(item, Run)] == [GivenUp(1)]


def test_large_messages_to_few_former_receivers_are_remembered() -> None:
    one = layer(A, unicast_peers_max=1)
    view(one, A, B, C)
    one.down(large(1, 2, B))
    one.down(large(1, 2, C))
    one.below.clear()
    one.up_event(Undelivered(B, range(1, 2)))
    one.up_event(Undelivered(C, range(1, 2)))
    assert [item.dest for item in one.below if isinstance(item, Run)] == [C]


def test_the_window_of_what_is_given_up_opens() -> None:
    """The top counted the messages when they were cut, and FLOW_CONTROL below never got those that waited here."""
    one = viewed(A, B)
    first, second, third = large(1, 10, B), large(2, 10, B), small(3, B)
    one.up_event(FreedTo(B, 50))
    for run in (first, second, third):
        one.down(run)
    given(one)
    one.up_event(Undelivered(B, range(0)))
    size = len(first.body) + len(second.body) + len(third.body)
    assert FreedTo(B, 50 + size) in given(one)
    one.up_event(FreedTo(B, 70))
    assert given(one) == [FreedTo(B, 70 + size)]
    one.up_event(FreedTo(B, None))
    one.up_event(FreedTo(B, 10))
    assert given(one) == [FreedTo(B, None), FreedTo(B, 10)]
    one.down(Run(A, C, (), A, 1, 0, 1, first.body))  # to an outsider
    one.up_event(Undelivered(C, range(0)))
    assert FreedTo(C, None) in given(one)


def test_a_report_of_a_view_is_given_with_it() -> None:
    one = viewed(A, B, C)
    one.down(large(4, 10, B))
    agreed = AgreedView(ViewId(2, A), (A, C), ("x:1", "x:1"))
    event = NewView(agreed, None, (A, C), (), (B,), True, None)
    one.up_event(event)
    assert without_room(given(one)) == [event, Undelivered(B, range(4, 5))]


def test_a_leave_waits_for_pieces_to_one() -> None:
    one = viewed(A, B)
    one.down(large(1, AHEAD + 1, B))
    left(one)
    one.down_event(Leave())
    assert one.below == []
    one.up(Run(B, A, (PiecesHere(1, 1, True),)))
    assert [type(item) for item in one.below] == [Run, Leave]


def test_a_payload_over_the_limit_is_dropped_by_its_receivers() -> None:
    one = viewed(A, B, me=B)
    arrives(one, pieces_of(large(1, 5_000 // SIZE + 2)))
    assert not [item for item in given(one) if isinstance(item, Run)]
    assert one.env.drops["payload too large"] == 1
    assert one.gauges()["collected_bytes"] == 0


def test_what_an_outsider_began_is_forgotten_after_a_time() -> None:
    one = viewed(A, B, me=B)
    pieces = pieces_of(large(1, 4))
    to_b = [Run(A, B, (), A, piece.first, piece.index, piece.count, piece.body) for piece in pieces]
    arrives(one, to_b[:2], stream=None)
    view(one, B, number=2)
    one.env.now = one.wake - 1
    arrives(one, to_b[2:3], stream=None)
    one.env.now += 1
    one.timer()
    assert one.gauges()["collected_bytes"] > 0, "it goes on"
    one.env.now = one.wake
    one.timer()
    assert one.gauges()["collected_bytes"] == 0
    assert one.wake == NEVER


def test_of_outsiders_few_messages_are_collected() -> None:
    one = viewed(A, B, me=B)
    for number in range(OUTSIDERS_MAX + 1):
        stranger = Address(f"S{number}", f"{number + 100:016x}")
        one.up(Run(stranger, B, (), stranger, 1, 1, 0, b"x"))
    assert one.env.drops == {"pieces of too many outsiders": 1}
    assert one.gauges()["collected_bytes"] == OUTSIDERS_MAX


# -- 9: without a group


def alone(me: Address, **config: int) -> Fragmentation:
    one = layer(me, **config)
    one.env.services = frozenset()
    return one


def later(one: Fragmentation, by: int) -> None:
    one.env.now += by
    while one.wake <= one.env.now:
        one.timer()


def heads(one: Fragmentation) -> list[object]:
    """The heads of what was handed down since the last look."""
    runs, one.below = one.below, []
    return [run.head for run in runs if isinstance(run, Run) and run.heads]


def test_fragmentation_9_an_origin_asks_for_a_lost_confirmation() -> None:
    a, b = alone(A), alone(B)
    a.down(large(1, 10, B))
    for piece in [run for run in a.below if isinstance(run, Run)]:
        b.up(piece)
    a.below.clear()
    b.below.clear()  # the confirmations are lost with their connection
    later(a, a.env.config.heartbeat_timeout)
    asks = heads(a)
    assert asks == [PiecesAsk(1)]
    b.up(Run(A, B, (PiecesAsk(1),), A, 1, 0, 1, pack([])))
    assert heads(b) == [PiecesHere(1, AHEAD, True)]
    a.up(Run(B, A, (PiecesHere(1, AHEAD, True),)))
    assert left(a) == [(1, index, 0) for index in range(AHEAD + 1, 2 * AHEAD + 1)]


def test_fragmentation_9_an_origin_reports_a_message_whose_beginning_is_forgotten_and_goes_on() -> None:
    a, b = alone(A), alone(B)
    a.down(large(1, 10, B))
    a.down(small(2, B))
    for piece in [run for run in a.below if isinstance(run, Run)]:
        b.up(piece)
    left(a)
    b.below.clear()
    later(b, 2 * b.env.config.connection_age)
    assert b.gauges()["collected_bytes"] == 0
    b.up(Run(A, B, (PiecesAsk(1),), A, 1, 0, 1, pack([])))
    assert heads(b) == [PiecesMissed(1)]
    a.up(Run(B, A, (PiecesMissed(1),)))
    assert without_room(given(a)) == [Undelivered(B, range(1, 2))]
    assert left(a) == [(2, 0, 1)]


def test_fragmentation_9_a_receiver_says_that_it_misses_the_pieces_before_the_last_one() -> None:
    a, b = alone(A), alone(B)
    pieces = pieces_of(large(1, 2, B), me=A)
    b.up(pieces[0])
    later(b, 2 * b.env.config.connection_age)
    b.below.clear()
    b.up(pieces[1])
    assert heads(b) == [PiecesMissed(1)]
    a.down(large(1, 2, B))
    assert left(a) == [(1, 1, 0), (1, 2, 1)]
    a.up(Run(B, A, (PiecesMissed(1),)))
    assert given(a) == [Undelivered(B, range(1, 2))]
    assert a.below == [Undelivered(B, range(1, 2))], "it leaves the window of FLOW_CONTROL"
    a.up(Run(B, A, (PiecesMissed(2),)))
    assert given(a) == [], "it was never sent"


def test_fragmentation_9_a_message_counts_as_delivered_when_its_receiver_has_all_pieces() -> None:
    """An acknowledgement of the last piece does not say it: the pieces before it may be forgotten."""
    a, b = alone(A), alone(B)
    a.down(large(1, 2, B))
    a.down(small(2, B))
    pieces = [run for run in a.below if isinstance(run, Run)]
    a.up_event(DeliveredTo(B, 3))
    assert given(a) == [DeliveredTo(B, 1)]
    for piece in pieces:
        b.up(piece)
    assert heads(b)[-1] == PiecesHere(1, 2, True)
    a.up(Run(B, A, (PiecesHere(1, 2, True),)))
    assert given(a) == [DeliveredTo(B, 3)]
    a.up_event(DeliveredTo(B, 4))
    assert given(a) == [DeliveredTo(B, 4)], "nothing waits any more"


def test_fragmentation_9_a_missed_message_is_reported_before_those_behind_it_count_as_delivered() -> None:
    a = alone(A)
    a.down(large(1, 2, B))
    a.down(large(2, 2, B))
    a.up_event(DeliveredTo(B, 3))
    assert given(a) == [DeliveredTo(B, 1)]
    a.up(Run(B, A, (PiecesMissed(1),)))
    assert given(a) == [Undelivered(B, range(1, 2)), DeliveredTo(B, 2)]
    a.up_event(ConnectionClosed(B))
    assert given(a) == [ConnectionClosed(B), Undelivered(B, range(2, 3))]


def test_fragmentation_9_an_origin_asks_for_a_lost_confirmation_of_a_whole_message() -> None:
    a, b = alone(A), alone(B)
    a.down(large(1, 2, B))
    for piece in [run for run in a.below if isinstance(run, Run)]:
        b.up(piece)
    a.below.clear()
    b.below.clear()  # the confirmation is lost with its connection
    later(a, a.env.config.heartbeat_timeout)
    assert heads(a) == [PiecesAsk(1)]
    b.up(Run(A, B, (PiecesAsk(1),), A, 1, 0, 1, pack([])))
    assert heads(b) == [PiecesHere(1, 2, True)]


def test_fragmentation_9_queued_pieces_end_with_their_connection() -> None:
    a = alone(A)
    a.down(large(1, 10, B))
    a.down(small(2, B))
    a.up_event(ConnectionClosed(B))
    assert without_room(given(a)) == [ConnectionClosed(B), Undelivered(B, range(1, 3))]
    assert not any(a.gauges().values())
