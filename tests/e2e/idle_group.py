"""A group in one process that sends nothing, in a network namespace of its own: prints the fewest packets
on loopback of three times so many seconds.  On a busy machine members ask each other whether they are alive.

unshare --net sh -c 'ip link set lo up && exec python -m tests.e2e.idle_group 24 4'
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from pygroups import Channel

SETTLES: Final = 6.0  # seconds after the last join, until the streams have been announced and confirmed
WINDOWS: Final = 3


def packets() -> int:
    """The packets that loopback has sent so far."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[9])


async def sent_within(seconds: float) -> int:
    before = packets()
    await asyncio.sleep(seconds)
    return packets() - before


async def main(members: int, seconds: float) -> None:
    logging.getLogger("pygroups").setLevel(logging.ERROR)  # on a busy machine event loops are late
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as group:
            channels = [Channel("idle", name=f"m{number}", discovery=f"dir:{folder}") for number in range(members)]
            await asyncio.gather(*[group.enter_async_context(channel) for channel in channels])
            while any(len(channel.view.members) < members for channel in channels):
                await asyncio.sleep(0.1)
            await asyncio.sleep(SETTLES)
            print(min([await sent_within(seconds) for _ in range(WINDOWS)]))


asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
