"""TOTAL alone, by hand: what its conversations (text/total) have no word for."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from pygroups.core.address import Address
from pygroups.core.events import Event, Excluded, Fetch, Gone, Hold, NewView, Release, Stability, Stop
from pygroups.core.layer import Env
from pygroups.core.limits import Config
from pygroups.core.run import Run, pack
from pygroups.core.view import AgreedView, Ballot, Subgroup, ViewId
from pygroups.layers.total import Bcast, CumSeqAck, NewViewId, NewViewIdAck, Request, Resend, SeqAck, Total, Unicast

A, B, C = (Address(name, f"{number:016x}") for number, name in enumerate("ABC", 1))
FIRST = AgreedView(ViewId(1, A), (A, B, C), ("a", "b", "c"))
NEXT = AgreedView(ViewId(2, B), (B, C), ("b", "c"))


def installed(view: AgreedView, previous: AgreedView | None = None, **fields: object) -> NewView:
    event = NewView(view, previous and previous.id, view.members, (), (), True, None)
    for name, value in fields.items():
        setattr(event, name, value)
    return event


def layer(me: Address, *, knows: bool = True, config: Config | None = None) -> Total:
    """TOTAL of `me` in the first view, whose first id it knows."""
    total = Total(Env(me, 0, random.Random(1), config or Config()))
    total.up_event(installed(FIRST))
    if me != A and knows:
        total.up(Run(A, None, (NewViewId(FIRST.id, 0, 0),)))
    sent(total), handed_up(total)
    return total


def own(me: Address, first: int, index: int = 0, count: int = 1) -> Run:
    return Run(me, None, (), me, first, index, count, pack([b"%d" % first]))


def broadcast(origin: Address, number: int, seq: int, view: AgreedView = FIRST) -> Run:
    return Run(view.coordinator, None, (Bcast(view.id, 0, seq),), origin, number, 0, 1, pack([b"%d" % number]))


def sent(total: Total) -> list[object]:
    items, total.below = total.below, []
    return [item.head for item in items if isinstance(item, Run)]


def handed_up(total: Total) -> list[tuple[Address | None, int]]:
    items, total.above = total.above, []
    return [(item.origin, item.first) for item in items if isinstance(item, Run)]


def requests(total: Total) -> list[int]:
    """The first numbers of the runs that are asked for."""
    items, total.below = total.below, []
    return [item.first for item in items if isinstance(item, Run) and isinstance(item.head, Request)]


# -- the table of requests


def test_a_request_waits_until_the_sequencer_is_known_to_have_the_view() -> None:
    total = layer(C, knows=False)
    total.down(own(C, 1))
    total.down(own(C, 2))
    assert not sent(total)
    total.up(broadcast(B, 1, 0))
    assert requests(total) == [1, 2]


def test_own_runs_leave_the_table_when_they_come_back() -> None:
    total = layer(C)
    for number in (1, 2, 3):
        total.down(own(C, number))
    total.up(broadcast(C, 1, 0))
    assert [key[0] for key in total.table] == [2, 3]
    assert total.waits_for() == (A,)


def test_runs_beyond_the_cut_are_asked_for_again() -> None:
    """They were fetched for a view that was not installed: FLUSH drops them."""
    total = layer(C)
    for number in (1, 2, 3):
        total.down(own(C, number))
    total.up(broadcast(C, 1, 0))
    total.up_event(Stop(Ballot(2, B)))
    total.down_event(Fetch(A, 0, 3, B))
    for number in (2, 3):
        total.up(broadcast(C, number, number - 1))
    assert len(total.table) == 2
    sent(total)
    total.up_event(installed(NEXT, FIRST, cut={A: 2, B: 0, C: 0}))
    total.up(Run(B, None, (NewViewId(NEXT.id, 3, 3),)))
    assert requests(total) == [3]


def test_a_merge_drops_what_another_side_delivered() -> None:
    total = layer(C)
    for number in (1, 2, 3):
        total.down(own(C, number))
    sent(total)
    sides = (Subgroup(FIRST.id, (C,)), Subgroup(ViewId(5, B), (B,)))
    total.up_event(installed(NEXT, FIRST, digest={C: (3, 1)}, subgroups=sides))
    total.up(Run(B, None, (NewViewId(NEXT.id, 0, 0),)))
    assert requests(total) == [3]
    assert total.env.counters["runs delivered elsewhere"] == 2


def test_pieces_come_again_from_the_layer_that_cut_them() -> None:
    total = layer(C)
    total.down(own(C, 1))
    total.down(own(C, 2, index=1, count=0))
    sent(total)
    total.up_event(installed(NEXT, FIRST))
    total.up(Run(B, None, (NewViewId(NEXT.id, 0, 0),)))
    assert requests(total) == [1]


def test_what_was_handed_up_in_doubt_stays_in_the_table_until_the_doubt_is_over() -> None:
    total = layer(C)
    total.down(own(C, 1))
    total.up_event(Hold())
    total.up(broadcast(C, 1, 0))
    assert total.table
    total.up_event(Release())
    assert not total.table


def test_the_next_sequencer_orders_its_own_table_at_once() -> None:
    total = layer(B)
    total.down(own(B, 1))
    sent(total)
    total.up_event(installed(NEXT, FIRST))
    heads = sent(total)
    assert heads == [NewViewId(NEXT.id, 0, 0), Bcast(NEXT.id, 0, 0)]
    assert handed_up(total) == [(B, 1)]
    assert not total.table


# -- ordering


def test_each_origin_is_ordered_in_its_own_order() -> None:
    total = layer(A)
    for origin, number, first in ((B, 0, 1), (C, 0, 1), (B, 1, 2), (B, 1, 2), (B, 3, 4)):
        run = Run(origin, A, (Request(FIRST.id, number),), origin, first, 0, 1, pack([b"x"]))
        total.up(run)
    assert handed_up(total) == [(B, 1), (C, 1), (B, 2)]
    assert total.env.drops == {"request ordered before": 1, "request too far": 1}


@pytest.mark.parametrize(
    ("src", "origin", "view", "reason"),
    [
        (B, C, FIRST, "request of a stranger"),
        (Address("D", "4" * 16), Address("D", "4" * 16), FIRST, "request of a stranger"),
        (B, B, NEXT, "request of another view"),
    ],
)
def test_other_requests_are_dropped(src: Address, origin: Address, view: AgreedView, reason: str) -> None:
    total = layer(A)
    total.up(Run(src, A, (Request(view.id, 0),), origin, 1, 0, 1, pack([b"x"])))
    assert not handed_up(total)
    assert total.env.drops == {reason: 1}


@pytest.mark.parametrize("ends", [Stop(Ballot(2, B)), Gone(), Excluded("left", "")])
def test_nothing_is_ordered_after_the_end(ends: Event) -> None:
    total = layer(A)
    if isinstance(ends, Gone):
        total.down_event(ends)
    else:
        total.up_event(ends)
    total.up(Run(B, A, (Request(FIRST.id, 0),), B, 1, 0, 1, pack([b"x"])))
    assert not handed_up(total)
    assert not sent(total)


def test_requests_that_wait_for_the_end_of_a_doubt_are_given_up_with_the_view() -> None:
    total = layer(A)
    total.up_event(Hold())
    total.up(Run(B, A, (Request(FIRST.id, 0),), B, 1, 0, 1, pack([b"x"])))
    assert total.gauges()["deferred"] == 1
    total.up_event(Stop(Ballot(2, B)))
    assert total.gauges()["deferred"] == 0


# -- acknowledgements


def test_an_acknowledgement_leaves_after_so_many_runs_or_a_period() -> None:
    config = Config(unicast_ack_runs=3)
    total = layer(C, config=config)
    for seq in range(4):
        total.up(broadcast(A, seq + 1, seq))
    assert sent(total) == [CumSeqAck(FIRST.id, 3)]
    total.env.now = total.wake
    total.timer()
    assert total.env.now == config.nakack_period
    assert sent(total) == [CumSeqAck(FIRST.id, 4)]


def test_only_what_all_acknowledged_is_forgotten() -> None:
    total = layer(A)
    for number in range(1, 5):
        total.down(own(A, number))
    total.up(Run(B, A, (CumSeqAck(FIRST.id, 4),)))
    assert total.gauges()["stored"] == 4
    total.up(Run(C, A, (NewViewIdAck(FIRST.id),)))
    assert total.gauges()["stored"] == 4
    total.up(Run(C, A, (CumSeqAck(FIRST.id, 3),)))
    assert total.gauges()["stored"] == 1
    total.down_event(Stability({A: 2, B: 0, C: 0}, {A: 4, B: 0, C: 0}, 1, 1))
    assert total.gauges()["stored"] == 1


def test_an_id_that_was_acknowledged_alone_is_not_sent_again_within_a_period() -> None:
    total = layer(A)
    for number in range(1, 4):
        total.down(own(A, number))
    sent(total)
    total.up(Run(B, A, (SeqAck(FIRST.id, 1),)))
    total.up(Run(B, A, (Resend(FIRST.id, 0, ((0, 3),)),)))
    assert sent(total) == [Bcast(FIRST.id, 0, 0), Bcast(FIRST.id, 0, 2)]


def test_an_acknowledgement_of_more_than_was_sent_is_dropped() -> None:
    total = layer(A)
    total.up(Run(B, A, (CumSeqAck(FIRST.id, 9),)))
    total.up(Run(C, A, (CumSeqAck(FIRST.id, 9),)))
    assert total.env.drops == {"acknowledgement of what was not sent": 2}


def test_an_announcement_takes_the_way_of_the_broadcasts() -> None:
    """A unicast could arrive before a broadcast of the same turn, or before one that waits in another socket: members
    would request what is on its way."""
    total = layer(A)
    total.down(own(A, 1))
    total.env.now = total.wake
    total.timer()
    assert [(run.dest, run.head) for run in total.below if isinstance(run, Run)] == [
        (None, Bcast(FIRST.id, 0, 0)),
        (None, NewViewId(FIRST.id, 0, 1)),
    ]


def test_an_announcement_without_news_is_answered_once_in_a_period() -> None:
    """It may be for another member; if it is repeated, the acknowledgement of this member was lost."""
    total = layer(C)
    period = total.env.config.nakack_period
    total.up(broadcast(B, 1, 0))
    total.env.now = total.wake
    total.timer()
    assert sent(total) == [CumSeqAck(FIRST.id, 1)]
    total.env.now += period - 1
    total.up(Run(A, None, (NewViewId(FIRST.id, 0, 1),)))
    assert sent(total) == []
    total.env.now += 1
    for _ in range(2):
        total.up(Run(A, None, (NewViewId(FIRST.id, 0, 1),)))
    assert sent(total) == [CumSeqAck(FIRST.id, 1)]


# -- heads of the seed


def test_ids_are_not_used_twice_by_one_member() -> None:
    """The first id of a view is above all that its sequencer has heard of."""
    total = layer(B)
    for seq in range(5):
        total.up(broadcast(A, seq + 1, seq))
    sent(total)
    total.up_event(installed(NEXT, FIRST, cut={A: 5, B: 0, C: 0}))
    assert sent(total) == [NewViewId(NEXT.id, 5, 5)]


def test_a_message_to_one_member_is_marked_and_not_ordered() -> None:
    here, there = layer(A), layer(B)
    here.down(Run(A, B, (), A, 1, 0, 1, pack([b"x"])))
    (run,) = here.below
    assert isinstance(run, Run)
    assert run.heads == (Unicast(),)
    there.up(run)
    (up,) = there.above
    assert isinstance(up, Run)
    assert (up.heads, up.stream) == ((), None)


@pytest.mark.parametrize("head", [Bcast(FIRST.id, 5, 4), NewViewId(FIRST.id, 5, 4), NewViewId(FIRST.id, 7, 7)])
def test_impossible_ids_are_dropped(head: object) -> None:
    total = layer(C)
    total.up(Run(A, None, (head,), A, 1, 0, 1, pack([b"x"])))
    assert not handed_up(total)
    assert sum(total.env.drops.values()) == 1


@pytest.mark.parametrize("head", Total.heads, ids=lambda head: head.__name__)
def test_each_head_of_the_design_note_is_sent_in_a_conversation(head: type) -> None:
    conversations = [file.read_text() for file in (Path(__file__).parent / "text" / "total").glob("*.txt")]
    assert any(re.search(rf"^  sent .*\b{head.__name__}\b", text, re.MULTILINE) for text in conversations)
