"""UNICAST2 in numbers and under chance; the conversations themselves stand in text/unicast2/."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.events import Acknowledged, Forget, Gone, Unacknowledged, Undelivered
from pygroups.core.layer import NEVER
from pygroups.core.limits import UNICAST_ACK_LATE, UNICAST_PERIOD, Config
from pygroups.core.run import Run
from pygroups.core.view import ViewId
from pygroups.layers.nakack import Data as Place
from pygroups.layers.stable.votes import Vote
from pygroups.layers.unicast2.heads import Ack, Data
from pygroups.layers.unicast2.lanes import InLane, OutgoingConnection
from pygroups.layers.unicast2.layer import Unicast2
from pygroups.layers.unicast2.peers import Memory
from tests.layers.conversation import Conversation, Member, Word


def conversation(members: str, **config: int) -> Conversation:
    talk = Conversation("Unicast2")
    if config:
        talk.do("config " + " ".join(f"{name}={value}" for name, value in config.items()))
    talk.do(f"members {members}")
    return talk


def got(lines: list[str], who: str) -> list[str]:
    return [line.split("[")[1].split("]")[0] for line in lines if line.startswith(f"{who} got [")]


def layer(talk: Conversation, name: str) -> Unicast2:
    (unicast2,) = talk.members[name].under_test
    assert isinstance(unicast2, Unicast2)
    return unicast2


# -- what it costs


def test_without_loss_there_is_one_acknowledgement_for_32_runs_and_nothing_twice() -> None:
    talk = conversation("A B")
    lines = talk.do("flood A B 3200 a") + talk.do("run 10s")
    sent = [line.split()[1:3] for line in lines if line.startswith("sent ")]
    assert sent.count(["A>B", "Data"]) == 3_200
    assert sent.count(["B>A", "Ack"]) == 100
    assert len(sent) == 3_300


def test_nobody_wakes_when_nothing_is_open() -> None:
    talk = conversation("A B")
    assert layer(talk, "A").wake == NEVER
    talk.do("send A B a")
    assert layer(talk, "A").wake == 2 * UNICAST_PERIOD
    talk.do("run 1s")
    assert layer(talk, "A").wake == layer(talk, "B").wake == NEVER


@pytest.mark.parametrize("lossless", [False, True])
def test_an_acknowledgement_that_nobody_waits_for_may_be_late_where_losses_are_reported(lossless: bool) -> None:
    talk = Conversation("Unicast2")
    if lossless:
        talk.do("world lossless")
    talk.do("members A B")
    for command in ("tell A B hello", "send A B x", "run 1s"):  # both lanes open
        talk.do(command)
    receiver = layer(talk, "B")
    for command, pause in (
        ("tell A B again", UNICAST_ACK_LATE if lossless else UNICAST_PERIOD),
        ("send A B y", UNICAST_PERIOD),  # the application may wait for this one
    ):
        talk.do(command)
        talk.do("deliver")
        assert receiver.wake == receiver.env.now + pause
    assert "holds nothing" in "".join(talk.do("run 1s") + talk.do("show A"))


# -- limits


def test_a_request_for_everything_is_served_a_little_at_a_time() -> None:
    talk = conversation("A B", unicast_request_runs=8)
    talk.do("flood A B 100 a")
    talk.do("lose A>B")
    talk.do("put B>A Resend conn=1 lane=1 low=0 high=100000000")
    assert len(talk.do("deliver B>A")) == 8


def test_what_waits_for_a_hole_is_bounded_and_comes_all_the_same() -> None:
    talk = conversation("A B", unicast_early_max=16)
    talk.do("flood A B 100 a")
    talk.do("lose A>B 1")
    lines = talk.do("deliver A>B")
    assert got(lines, "B") == []
    assert layer(talk, "B").gauges()["early"] == 15
    lines += talk.do("run 60s")
    assert got(lines, "B") == [f"a{n}" for n in range(100)]
    assert talk.members["B"].env.counters["drop unicast beyond the window"] >= 84


def test_a_lane_longer_than_the_window_is_repaired_when_all_of_it_was_lost() -> None:
    """The last run lies beyond what the receiver keeps, so that repeating it alone would never move anything."""
    talk = conversation("A B", unicast_early_max=16)
    talk.do("flood A B 1 first")
    talk.do("run 1s")
    talk.do("flood A B 40 a")
    talk.do("lose A>B")
    assert got(talk.do("run 60s"), "B") == [f"a{n}" for n in range(40)]
    assert talk.members["A"].stack.gauges()["unicast2.sent"] == 0


def test_strangers_displace_the_oldest_outsider_and_no_member() -> None:
    names = [f"S{n}" for n in range(6)]
    talk = conversation("A M " + " ".join(names), unicast_peers_max=2)
    talk.do("view 1 A M at A")
    for name in ["M", *names]:
        talk.do(f"send {name} A hello")
        talk.do("deliver")
    known = [peer.name for peer in layer(talk, "A").receiving.connections]
    assert known == ["M", "S5"]
    assert [peer.name for peer in layer(talk, "A").receiving.tombstones.things] == ["S0", "S1", "S2", "S3", "S4"]
    lines = talk.do("run 1s") + talk.do("send S0 A again") + talk.do("deliver")
    assert got(lines, "A") == ["again"]
    for name in names:
        talk.do(f"send A {name} hi")
    assert len(layer(talk, "A").sending.connections) == 2


def test_an_end_that_is_forgotten_too_soon_is_counted() -> None:
    talk = conversation("A S T U", unicast_peers_max=1, tombstones_max=1)
    for name in "STU":
        talk.do(f"send {name} A hello")
        talk.do("deliver")
    assert [peer.name for peer in layer(talk, "A").receiving.tombstones.things] == ["T"]
    assert talk.members["A"].env.counters["drop end of a connection forgotten too soon"] == 1


def test_memory_is_bounded_and_ends() -> None:
    memory: Memory[int] = Memory(age=10, most=2)
    peers = [Address(name, "01") for name in "ABC"]
    assert [memory.put(peer, number, now=number) for number, peer in enumerate(peers)] == [False, False, True]
    assert [memory.get(peer, 11) for peer in peers] == [None, None, 2]
    assert [memory.get(peer, 10) for peer in peers] == [None, 1, 2]
    memory.put(peers[1], 7, now=5)
    memory.put(peers[0], 8, now=6)
    assert [memory.get(peer, 10) for peer in peers] == [8, 7, None]
    assert not memory.put(peers[2], 9, now=15)  # the oldest one's time was over


def test_a_unicast_in_the_name_of_another_origin_is_dropped_and_keeps_its_number() -> None:
    talk = conversation("A B C")
    a, b, c = (talk.members[name] for name in "ABC")
    forged = a.run_of(b.address, ["forged"]).readdressed(c.address, b.address)
    c.ear.to_send.append(forged)
    c.stack.end_turn(0)  # lost: what C's own layer would send is the same run under the same head
    for frame in c.codec.encode(c.address, b.address, [forged.push(Data(1, 1, 0, 0, True))]):
        b.stack.receive(frame, 0)
    assert b.stack.end_turn(0).events == []
    assert b.env.counters["drop unicast of another origin"] == 1
    assert layer(talk, "B").receiving.connections[c.address].lanes[1].next == 1


# -- lanes against a slow model


@given(st.sets(st.integers(1, 60)), st.integers(1, 61), st.integers(1, 20))
def test_holes_are_what_is_missing_below_the_horizon(early: set[int], horizon: int, most: int) -> None:
    lane = InLane()
    nothing = Run(Address("A", "01"), None)
    lane.next, lane.horizon, lane.early = 0, horizon, dict.fromkeys(sorted(early, reverse=True), nothing)
    shown = [seq for seq in early if seq < horizon]
    missing = [seq for seq in range(max(shown, default=0)) if seq not in early]
    holes = list(lane.holes(most))
    assert [seq for low, high in holes for seq in range(low, high)] == missing[:most]
    assert all(low < high for low, high in holes)


@given(st.sets(st.integers(1, 60)), st.integers(1, 61), st.integers(0, 80))
def test_what_is_held_is_not_asked_for(early: set[int], horizon: int, beyond: int) -> None:
    lane = InLane()
    lane.next, lane.horizon, lane.beyond = 0, horizon, beyond
    lane.early = dict.fromkeys(sorted(early), Run(Address("A", "01"), None))
    asked = [seq for low, high in lane.holes(64) for seq in range(low, high)]
    assert not early & set(asked)
    if not early:
        assert asked == list(range(min(beyond, 64)))  # all that came was refused, and it is its turn now


@given(st.lists(st.integers(0, 12)))
def test_what_is_sent_is_what_is_not_acknowledged(marks: list[int]) -> None:
    lane = OutgoingConnection(1).lanes[0]
    lane.sent = {seq: Run(Address("A", "01"), None) for seq in range(12)}
    lane.next = 12
    sent = list(lane.sent.values())
    highest = 0
    for mark in marks:
        assert lane.acknowledge(mark) == sent[highest:mark]
        highest = max(highest, mark)
        assert (lane.low, list(lane.sent)) == (highest, list(range(highest, 12)))


# -- under chance


class Frame(NamedTuple):
    dest: Member
    bytes: bytes


class Chance:
    """Two members, no group; any frame in flight may be delivered, lost or repeated at any time."""

    def __init__(self) -> None:
        config = Config(tombstone=10_000_000_000, unicast_ack_runs=3, unicast_early_max=64)
        self.members = [Member(name, number, [Unicast2], config) for number, name in enumerate("AB", 1)]
        self.now = 0
        self.flight: list[Frame] = []
        self.words = [0, 0]
        self.heard: list[list[int]] = [[], []]
        self.reported: list[set[int]] = [set(), set()]

    def send(self, which: int) -> None:
        self.down(which, self.members[which].run_of(self.members[1 - which].address, ["x"]))

    def tell(self, which: int) -> None:
        self.words[which] += 1
        me, peer = self.members[which], self.members[1 - which]
        self.down(which, Run(me.address, peer.address, (Word(str(self.words[which])),)))

    def down(self, which: int, run: Run) -> None:
        self.members[which].ear.to_send.append(run)
        self.end_turn(which)

    def forget(self, which: int) -> None:
        self.members[which].stack.asked(Forget(self.members[1 - which].address), self.now)
        self.end_turn(which)

    def deliver(self, place: int) -> None:
        if self.flight:
            frame = self.flight.pop(place % len(self.flight))
            frame.dest.stack.receive(frame.bytes, self.now)
            self.end_turn(self.members.index(frame.dest))

    def lose(self, place: int) -> None:
        if self.flight:
            self.flight.pop(place % len(self.flight))

    def repeat(self, place: int) -> None:
        if self.flight:
            self.flight.append(self.flight[place % len(self.flight)])

    def tick(self) -> None:
        when = min(member.stack.wake() for member in self.members)
        if when != NEVER:
            self.now = max(self.now, when)
            for which, member in enumerate(self.members):
                if member.stack.wake() <= self.now:
                    member.stack.advance(self.now)
                    self.end_turn(which)

    def end_turn(self, which: int) -> None:
        me, peer = self.members[which], self.members[1 - which]
        output = me.stack.end_turn(self.now)
        me.written.extend((kind, fields) for kind, _, fields in output.records)
        self.flight.extend(Frame(peer, frame) for _, frames in output.frames for frame in frames)
        for item in output.events:
            if isinstance(item, Undelivered):
                self.reported[which].update(item.numbers)
            elif isinstance(item, Run) and isinstance(item.head, Word):
                self.heard[which].append(int(item.head.text))

    def settle(self) -> None:
        for _ in range(3_000):
            if not self.flight and all(member.stack.wake() == NEVER for member in self.members):
                return
            while self.flight:
                self.deliver(0)
            self.tick()
        raise AssertionError("they never come to rest")

    def written(self, which: int, kind: str) -> list[tuple[int, int]]:
        """Connection and number of each message, in the order of the journal; count is 1 everywhere here."""
        records: list[tuple[str, dict[str, Any]]] = self.members[which].written
        return [(fields["connection"], fields["first"]) for written, fields in records if written == kind]

    def check(self, *, at_rest: bool) -> None:
        for which in (0, 1):
            sent, delivered = self.written(which, "unicast_send"), self.written(1 - which, "unicast_deliver")
            for conn in sorted({conn for conn, _ in sent}):
                on_it = [number for c, number in delivered if c == conn]
                assert on_it == [number for c, number in sent if c == conn][: len(on_it)]
            numbers = [number for _, number in delivered]
            assert numbers == sorted(set(numbers))
            words = self.heard[1 - which]
            assert words == sorted(set(words))
            if at_rest:
                lost = {number for _, number in sent} - set(numbers)
                assert lost <= self.reported[which], "neither delivered nor reported"
                assert all(not value for value in self.members[which].stack.gauges().values())


STEPS = ("send", "send", "send", "tell", "deliver", "deliver", "deliver", "lose", "repeat", "tick", "tick", "forget")


def step(world: Chance, what: str, number: int) -> None:
    if what == "tick":
        world.tick()
    elif what in ("deliver", "lose", "repeat"):
        getattr(world, what)(number)
    else:
        getattr(world, what)(number % 2)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 30)), max_size=120))
def test_once_in_order_and_nothing_is_lost_in_silence(steps: list[tuple[str, int]]) -> None:
    world = Chance()
    for what, number in steps:
        step(world, what, number)
        world.check(at_rest=False)
    world.settle()
    world.check(at_rest=True)


@pytest.mark.parametrize("seed", range(40))
def test_long_schedules_end_well_too(seed: int) -> None:
    """Hypothesis keeps its lists short; late duplicates need length."""
    world, rng = Chance(), random.Random(seed)
    steps = STEPS if seed % 2 else STEPS[:-1]  # with and without anybody who forgets
    for _ in range(600):
        step(world, rng.choice(steps), rng.randrange(60))
    world.check(at_rest=False)
    world.settle()
    world.check(at_rest=True)
    if seed % 2 == 0:
        assert [n for _, n in world.written(1, "unicast_deliver")] == [n for _, n in world.written(0, "unicast_send")]


def test_a_lost_acknowledgement_head_is_no_payload() -> None:
    """A guard for the checks above: an acknowledgement that claims too much is noticed by them."""
    world = Chance()
    for _ in range(3):
        world.send(0)
    world.deliver(0)
    world.lose(0)
    a, b = world.members
    world.flight.clear()
    for frame in b.codec.encode(b.address, a.address, [Run(b.address, a.address, (Ack(1, 1, 3),))]):
        world.flight.append(Frame(a, frame))
    world.settle()
    with pytest.raises(AssertionError, match="neither delivered nor reported"):
        world.check(at_rest=True)


def test_what_is_loose_goes_past_the_connections_both_ways() -> None:
    talk = conversation("A B")
    unicast2, me, peer = layer(talk, "A"), talk.members["A"].address, talk.members["B"].address
    vote = Vote(ViewId(1, me), 1, [], [], [], [])
    unicast2.down(Run(me, peer, (vote,)))
    unicast2.up(Run(peer, me, (vote,)))
    assert [run.heads for run in unicast2.below] == [(vote,)]
    assert [run.heads for run in unicast2.above] == [(vote,)]
    assert not unicast2.sending.connections
    assert not unicast2.receiving.connections


def test_after_the_end_nothing_is_acknowledged_any_more() -> None:
    """Nobody above takes it: its sender must hear that it was not acknowledged."""
    talk = conversation("A B")
    unicast2, me, peer = layer(talk, "A"), talk.members["A"].address, talk.members["B"].address
    unicast2.down_event(Gone())
    unicast2.up(Run(peer, me, (Data(1, 1, 0, 0, True),), peer, 1, 0, 1, b"\x91\xc4\x01x"))
    assert unicast2.above == []
    assert unicast2.env.drops == {"unicast after the end": 1}
    assert not unicast2.receiving.connections


def test_what_is_sent_after_the_end_is_reported_at_once() -> None:
    """A program may send in the very turn in which its end comes."""
    talk = conversation("A B")
    unicast2, me, peer = layer(talk, "A"), talk.members["A"].address, talk.members["B"].address
    unicast2.down_event(Gone())
    unicast2.below = []
    unicast2.down(Run(me, peer, (), me, 1, 0, 2, b"\x92\xc4\x01x\xc4\x01y"))
    assert unicast2.below == []
    assert unicast2.above == [Undelivered(peer, range(1, 3))]


def test_a_layer_is_told_when_its_unicast_waits_and_when_it_has_arrived() -> None:
    talk = conversation("A B")
    unicast2, me, peer = layer(talk, "A"), talk.members["A"].address, talk.members["B"].address
    heads = [Place(ViewId(1, me), me, seq) for seq in range(3)]
    for head in heads:
        unicast2.down(Run(me, peer, (head,), me, 1, 0, 1, b"\x91\xc4\x01x"))
        unicast2.down(Run(me, peer, (Word("other"),), me, 1, 0, 1, b"\x91\xc4\x01y"))
    unicast2.down(Run(me, peer, (heads[0],)))  # without payload: on the lane for control
    assert unicast2.above == [Unacknowledged(peer, head) for head in heads]
    unicast2.above = []
    unicast2.up(Run(peer, me, (Ack(1, 1, 3),)))
    assert unicast2.above == [Acknowledged(peer, heads[:2])]
    unicast2.above = []
    unicast2.up(Run(peer, me, (Ack(1, 1, 4),)))
    assert unicast2.above == []
    unicast2.up(Run(peer, me, (Ack(1, 1, 6),)))
    assert unicast2.above == [Acknowledged(peer, heads[2:])]


def test_an_answer_is_told_again_on_the_connection_that_follows_one_that_was_forgotten() -> None:
    talk = conversation("A B")
    talk.do("view 1 A B")
    unicast2, me, peer = layer(talk, "A"), talk.members["A"].address, talk.members["B"].address
    head = Place(ViewId(1, me), me, 0)
    unicast2.down(Run(me, peer, (head,), me, 1, 0, 1, b"\x91\xc4\x01x"))
    unicast2.above = []
    unicast2.down_event(Forget(peer))
    assert unicast2.above == [Unacknowledged(peer, head)]
    unicast2.above = []
    unicast2.up(Run(peer, me, (Ack(2, 1, 1),)))
    assert unicast2.above == [Acknowledged(peer, [head])]
