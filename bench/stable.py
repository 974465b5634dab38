"""Confirmed messages, one after another: `await send(until="stable")` in a loop, three members in one process.

Once over loopback TCP in real time, and once in virtual time with `pygroups.testing`, where the protocol alone decides
and no other program can slow it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import common  # first: it makes this tree the one that is measured

from pygroups import Channel
from pygroups.testing import Group

TARGET_A_SECOND: Final = 500
NAMES: Final = ("A", "B", "C")
WARM: Final = 5  # messages before the clock runs


@contextlib.asynccontextmanager
async def members(profile: str, discovery: str | None) -> AsyncIterator[list[Channel]]:
    """Three members that are in one view and read all events."""
    async with contextlib.AsyncExitStack() as stack:
        channels = []
        for name in NAMES:
            channel = Channel("stable", name=name, profile=profile, discovery=discovery)
            channels.append(await stack.enter_async_context(channel))
        readers = [asyncio.create_task(read(channel)) for channel in channels]
        while any(len(channel.view.members) < len(NAMES) for channel in channels):
            await asyncio.sleep(0.01)
        yield channels
    await asyncio.gather(*readers)


async def read(channel: Channel) -> None:
    async for _ in channel.batches():
        pass


async def confirmed(channel: Channel, seconds: float) -> list[float]:
    """Seconds that each message took, until `seconds` of the loop's time are over."""
    clock = asyncio.get_running_loop().time
    for _ in range(WARM):
        await channel.send(b"x" * 100, until="stable")
    taken = []
    end = clock() + seconds
    while (begin := clock()) < end:
        await channel.send(b"x" * 100, until="stable")
        taken.append(clock() - begin)
    return taken


async def measured(profile: str, discovery: str | None, sender: int, seconds: float) -> dict[str, Any]:
    async with members(profile, discovery) as channels:
        begin = time.process_time()
        taken = sorted(await confirmed(channels[sender], seconds))
        cpu = time.process_time() - begin
    return {
        "a_second": round(len(taken) / sum(taken), 1),
        "p50_ms": round(1_000 * common.quantile(taken, 0.5), 2),
        "p99_ms": round(1_000 * common.quantile(taken, 0.99), 2),
        "messages": len(taken),
        "cpu_ms_each": round(1_000 * cpu / len(taken), 2),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--seconds", type=float, default=5.0, help="for each figure")
    given = options.parse_args()
    for profile in ("total", "fifo"):
        for sender, who in ((0, "the coordinator"), (2, "another member")):
            for clock in ("virtual", "real"):
                result = common.Result("stable")
                if clock == "virtual":
                    found = Group(seed=1).run(measured, profile, None, sender, given.seconds)
                else:
                    with TemporaryDirectory() as place:
                        discovery = f"dir:{Path(place)}"
                        found = asyncio.run(measured(profile, discovery, sender, given.seconds))
                result.write(profile=profile, sender=who, time=clock, target_a_second=TARGET_A_SECOND, **found)


if __name__ == "__main__":
    main()
