"""Groups in memory with the profile `gossip`: a lossy network, a crash, and messages that all have in the end."""

from __future__ import annotations

import asyncio

from pygroups import Channel, Config, Gap, Message
from pygroups.testing import Group, run

QUICK = Config(heartbeat=0.2, heartbeat_timeout=1.0, verify_timeout=0.5, desired_avg_gossip=0.1)


def test_all_messages_arrive_although_the_network_loses_a_fifth() -> None:
    async def story(group: Group) -> None:
        group.weather(loss=0.2)
        names = "ABCD"
        channels = [group.channel("cache", name=name, profile="gossip", config=QUICK) for name in names]
        heard: dict[str, list[bytes]] = {name: [] for name in names}
        gaps: list[Gap] = []

        async def read(name: str, channel: Channel) -> None:
            async for event in channel:
                if isinstance(event, Message):
                    heard[name].append(event.payload)
                elif isinstance(event, Gap):
                    gaps.append(event)

        async with channels[0], channels[1], channels[2], channels[3]:
            tasks = [asyncio.create_task(read(name, channel)) for name, channel in zip(names, channels, strict=True)]
            while any(len(channel.view.members) < 4 for channel in channels):
                await asyncio.sleep(0.1)
            for number in range(50):
                await channels[0].send(b"%d" % number)
                await asyncio.sleep(0.01)
            await asyncio.sleep(20)
            group.weather()
            assert all(messages == [b"%d" % number for number in range(50)] for messages in heard.values())
            assert not gaps
        await asyncio.gather(*tasks)

    run(story)
