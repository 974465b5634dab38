"""A member of a group in which a majority decides each view: a process for tests.

Its argument is a JSON object with the options of the channel; with `"busy": true` it sends all the time.  It prints its
address, the members of each view, each message, when it is blocked and unblocked, when it is excluded, and the lines of
its log.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import sys
from typing import Any

from pygroups import Blocked, Channel, Config, Left, Message, Unblocked, View

QUICK = Config(heartbeat=0.2, heartbeat_timeout=1.0, verify_timeout=0.5)


def say(*words: object) -> None:
    print(*words, flush=True)


class Said(logging.Handler):
    """Prints the log."""

    def emit(self, record: logging.LogRecord) -> None:
        say("log", record.getMessage())


async def sends(channel: Channel) -> None:
    """Send numbered messages without an end."""
    for number in itertools.count():
        await channel.send(f"{channel.address}#{number}".encode())
        await asyncio.sleep(0.01)


async def main(*, busy: bool = False, **options: Any) -> None:
    logging.getLogger("pygroups").addHandler(Said())
    logging.getLogger("pygroups").setLevel(logging.INFO)
    async with Channel(profile="uniform", config=QUICK, **options) as channel:
        say("address", channel.address)
        sending = asyncio.create_task(sends(channel)) if busy else None
        async for event in channel:
            if isinstance(event, Left):
                say("left", event.reason, *event.unknown)
            elif isinstance(event, View):
                say("view", len(event.members), *event.members)
                if sending is None:
                    await channel.send(f"{channel.address.name} has view {event.id.number}".encode())
            elif isinstance(event, Message):
                say("message", event.payload.decode())
            elif isinstance(event, Blocked):
                say("blocked", event.reason)
            elif isinstance(event, Unblocked):
                say("unblocked", channel.address.name)


asyncio.run(main(**json.loads(sys.argv[1])))
