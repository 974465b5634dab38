"""The invariants of NAKACK and STABLE as properties.

While it runs, the simulator checks NAK-I1 (`no-duplication`, `fifo`), NAK-I2 (`repair-in-time`), STB-I1 and STB-I2
(`stability-safety`) and STB-I3 (`stable-in-time`, `buffers-drain`).
"""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from pygroups.core.address import Address
from pygroups.core.events import Consumed, Event, Held, HeldQuery, NewView, Stability
from pygroups.core.layer import Env
from pygroups.core.limits import MILLISECOND, SECOND, STABLE_QUIET, Config
from pygroups.core.run import Run, pack
from pygroups.core.view import AgreedView, ViewId
from pygroups.layers.nakack import Data, HighestSeq, XmitReq
from pygroups.layers.stable.layer import Stable
from pygroups.layers.stable.votes import StabilityMsg, Vote
from tests.layers.streams_world import Network, World

A, B, C = (Address(name, f"{number:016x}") for number, name in enumerate("ABC", 1))
VIEW = AgreedView(ViewId(1, A), (A, B, C), ("a", "b", "c"))
SENDS = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(1, 4), st.integers(0, 40_000)), min_size=1, max_size=30)
SEEDS = st.integers(0, 1 << 32)


def talking(world: World, sends: list[tuple[str, int, int]]) -> dict[str, int]:
    """Let the members send; how many messages each of them sent."""
    numbers = dict.fromkeys("ABC", 0)
    for name, count, pause in sends:
        world.send(name, *range(numbers[name], numbers[name] + count))
        numbers[name] += count
        world.run(world.now + pause)
    return numbers


def watched(world: World) -> list[tuple[str, str, object]]:
    """The heads that leave from now on, with sender and receiver; nothing is lost."""
    seen: list[tuple[str, str, object]] = []

    def watch(src: str, dest: str, run: Run) -> bool:
        seen.append((src, dest, run.head))
        return False

    world.lose_if = watch
    return seen


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, sends=SENDS, sender=st.sampled_from("ABC"), receiver=st.sampled_from("ABC"))
def test_nak_i2_a_lost_tail_is_repaired_within_two_periods(
    seed: int, sends: list[tuple[str, int, int]], sender: str, receiver: str
) -> None:
    """And within two stability messages, if each announcement of the tail is lost too."""
    for announced in (True, False):
        world = World("ABC", seed=seed)
        world.install("ABC", 1)
        numbers = talking(world, sends)
        world.settle()
        last = numbers[sender]

        def tail(src: str, dest: str, run: Run, announced: bool = announced) -> bool:
            lost = isinstance(run.head, Data) and run.dest is None
            lost = lost or (isinstance(run.head, HighestSeq) and not announced)
            return (src, dest) == (sender, receiver) and lost

        world.lose_if = tail
        world.send(sender, last)
        config = world.config
        two_rounds = 2 * (config.stable_period + STABLE_QUIET) + 2 * config.nakack_period
        world.run(world.now + (2 * config.nakack_period if announced else two_rounds) + 4 * world.network.delay_max)
        assert world[receiver].numbers(sender) == list(range(last + 1))


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, sends=SENDS, slowest=st.integers(1, 19_900))
def test_nak_i3_reordering_shorter_than_a_period_causes_no_request(
    seed: int, sends: list[tuple[str, int, int]], slowest: int
) -> None:
    world = World("ABC", seed=seed, network=Network(delay_min=0, delay_max=slowest))
    world.install("ABC", 1)
    seen = watched(world)
    talking(world, sends)
    world.settle()
    assert [head for _, _, head in seen if isinstance(head, XmitReq)] == []


@settings(max_examples=30, deadline=None)
@given(
    seed=SEEDS,
    sends=SENDS,
    network=st.builds(Network, loss=st.sampled_from([0.0, 0.2, 0.4]), delay_max=st.sampled_from([300, 30_000])),
)
def test_nak_i5_announcements_end_and_stb_i3_a_quiet_group_purges_within_two_rounds_and_votes_no_more(
    seed: int, sends: list[tuple[str, int, int]], network: Network
) -> None:
    world = World("ABC", seed=seed, network=network)
    world.install("ABC", 1)
    numbers = talking(world, sends)
    world.network = Network()
    while not all(
        process.numbers(name) == list(range(n)) for process in world.members.values() for name, n in numbers.items()
    ):
        world.run(world.now + MILLISECOND)
        assert world.now < 60 * SECOND
    config = world.config  # all have all: two rounds, each begun by a repetition at the latest
    world.run(world.now + 2 * (config.stable_backoff_max + STABLE_QUIET) + 20 * MILLISECOND)
    assert [process.held() for process in world.members.values()] == [{}, {}, {}]
    seen = watched(world)
    world.run(world.now + 60 * SECOND)
    assert seen[3 * 3 :] == [], "what is still said is the end of back-offs"
    world.run(world.now + 600 * SECOND)
    assert seen[3 * 3 :] == []


