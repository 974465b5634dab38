"""A program that never suspends while it reads: the event loop still gets its turns."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import pytest

from pygroups import Channel, Event, Message, View
from pygroups.channel.channel import Batches
from pygroups.channel.reading.inbox import Inbox
from pygroups.channel.rejoin import Incarnations
from pygroups.channel.state.states import States
from pygroups.core.address import Address
from pygroups.core.events import Consumed
from pygroups.core.limits import MILLISECOND, Config
from pygroups.core.run import Run, pack
from pygroups.core.top import Delivered
from pygroups.core.view import ViewId
from tests.channel.socket_group import until

A = Address("A", "00")


class Clock:
    """Time passes only while the program works."""

    def __init__(self) -> None:
        self.time = 1_000_000
        self.longest = 0  # between two turns of the loop
        self._turn_at = self.time

    def now(self) -> int:
        return self.time

    async def take_turns(self) -> None:
        while True:
            self.longest = max(self.longest, self.time - self._turn_at)
            self._turn_at = self.time
            await asyncio.sleep(0)


def queued(clock: Clock, runs: int, messages: int) -> Inbox:
    """An inbox in which so many runs of so many messages wait."""
    states = cast(States, type("NoStates", (), {"loading": None, "is_coming": False})())
    inbox = Inbox(A, states, Config(queue_max=1 << 40), lambda: None, lambda: None, lambda reason: None, clock.now)
    view = ViewId(1, A)
    for run in range(runs):
        first = 1 + run * messages
        body = pack([b"%d" % number for number in range(first, first + messages)])
        inbox.put(Delivered(Run(A, None, (), A, first, 0, messages, body, A, run), view, first - 1))
    return inbox


async def each(inbox: Inbox) -> AsyncIterator[list[Event]]:
    while True:
        for event in await inbox.next(whole=False):
            yield [event]


def batches(inbox: Inbox) -> AsyncIterator[list[Event]]:
    return Batches(list, lambda: cast(Incarnations, inbox))  # both have next()


@pytest.mark.parametrize(("read", "most_ms"), [(each, 40), (batches, 600)])
@pytest.mark.parametrize("work_us", [50, 2_000, 50_000])
def test_the_loop_gets_its_turns_however_much_is_queued(
    read: Callable[[Inbox], AsyncIterator[list[Event]]], most_ms: int, work_us: int
) -> None:
    """Most of a batch is the program's own, so its bound is wider: a batch shrinks after one that took too long."""

    async def story() -> None:
        clock, numbers = Clock(), []
        inbox = queued(clock, runs=20, messages=500)
        ticking = asyncio.create_task(clock.take_turns())
        async for events in read(inbox):
            for event in events:
                assert isinstance(event, Message)
                clock.time += work_us
                numbers.append(event.number)
                assert event.payload == b"%d" % event.number
                assert event.position == event.number - 1
            if len(numbers) == 20 * 500:
                break
        await asyncio.sleep(0)
        ticking.cancel()
        assert numbers == list(range(1, 20 * 500 + 1))
        first = 16 * work_us  # nothing is known of the program before its first slice
        assert clock.longest <= max(most_ms * MILLISECOND, first) + work_us

    asyncio.run(story())


def test_a_batch_does_not_shrink_for_work_that_lets_the_loop_run() -> None:
    async def story() -> None:
        clock, sizes = Clock(), []
        inbox = queued(clock, runs=40, messages=500)
        async for events in batches(inbox):
            sizes.append(len(events))
            clock.time += 1_000 * MILLISECOND
            await asyncio.sleep(0)  # as to_thread would
            if sum(sizes) == 40 * 500:
                break
        assert len(sizes) < 15, sizes

    asyncio.run(story())


def test_a_run_is_consumed_when_its_last_message_was_applied() -> None:
    async def story() -> None:
        clock = Clock()
        inbox = queued(clock, runs=1, messages=100)
        seen = 0
        while seen < 100:
            assert inbox.consumption.take() is None
            seen += len(list(await inbox.next(whole=False)))
        reading = asyncio.create_task(inbox.next(whole=False))
        await asyncio.sleep(0)
        assert inbox.consumption.take() == Consumed({A: 101})
        reading.cancel()

    asyncio.run(story())


QUICK = Config(heartbeat=100_000, heartbeat_timeout=600_000, verify_timeout=200_000, window=256 << 10)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["each", "batches"])
def test_a_reader_that_works_without_a_pause_stays_in_the_group(tmp_path: Path, form: str) -> None:
    """Its backlog is worth seconds of work, three times what the others wait for a heartbeat."""
    place = f"dir:{tmp_path}"
    done = threading.Event()
    views: list[list[str]] = []  # the sender's

    async def busy() -> None:
        async with Channel("g", name="busy", discovery=place, config=QUICK) as channel:
            seen = 0
            async for events in channel.batches() if form == "batches" else one_by_one(channel):
                for event in events:
                    if isinstance(event, Message):
                        time.sleep(0.001)
                        seen += 1
                if seen >= 2_500:
                    break
            done.set()

    async def one_by_one(channel: Channel) -> AsyncIterator[list[Event]]:
        async for event in channel:
            yield [event]

    async def sender() -> None:
        async with Channel("g", name="sender", discovery=place, config=QUICK) as channel:
            reading = asyncio.create_task(drained(channel))
            await until(lambda: len(channel.view.members) == 2)
            for _ in range(2_500):
                await channel.send(bytes(20))
            await until(done.is_set)
            assert views[-1] == ["sender", "busy"]
            reading.cancel()

    async def drained(channel: Channel) -> None:
        async for event in channel:
            if isinstance(event, View):
                views.append([member.name for member in event.members])

    thread = threading.Thread(target=asyncio.run, args=(busy(),))

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(sender())
            await asyncio.sleep(0.2)
            thread.start()

    asyncio.run(main())
    thread.join()
    assert views[:2] == [["sender"], ["sender", "busy"]]
