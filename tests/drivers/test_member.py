"""The pump: what is one turn, in which order it leaves, and what happens when a part of it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from pygroups.core.address import Address
from pygroups.core.driver_events import Contacts, Disconnect, Found, Probe
from pygroups.core.errors import JournalFailed
from pygroups.core.events import Consumed, Event, Excluded, Join, Leave, Marks, NewView
from pygroups.core.former import FormerLife
from pygroups.core.run import Run
from pygroups.core.stack import Stack
from pygroups.core.top import Delivered, Top
from pygroups.core.turn import Source
from pygroups.drivers.former_life import Former
from pygroups.drivers.member import CLOCK, Member
from pygroups.journal.errors import JournalError
from pygroups.journal.writer import JournalWriter
from tests.drivers.tiny_stack import A, B, Tiny, tiny_stack
from tests.patience import patience


class World:
    """Everything around a member, in one diary of what happened in which order."""

    def __init__(self, others: Sequence[Address] = (B,), **config: Any) -> None:
        self.stack: Stack = tiny_stack(A, (A, *others), journaling=True, **config)
        self.diary: list[Any] = []
        self.events: list[Run | Event] = []
        self.marks: Marks = {}
        self.error: BaseException | None = None
        self.refusing = ""
        self.member = Member(
            self.stack,
            self,
            self,
            cast(JournalWriter, self),
            self,
            asyncio.get_running_loop(),  # type: ignore[arg-type]
        )

    @property
    def top(self) -> Top:
        return cast(Top, self.stack.layers[0])

    # network
    def send(self, frames: Iterable[tuple[Sequence[Address], Sequence[bytes]]]) -> None:
        self.diary.append(("network", [dest.name for dests, _ in frames for dest in dests]))

    def learn(self, contacts: Mapping[Address, str], source: Source) -> None:
        self.diary.append(("learn", dict(contacts)))

    def probe(self, peer: Address) -> None:
        self.diary.append(("probe", peer))

    def disconnect(self, peer: Address) -> None:
        self.diary.append(("disconnect", peer))

    # discovery
    def find(self, founding: bool) -> None:
        self.member.happened(Found({}, True))

    def announce(self, member: bool, invited: bool = False) -> None:
        self.diary.append(("announce", member))

    def installed(self, members: Collection[Address]) -> None:
        self.diary.append(("installed", len(members)))

    def refresh(self) -> None:
        self.diary.append("refresh")

    # journal
    def write(self, records: Sequence[tuple[str, object, Mapping[str, Any]]], time_us: int, mono_us: int) -> None:
        if self.refusing:
            raise JournalError(self.refusing)
        self.diary.append(("journal", [kind for kind, _, _ in records]))

    # inbox
    def consumed(self) -> Consumed | None:
        marks, self.marks = self.marks, {}
        return Consumed(marks) if marks else None

    def arrived(self, events: Sequence[Run | Event]) -> None:
        self.events += events
        self.diary.append(("application", [type(event).__name__ for event in events]))

    def turned(self) -> None:
        self.diary.append("turned")

    def journal_lost(self, reason: str) -> None:
        self.diary.append(("journal lost", reason))

    def crashed(self, error: BaseException) -> None:
        self.error = error

    def close(self) -> None:
        self.diary.append("closed")


def in_a_loop(story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await story()

    asyncio.run(main())


async def settled(passes: int = 20) -> None:
    for _ in range(passes):
        await asyncio.sleep(0)


async def joined(world: World) -> None:
    world.member.ask(Join())
    await settled()
    world.diary.clear()


def test_a_turn_goes_to_the_journal_then_to_the_network_then_to_the_application() -> None:
    async def story() -> None:
        world = World()
        await joined(world)
        world.top.accept(b"x")
        world.member.schedule()
        assert world.diary == []  # nothing before the turn
        await settled()
        assert world.diary == [
            ("journal", ["send", "deliver"]),
            ("network", ["B"]),
            ("application", ["Delivered", "Reached"]),
            "turned",
        ]

    in_a_loop(story)


def test_joining_finds_others_announces_and_gives_a_view() -> None:
    async def story() -> None:
        world = World()
        world.member.ask(Join())
        await settled()
        assert [type(event) for event in world.events] == [NewView]
        assert ("announce", True) in world.diary

    in_a_loop(story)


def test_whatever_comes_in_one_pass_of_the_loop_is_one_turn() -> None:
    async def story() -> None:
        world, other = World(), tiny_stack(B, (B, A))
        other.asked(Join(), 0)
        other.happened(Found({}, True), 0)
        cast(Top, other.layers[0]).accept(b"from B")
        frames = [frame for _, frames in other.end_turn(0).frames for frame in frames]
        await joined(world)
        world.top.accept(b"x")
        world.member.schedule()
        for frame in frames:
            world.member.receive(memoryview(frame))
        world.marks = {B: 2}
        await settled(1)
        assert world.diary.count("turned") == 1
        delivered = [event.run.origin for event in world.events if isinstance(event, Delivered)]
        assert sorted(origin for origin in delivered if origin is not None) == [A, B]

    in_a_loop(story)


def test_what_was_consumed_is_told_once_a_turn_and_not_when_nothing_was() -> None:
    async def story() -> None:
        world = World()
        await joined(world)
        told: list[Event] = []
        tiny = cast(Tiny, world.stack.layers[1])
        tiny.down_event = told.append  # type: ignore[method-assign]
        world.member.schedule()
        await settled()
        assert told == []
        world.marks = {B: 7}
        world.member.schedule()
        await settled()
        assert told == [Consumed({B: 7})]

    in_a_loop(story)


def test_a_timer_of_the_stack_makes_a_turn() -> None:
    async def story() -> None:
        world = World()
        await joined(world)
        tiny, rang = cast(Tiny, world.stack.layers[1]), asyncio.Event()
        tiny.rings = rang.set
        tiny.wake = CLOCK.now() + 30_000
        world.member.schedule()
        await settled()
        assert not rang.is_set()
        tiny.wake = CLOCK.now() + 1_000  # earlier than what is set
        world.member.schedule()
        await asyncio.wait_for(rang.wait(), patience(5))
        assert world.member.timer_at > CLOCK.now()

    in_a_loop(story)


def test_a_broken_assertion_crashes_the_member_and_nothing_is_swallowed() -> None:
    async def story() -> None:
        world = World()
        await joined(world)
        tiny = cast(Tiny, world.stack.layers[1])

        def broken(run: Run) -> None:
            assert not run, "a fault of ours"

        tiny.down = broken  # type: ignore[method-assign]
        world.top.accept(b"x")
        world.member.schedule()
        await settled()
        assert isinstance(world.error, AssertionError)
        assert world.diary == ["closed"] * 3  # network, discovery and journal; and not a byte left
        world.member.schedule()
        world.member.ask(Leave())
        world.member.receive(memoryview(b"late"))
        await settled()
        assert world.diary == ["closed"] * 3

    in_a_loop(story)


def test_what_cannot_be_closed_keeps_nothing_else_open() -> None:
    async def story() -> None:
        world = World()
        await joined(world)
        closed: list[str] = []

        def broken(what: str) -> Any:
            def close() -> None:
                closed.append(what)
                raise OSError(what)

            return type("Broken", (), {"close": staticmethod(close)})()

        world.member.network, world.member.discovery = broken("network"), broken("discovery")
        world.member.journal = broken("journal")
        with pytest.raises(OSError, match="journal"):
            world.member.close()
        assert closed == ["network", "discovery", "journal"]

    in_a_loop(story)


def test_a_frame_that_breaks_a_layer_crashes_and_noise_does_not() -> None:
    async def story() -> None:
        world = World()
        await joined(world)
        world.member.receive(memoryview(b"noise"))
        await settled()
        assert world.error is None
        assert world.stack.env.counters == {"drop the frame is too short or too long": 1}
        world.stack.receive = lambda frame, now: 1 / 0  # type: ignore[method-assign, assignment]
        world.member.receive(memoryview(b"noise"))
        assert isinstance(world.error, ZeroDivisionError)

    in_a_loop(story)


def test_a_lost_journal_is_told_and_the_member_goes_on() -> None:
    async def story() -> None:
        world = World()
        await joined(world)
        world.refusing = "the disk is full"
        world.top.accept(b"x")
        world.member.schedule()
        await settled()
        assert world.diary == [
            ("journal lost", "the disk is full"),
            ("network", ["B"]),
            ("application", ["Delivered", "Reached"]),
            "turned",
        ]
        assert world.stack.env.counters["journal outages"] == 1

    in_a_loop(story)


def test_an_answer_for_a_former_life_is_written_there_or_does_not_leave() -> None:
    former_life = Address("A", "f" * 16)

    async def story() -> None:
        world = World()
        await joined(world)
        other = World()
        former = Former(FormerLife(former_life), cast(JournalWriter, other))
        world.member.answers_for(former)
        assert world.stack.env.former is former.life

        world.stack.env.records.append(("flush", None, {"stage": "collect", "life": former_life}))
        world.top.accept(b"x")
        world.member.schedule()
        await settled()
        assert other.diary == [("journal", ["flush"])]
        assert world.diary[:2] == [("journal", ["send", "deliver"]), ("network", ["B"])]

        other.refusing = "the disk is full"
        world.diary.clear()
        world.stack.env.records.append(("flush", None, {"stage": "accepted", "life": former_life}))
        world.top.accept(b"y")
        world.member.schedule()
        await settled()
        assert world.diary == ["closed", "closed", "closed"]  # journal, discovery and network
        assert other.diary[-1] == "closed"
        assert isinstance(world.error, JournalFailed)

    in_a_loop(story)


def test_a_record_that_fits_no_schema_is_a_fault_of_ours(tmp_path: Path) -> None:
    async def story() -> None:
        world = World()
        world.member.journal = JournalWriter(tmp_path, "g", *A, "total", host="h", boot_id="b")
        world.member.record("stats", {"no such field": 1})
        await settled()
        assert isinstance(world.error, ValueError)

    in_a_loop(story)


def test_statistics_come_again_and_keep_the_entry_young() -> None:
    async def story() -> None:
        world = World(stats_period=2_000)
        world.member.begin()
        async with asyncio.timeout(patience(5)):
            while world.diary.count("refresh") < 3:
                await asyncio.sleep(0.001)
        await settled()
        kinds = [kind for entry in world.diary if entry[0] == "journal" for kind in entry[1]]
        assert kinds[0] == "start"
        assert kinds.count("stats") >= 3
        world.member.close()

    in_a_loop(story)


def test_commands_of_the_stack_are_obeyed() -> None:
    async def story() -> None:

        world = World()
        await joined(world)
        world.stack.layers[1].below += [Probe(B), Disconnect(B), Contacts({B: "x:1"})]
        world.member.schedule()
        world.member.ask(Consumed({}))
        await settled()
        assert world.diary[:3] == [("learn", {B: "x:1"}), ("probe", B), ("disconnect", B)]

    in_a_loop(story)


def test_the_last_event_is_the_end() -> None:
    async def story() -> None:
        world = World()
        await joined(world)
        world.events.clear()
        world.member.ask(Leave())
        await settled()
        assert world.events == [Excluded("left", "")]
        assert ("announce", False) in world.diary

    in_a_loop(story)


@pytest.mark.parametrize("late", [0, 1])
def test_nothing_is_pumped_after_the_end(late: int) -> None:
    async def story() -> None:
        world = World()
        await joined(world)
        world.member.schedule()
        for _ in range(late):
            await settled()
        world.diary.clear()
        world.member.close()
        await settled()
        assert world.diary == ["closed"] * 3

    in_a_loop(story)


class Steps:
    """A clock that moves by `step` microseconds with each look at it."""

    def __init__(self, step: int) -> None:
        self.step, self.time = step, 0

    def now(self) -> int:
        self.time += self.step
        return self.time

    wall = now


async def yields(world: World, messages: int) -> int:
    """Send a message in each pass of the loop; returns the turns that it took."""
    before = world.diary.count("turned")
    for _ in range(messages):
        world.top.accept(b"x")
        world.member.schedule()
        await asyncio.sleep(0)
    await settled()
    return world.diary.count("turned") - before


@pytest.mark.parametrize(("step", "turns"), [(0, range(6, 9)), (1_000, range(70, 90))])
def test_a_task_that_yields_after_each_message_shares_turns(step: int, turns: range) -> None:
    async def story() -> None:
        world = World()
        world.member.clock = Steps(step)
        await joined(world)
        assert await yields(world, 8) == 8  # it may stop at any moment
        assert await yields(world, 400) in turns
        delivered = sum(event.run.count for event in world.events if isinstance(event, Delivered))
        assert delivered == 408

    in_a_loop(story)


def test_a_lone_message_waits_for_no_other() -> None:
    async def story() -> None:
        world = World()
        await joined(world)
        for _ in range(20):
            world.top.accept(b"x")
            world.member.schedule()
            await settled(1)
            assert world.diary.count("turned") == 1, "a turn in the next pass"
            world.member.schedule()  # a turn without a message, as for the order or a vote
            await settled(1)
            world.diary.clear()

    in_a_loop(story)