# -- suspension


class Suspended:
    """One member's STABLE in a view of three, with a model of its suspension."""

    def __init__(self, me: Address) -> None:
        self.me = me
        self.stable = Stable(Env(me, 0, random.Random(1), Config(stable_suspend_max=10 * SECOND)))
        self.stable.up_event(NewView(VIEW, None, (), VIEW.members, (), True, None))
        self.until = 0
        self.delivered = 0
        self.rounds = 0
        self.end_turn()

    def end_turn(self) -> None:
        """End the turn: nothing of STABLE leaves a suspended member, and nothing is purged in it."""
        stable = self.stable
        stable.end_turn()
        left: list[object] = []
        while stable.below:
            items, stable.below = stable.below, []
            for item in items:
                if isinstance(item, HeldQuery):
                    stable.up_event(Held(Stable, {}, {A: self.delivered, B: 0, C: 0}))
                else:
                    left.append(item.head if isinstance(item, Run) else item)
        left += [item for item in stable.above if isinstance(item, Event)]
        stable.above.clear()
        if stable.env.now < self.until:
            assert [item for item in left if isinstance(item, Vote | StabilityMsg | Stability)] == []

    def deliver(self, _: int) -> None:
        body = pack([b"x"])
        self.stable.up(Run(A, None, (), A, self.delivered + 1, 0, 1, body, A, self.delivered))
        self.delivered += 1
        self.stable.down_event(Consumed({A: self.delivered + 1}))

    def hear(self, _: int) -> None:
        """The votes of the others, or the result of the coordinator, as far as this member has delivered."""
        self.rounds += 1
        vector, marks = [self.delivered, 0, 0], [self.delivered + 1, 1, 1]
        if self.me == A:
            for voter in (B, C):
                vote = Vote(VIEW.id, self.rounds, vector, vector, marks, marks)
                self.stable.up(Run(voter, A, (vote,)))
        else:
            msg = StabilityMsg(VIEW.id, self.rounds, vector, vector, marks, marks)
            self.stable.up(Run(A, None, (msg,)))

    def suspend(self, duration: int) -> None:
        self.stable.suspend(duration)
        self.until = self.stable.env.now + min(duration, 10 * SECOND)

    def resume(self, _: int) -> None:
        self.stable.resume()
        self.until = 0

    def wait(self, duration: int) -> None:
        stable, end = self.stable, self.stable.env.now + duration
        while stable.wake <= end:
            stable.env.now = max(stable.env.now, stable.wake)
            stable.timer()
            assert stable.wake > stable.env.now
            self.end_turn()
        stable.env.now = end


@settings(max_examples=200, deadline=None)
@given(
    me=st.sampled_from((A, B)),
    steps=st.lists(
        st.tuples(
            st.sampled_from(("deliver", "deliver", "hear", "hear", "suspend", "resume", "wait", "wait")),
            st.integers(0, 20 * SECOND),
        ),
        max_size=40,
    ),
)
def test_stb_i4_a_suspended_member_neither_votes_nor_purges_and_the_end_comes_by_itself(
    me: Address, steps: list[tuple[str, int]]
) -> None:
    member = Suspended(me)
    for name, value in steps:
        getattr(member, name)(value)
        member.end_turn()
    member.suspend(3_600 * SECOND)
    member.deliver(0)
    member.end_turn()
    member.wait(10 * SECOND + 2)
    before = member.stable.round
    member.wait(2 * SECOND)
    assert member.stable.round > 0 and member.stable.round >= before
    assert member.stable.delivered[A] == member.delivered
    member.hear(0)
    member.end_turn()
    member.wait(2 * SECOND)
    assert member.stable.last is not None and member.stable.last.purge == [member.delivered, 0, 0]
