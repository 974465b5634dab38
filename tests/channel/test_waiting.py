"""Waiting until a message has arrived: how long it takes, and what is said when it does not."""

from __future__ import annotations

import asyncio

from pygroups import Channel
from pygroups.testing import Group, run


async def drain(channel: Channel) -> None:
    async for _ in channel:
        pass


def test_messages_that_are_confirmed_one_after_another_do_not_wait_for_periods() -> None:
    """In virtual time, so whatever the machine: 150 ms each before votes became urgent for a sender that waits."""

    async def story(group: Group) -> None:
        channels = [group.channel("g", name=name) for name in "ABC"]
        for channel in channels:
            await channel.__aenter__()
        readers = [asyncio.create_task(drain(channel)) for channel in channels]
        await group.settled()
        for channel in channels:
            began = group.now
            for _ in range(20):
                await channel.send(b"x", until="stable")
            assert (group.now - began) / 20 < 0.03
            number = await channel.send(b"y")
            began = group.now
            await channel.wait(number)
            assert group.now - began < 0.03
        await asyncio.gather(*[channel.leave() for channel in channels])
        await asyncio.gather(*readers)

    run(story)
