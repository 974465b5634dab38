"""What lasts too long is logged, and told to the program where it can act on it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from pygroups import Channel, Config, Message, NameTaken, Slow, View, WouldDeadlock
from pygroups.channel.log import Log
from pygroups.channel.watchdog import Watchdog
from pygroups.core.address import Address
from pygroups.core.limits import SECOND
from pygroups.testing import Group, run
from tests.channel.socket_group import Group as Sockets
from tests.channel.socket_group import in_a_group

SMALL = Config(window=256 << 10, run_bytes=16 << 10)
PART = bytes(8 << 10)
PARTS = SMALL.window // len(PART)
B = Address("B", "01")


def lines(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


class Story:
    """Clock, loop and session in one; each look is one call of `ring`."""

    def __init__(self) -> None:
        self.time = 0
        self.joins: str | None = None
        self.changing: str | None = None
        self.state: str | None = None
        self.alone: str | None = None
        self.held: tuple[Address, ...] = ()
        self.slow: list[tuple[Address, float]] = []
        self.slow_readers_now: tuple[Address, ...] = ()
        self.read_slowly: list[tuple[Address, float]] = []
        self.ring: Callable[[], object] = lambda: None
        self.dog = Watchdog(self, cast(Any, self), cast(Any, self), Log("A", "g"), limit=5)
        self.dog.start()

    def now(self) -> int:
        return self.time

    def call_later(self, delay: float, callback: Callable[[], object]) -> Any:
        self.ring = callback

    def waits_to_join(self) -> str | None:
        return self.joins

    def changes_view(self) -> str | None:
        return self.changing

    def awaits_state(self) -> str | None:
        return self.state

    def is_alone(self) -> str | None:
        return self.alone

    def holders(self) -> tuple[Address, ...]:
        return self.held

    def report_slow(self, member: Address, seconds: float) -> None:
        self.slow.append((member, seconds))

    def slow_readers(self) -> tuple[Address, ...]:
        return self.slow_readers_now

    def report_slow_reader(self, member: Address, seconds: float) -> None:
        self.read_slowly.append((member, seconds))

    def end_deadlocks(self, now: int) -> None:
        pass

    def run(self, seconds: float, late: float = 0.0) -> None:
        end = self.time + seconds * SECOND
        while self.time < end:
            self.time = self.dog.due + round(late * SECOND)
            self.ring()


def test_a_loop_that_was_blocked_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    story.run(10)
    assert lines(caplog) == []
    story.run(0.1, late=3.0)
    assert (story.dog.stalls, story.dog.longest_stall) == (1, 3 * SECOND)
    (line,) = lines(caplog)
    assert "the event loop was blocked for 3.0 s; after heartbeat_timeout (5 s) the other members remove" in line


def test_a_loop_that_is_often_blocked_is_not_reported_each_time(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    for late in (1.0, 0.6, 1.5, 2.0, 3.0):
        story.run(0.1, late=late)
    assert [line.split("for ")[1].split(" s;")[0] for line in lines(caplog)] == ["1.0", "2.0"]
    assert story.dog.stalls == 5
    story.run(31)
    story.run(0.1, late=0.6)
    assert len(lines(caplog)) == 3


def test_what_lasts_is_reported_after_five_seconds_and_each_time_it_lasted_twice_as_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Story()
    story.joins = "the join waits for an answer of B"
    story.run(4)
    assert lines(caplog) == []
    story.run(37)
    assert [line.rpartition(" (for ")[2] for line in lines(caplog)] == ["5 s)", "10 s)", "20 s)", "40 s)"]
    story.joins, story.state = None, "this program waits for the state of the group"
    story.run(6)
    story.state = None
    story.run(20)
    assert lines(caplog)[4:] == ["A in group 'g': this program waits for the state of the group (for 5 s)"]


def test_a_member_is_slow_while_it_holds_the_window(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    story.held = (B,)
    story.run(11)
    assert story.slow == [(B, 5.0), (B, 10.0)]
    story.held = ()
    story.run(1)
    story.held = (B,)
    story.run(4)
    assert len(story.slow) == 2


def test_joined_views_and_left_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pygroups.channel")

    async def story(group: Group) -> None:
        async with group.channel("g", name="A") as first:
            async with group.channel("g", name="B") as second:
                a, b = first.address, second.address
                await group.settled()
            await group.settled()
        mine = [line for line in lines(caplog, logging.INFO) if line.startswith("A in")]
        assert mine == [
            f"A in group 'g': joined, view 1: {a}",
            f"A in group 'g': view 2: {a}, {b}; joined: {b}",
            f"A in group 'g': view 3: {a}; left: {b}",
            "A in group 'g': left",
        ]
        assert lines(caplog) == []

    run(story)


def test_a_join_that_ends_without_a_view_logs_no_leave(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pygroups.channel")

    async def story(group: Group) -> None:
        async with group.channel("g", name="A") as first:
            with pytest.raises(NameTaken) as taken:
                await group.channel("g", name="A").__aenter__()
            assert lines(caplog, logging.INFO)[-1] == f"A in group 'g': the join failed: {taken.value}"
            group.partition(["A"], ["B"])
            joining = asyncio.create_task(group.channel("g", name="B").__aenter__())
            await asyncio.sleep(1)
            joining.cancel()
            await asyncio.wait([joining])
            assert lines(caplog, logging.INFO)[-1] == "B in group 'g': the join was given up"
            assert len(first.view.members) == 1

    run(story)


def test_a_join_says_for_whom_it_waits(caplog: pytest.LogCaptureFixture) -> None:
    async def story(group: Group) -> None:
        async with group.channel("g", name="A") as first:
            group.partition(["A"], ["B"])
            joining = asyncio.create_task(group.channel("g", name="B").__aenter__())
            await asyncio.sleep(7)
            assert lines(caplog)[0] == f"B in group 'g': the join waits for an answer of {first.address} (for 5 s)"
            joining.cancel()
            await asyncio.wait([joining])
            group.heal()

    run(story)


def test_a_member_that_reads_nothing_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def story(group: Group) -> None:
        events: list[Any] = []

        async def read(channel: Channel) -> None:
            async for event in channel:
                events.append(event)

        first, idle = group.channel("g", name="A", config=SMALL), group.channel("g", name="B", config=SMALL)
        async with first, idle:
            reading = asyncio.create_task(read(first))
            await group.settled()
            assert first.stats()["window"]["waits_for"] == []
            flooding = asyncio.create_task(first.send_many([PART] * (2 * PARTS)))
            await asyncio.sleep(12)
            assert first.stats()["window"]["waits_for"] == [str(idle.address)]
            slow = [event for event in events if isinstance(event, Slow)]
            assert [event.member for event in slow] == [idle.address] * 2
            assert 5 <= slow[0].seconds <= 6
            assert f"{idle.address} has read none of this member's messages for 5 s" in lines(caplog)[0]
            also = asyncio.create_task(read(idle))
            await flooding
            await asyncio.sleep(20)
            assert len([event for event in events if isinstance(event, Slow)]) == 2
            assert first.stats()["window"]["waits_for"] == []
        await asyncio.gather(reading, also)

    run(story)


def test_a_program_that_reads_none_of_its_own_is_told_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    async def story(group: Group) -> None:
        async with group.channel("g", name="A", config=SMALL) as channel:
            flooding = asyncio.create_task(channel.send_many([PART] * (2 * PARTS)))
            await asyncio.sleep(7)
            assert "or open the channel with events='none'" in lines(caplog)[0]
            assert channel.stats()["window"]["waits_for"] == [str(channel.address)]
            flooding.cancel()

    run(story)


def test_members_that_answer_each_other_in_a_task_group_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """Each sends several windows from tasks that its reading task waits for; nobody reads, and no window empties."""

    async def answer(channel: Channel) -> None:
        async for event in channel:
            if isinstance(event, View) and len(event.members) == 2:
                async with asyncio.TaskGroup() as tasks:
                    for _ in range(3 * PARTS):
                        tasks.create_task(channel.send(PART))
            elif isinstance(event, Message):
                pass

    async def story(group: Group) -> None:
        async with group.channel("g", name="A", config=SMALL) as a, group.channel("g", name="B", config=SMALL) as b:
            began = group.now
            results = await asyncio.gather(answer(a), answer(b), return_exceptions=True)
            assert 10 <= group.now - began <= 15
            for result in results:
                assert isinstance(result, ExceptionGroup)
                assert all(isinstance(error, WouldDeadlock) for error in result.exceptions)
                assert "members would block each other" in str(result.exceptions[0])

    run(story)


def test_a_sender_that_nobody_waits_for_is_let_alone() -> None:
    """The reading task started it, and goes on reading: it may wait as long as it takes."""

    async def story(group: Group) -> None:
        async with group.channel("g", name="A", config=SMALL) as a, group.channel("g", name="B", config=SMALL) as b:
            sending: list[asyncio.Task[Any]] = []

            async def read(channel: Channel) -> None:
                async for event in channel:
                    if isinstance(event, View) and len(event.members) == 2:
                        sending.append(asyncio.create_task(channel.send_many([PART] * (3 * PARTS))))

            reading = asyncio.create_task(read(a))
            await asyncio.sleep(60)
            assert not sending[0].done(), "B reads nothing"
            also = asyncio.create_task(read(b))
            await asyncio.gather(*sending)
            await a.leave()
            await b.leave()
            await asyncio.gather(reading, also)

    run(story)


def test_a_program_that_takes_long_for_each_message_is_reading(caplog: pytest.LogCaptureFixture) -> None:
    """It was quick before, so it is given many messages at once, and comes back for more only when it has done all."""

    async def story(group: Group) -> None:
        async with group.channel("g", name="A", config=SMALL) as channel:
            sending: asyncio.Task[Any] | None = None
            read = 0
            await channel.send_many([bytes(100)] * 1_000)
            async for event in channel:
                read += isinstance(event, Message)
                if read == 1_000 and sending is None:
                    sending = asyncio.create_task(channel.send_many([bytes(100)] * 4_000))
                elif read > 1_000:
                    await asyncio.sleep(0.25)
                if read == 1_300:
                    break
            assert sending is not None
            assert not sending.done(), "the window is full of what the program has not come to"
            sending.cancel()

    run(story)
    assert lines(caplog) == []


def test_a_slow_reader_is_reported_by_its_own_time() -> None:
    story = Story()
    story.slow_readers_now = (B,)
    story.run(11)
    assert story.read_slowly == [(B, 5.0), (B, 10.0)]
    story.held = (B,)  # now it reads nothing, which has another report
    story.run(6)
    assert (story.read_slowly[2:], story.slow) == ([], [(B, 5.0)])
    story.held = ()
    story.run(4)
    assert story.read_slowly[2:] == []


def test_a_member_that_reads_slowly_is_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pygroups.channel")

    async def read(channel: Channel, pause: float) -> None:
        async for event in channel:
            if isinstance(event, Message):
                await asyncio.sleep(pause)

    async def story(group: Group) -> None:
        async with group.channel("g", name="A", config=SMALL) as a, group.channel("g", name="B", config=SMALL) as b:
            sending = asyncio.create_task(a.send_many([PART] * 1_000_000))
            for paces, slow in [((0.001, 0.05), str(b.address)), ((0.05, 0.001), "this program")]:
                caplog.clear()
                reading = [asyncio.create_task(read(*pair)) for pair in zip((a, b), paces, strict=True)]
                await asyncio.sleep(12)
                (line,) = [line for line in lines(caplog, logging.INFO) if "more slowly than" in line][:1]
                assert f"because {slow} reads more slowly than this program sends: for " in line
                assert lines(caplog) == []
                for task in reading:
                    task.cancel()
                await asyncio.wait(reading)
            sending.cancel()
            await asyncio.wait([sending])

    run(story)


def test_a_blocked_loop_is_in_the_statistics(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story(group: Sockets) -> None:
        channel = await group.joined("A")
        assert channel.stats()["loop"] == {"stalls": 0, "longest_stall_s": 0.0}
        await asyncio.sleep(0.05)
        time.sleep(1.2)
        await asyncio.sleep(0.01)
        stats = channel.stats()["loop"]
        assert stats["stalls"] == 1
        assert 0.5 <= stats["longest_stall_s"] <= 5
        assert "the event loop was blocked" in caplog.text

    in_a_group(tmp_path, story)
