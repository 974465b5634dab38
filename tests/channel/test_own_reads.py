"""`until="read"`: the program has handled its own message, so it can read its own writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from pygroups import Channel, Message, Unknown, UsageError, View
from pygroups.channel import Until
from pygroups.testing import Group, run

Story = Callable[[Group], Coroutine[Any, Any, None]]


class Table:
    """A program that keeps a dictionary of all messages, as a service would."""

    def __init__(self, *, batches: bool = False, work: float = 0) -> None:
        self.values: dict[bytes, bytes] = {}
        self.batches = batches
        self.work = work  # seconds for each message

    async def keep(self, channel: Channel) -> None:
        if self.batches:
            async for events in channel.batches():
                for event in events:
                    await self._handle(event)
        else:
            async for event in channel:
                await self._handle(event)

    async def _handle(self, event: object) -> None:
        if isinstance(event, Message):
            if self.work:
                await asyncio.sleep(self.work)
            key, value = event.payload.split(b"=")
            self.values[key] = value


async def old_values(until: Until, table: Table, writes: int = 50) -> int:
    """How many of the writes are not in the table of the writer after `send` has returned."""
    old = 0
    async with Channel("table", name="A") as a, Channel("table", name="B", events="none"):
        reading = asyncio.create_task(table.keep(a))
        for number in range(writes):
            value = b"%d" % number
            await a.send(b"key=" + value, until=until)
            old += table.values.get(b"key") != value
    await reading
    return old


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("work", [0, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_a_program_reads_its_own_writes(seed: int, work: float, *, batches: bool) -> None:
    async def story(group: Group) -> None:
        assert await old_values("read", Table(batches=batches, work=work)) == 0

    run(story, seed=seed)


@pytest.mark.parametrize("seed", range(3))
def test_a_test_shows_that_delivered_is_not_read(seed: int) -> None:
    """Without this, a program that confuses the two passes all its tests, and fails in production."""

    async def story(group: Group) -> None:
        assert 0 < await old_values("delivered", Table()) < 50

    run(story, seed=seed)


def test_the_message_in_the_middle_of_a_run_is_read_when_the_next_one_is_asked_for() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a:
            numbers = await a.send_many([b"%d" % number for number in range(1, 11)], until="delivered")
            assert isinstance(await anext(a), View)
            waiting = asyncio.create_task(a.wait(numbers[3], until="read"))
            await asyncio.sleep(0)
            for _ in range(4):
                event = await anext(a)
                assert isinstance(event, Message)
                assert not waiting.done()
            assert isinstance(event, Message)
            assert event.number == 4
            await asyncio.sleep(1)
            assert not waiting.done()
            await anext(a)
            await waiting

    run(story)


def test_the_reading_task_cannot_wait_for_itself() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a:
            async for _ in a:
                with pytest.raises(Unknown, match="read no event for 10 s: until='read' needs a task") as raised:
                    await a.send(b"x", until="read")
                assert raised.value.number == 1
                with pytest.raises(Unknown, match="message 2 was sent"):
                    await asyncio.gather(a.send(b"x", until="read"))
                break

    run(story)


def test_a_program_that_never_reads_is_told() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a:
            with pytest.raises(Unknown, match="read no event for 10 s"):
                await a.send(b"x", until="read")

    run(story)


def test_a_slow_reader_is_waited_for() -> None:
    async def story(group: Group) -> None:
        assert await old_values("read", Table(work=30), writes=3) == 0

    run(story)


def test_a_leave_ends_the_wait() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A") as a:
            waiting = asyncio.create_task(a.send(b"x", until="read"))
            await asyncio.sleep(0.1)
        with pytest.raises(Unknown, match="before message 1 was read"):
            await waiting

    run(story)


def test_read_needs_a_program_that_reads_and_all_members() -> None:
    async def story(group: Group) -> None:
        async with Channel("g", name="A", events="none") as a:
            with pytest.raises(UsageError, match="open the channel without events='none'"):
                await a.send(b"x", until="read")
            with pytest.raises(UsageError, match="to= names another member: use until='delivered' with to="):
                await a.send(b"x", until="read", to=a.address)
            assert a.view.id.number == 1
            assert await a.send(b"x", until="delivered") == 1  # nothing was sent before

    run(story)


class Kept:
    """A state with the number of messages."""

    def __init__(self) -> None:
        self.messages = 0
        self.fails = 0

    async def get_state(self) -> bytes:
        if self.fails:
            self.fails -= 1
            raise ZeroDivisionError
        return b"%d" % self.messages

    async def set_state(self, data: bytes) -> None:
        self.messages = int(data)


def test_a_message_in_the_state_counts_as_read_with_the_state() -> None:
    """B sends while it waits for its state; A cannot give one, and C gives a later state with the message in it."""

    async def story(group: Group) -> None:
        states = {"A": Kept(), "C": Kept(), "B": Kept()}

        async def live(channel: Channel, kept: Kept) -> None:
            while True:
                try:
                    async for event in channel:
                        kept.messages += isinstance(event, Message)
                    return
                except ZeroDivisionError:
                    continue

        async with Channel("g", name="A", state=states["A"]) as a, Channel("g", name="C", state=states["C"]) as c:
            tasks = [asyncio.create_task(live(a, states["A"])), asyncio.create_task(live(c, states["C"]))]
            await group.settled(one=True)
            states["A"].fails = 1
            async with Channel("g", name="B", state=states["B"]) as b:
                tasks.append(asyncio.create_task(live(b, states["B"])))
                await b.send(b"x", until="read", timeout=60)
                assert states["B"].messages == 1
        await asyncio.gather(*tasks)

    run(story)
