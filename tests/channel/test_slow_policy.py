"""`Config(slow_policy="exclude")`: a member whose program reads nothing is excluded, and learns the reason."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pygroups import Channel, Config, Excluded, Left, Message, Slow, View
from pygroups.testing import Group, run
from tests.channel.socket_group import Reader

SMALL = {"window": 64 << 10, "run_bytes": 16 << 10}
PART = bytes(4 << 10)
PARTS = (64 << 10) // len(PART)


async def three(group: Group, config: Config) -> tuple[Reader, Reader, Channel]:
    channels = [group.channel("g", name=name, config=config) for name in "ABC"]
    for channel in channels:
        await channel.__aenter__()
    await group.settled()
    return Reader(channels[0]), Reader(channels[1]), channels[2]


def test_a_program_that_reads_nothing_is_excluded_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def story(group: Group) -> None:
        a, b, c = await three(group, Config(slow_policy="exclude", slow_timeout=12.0, **SMALL))
        began = group.now
        for _ in range(4 * PARTS):
            await a.channel.send(PART)
        assert 11 < group.now - began < 15
        assert [event for event in a.events if isinstance(event, Slow)] == [Slow(c.address, 5.0), Slow(c.address, 10.0)]
        assert [len(event.members) for event in a.events if isinstance(event, View)][-1] == 2
        events = []
        with pytest.raises(
            Excluded, match=r"because this member read nothing for 12 s, while others waited to send \(slow_pol"
        ):
            async for event in c:
                events.append(event)
        assert events[-1] == Left("excluded", [])
        await asyncio.gather(a.channel.leave(), b.channel.leave())
        assert len(b.payloads) == 4 * PARTS
        told = [
            line.getMessage()
            for line in caplog.records
            if "was excluded, because this member read" in line.getMessage()
        ]
        assert [line.split()[0] for line in told] == ["A", "B"], told

    caplog.set_level(logging.WARNING, "pygroups.channel")
    run(story)


def test_by_default_senders_wait() -> None:
    async def story(group: Group) -> None:
        a, b, c = await three(group, Config(**SMALL))
        sending = asyncio.create_task(a.channel.send_many([PART] * (2 * PARTS)))
        await asyncio.sleep(300)
        assert not sending.done()
        reader = Reader(c)
        await sending
        await group.settled()
        for channel in (a.channel, b.channel, c):
            await channel.leave()
        assert len(reader.payloads) == 2 * PARTS

    run(story)


def test_messages_to_a_member_alone_that_it_does_not_read_exclude_nobody() -> None:
    async def story(group: Group) -> None:
        a, b, c = await three(group, Config(slow_policy="exclude", slow_timeout=10.0, **SMALL))
        sending = asyncio.create_task(fill(a.channel, c))
        await asyncio.sleep(100)
        assert not sending.done()
        assert len(a.channel.view.members) == 3
        await a.channel.send(b"x", until="stable")
        sending.cancel()
        for channel in (a.channel, b.channel, c):
            await channel.leave()

    run(story)


async def fill(sender: Channel, receiver: Channel) -> None:
    while True:
        await sender.send(PART, to=receiver.address)


def test_a_member_that_reads_the_messages_of_another_sender_first_is_not_excluded() -> None:
    """C reads one message a second, and the whole window of A comes before the first message of B."""

    async def story(group: Group) -> None:
        a, b, c = await three(group, Config(slow_policy="exclude", slow_timeout=5.0, **SMALL))
        await a.channel.send_many([PART] * (PARTS - 1))
        await asyncio.sleep(1)
        sending = asyncio.create_task(b.channel.send_many([PART] * (PARTS + 1)))
        async for event in c:
            if isinstance(event, Message):
                await asyncio.sleep(1)
                if sending.done():
                    break
        assert len(b.channel.view.members) == 3
        for channel in (a.channel, b.channel, c):
            await channel.leave()

    run(story)
