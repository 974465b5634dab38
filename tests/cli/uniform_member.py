"""A member of a group in which a majority decides each view: a process for the tests of `pygroups primary`.

No built-in profile has that stack yet, so this program adds one under the name `uniform`.  It prints its address, the
members of each view, each message, and when it is blocked and unblocked.
"""

from __future__ import annotations

import asyncio
import sys

from pygroups import Blocked, Channel, Config, Message, Unblocked, View
from pygroups.layers.profiles import PROFILES
from tests.majority import majority

QUICK = Config(heartbeat=0.2, heartbeat_timeout=1.0, verify_timeout=0.5)


def say(*words: object) -> None:
    print(*words, flush=True)


async def main(group: str, name: str, journal: str, discovery: str) -> None:
    PROFILES["uniform"] = majority("total")._replace(name="uniform")
    async with Channel(
        group, name=name, profile="uniform", journal=journal, discovery=discovery, config=QUICK
    ) as channel:
        say("address", channel.address)
        async for event in channel:
            if isinstance(event, View):
                say("view", len(event.members), *event.members)
                await channel.send(f"{name} has view {event.id.number}".encode())
            elif isinstance(event, Message):
                say("message", event.payload.decode())
            elif isinstance(event, Blocked):
                say("blocked", event.reason)
            elif isinstance(event, Unblocked):
                say("unblocked", name)


asyncio.run(main(*sys.argv[1:]))
