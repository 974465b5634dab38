"""What it costs to hand a message to the application: batches() and `async for`, in a group of one.

All messages are sent first and lie in the channel's queue; then only the reading is timed.  Budget: 0.3 us a message.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import common  # first: it makes this tree the one that is measured

from pygroups import Channel, Config, Message

BUDGET_US = 0.3
QUEUED_BYTES = 4 << 20  # what the windows of four members hold at most


async def queued(channel: Channel, count: int, size: int) -> None:
    """Send `count` messages of `size` bytes and let them all arrive in the queue."""
    payload = bytes(size)
    last = 0
    for _ in range(count):
        last = await channel.send(payload)
    await channel.send(b"end", until="delivered")
    assert last


async def read_batches(channel: Channel, count: int) -> int:
    seen = 0
    async for events in channel.batches():
        if type(events[0]) is Message:
            seen += len(events)
            if seen > count:
                break
    return seen


async def read_each(channel: Channel, count: int) -> int:
    seen = 0
    async for event in channel:
        if type(event) is Message:
            seen += 1
            if seen > count:
                break
    return seen


async def measured(size: int, seconds: float, place: Path) -> dict[str, float]:
    """Microseconds of CPU per message, the best of many rounds."""
    count = min(20_000, QUEUED_BYTES // size)
    config = Config(window=64 << 20, queue_max=256 << 20)
    found: dict[str, list[float]] = {"batches": [], "async_for": []}
    async with Channel("delivery", discovery=f"dir:{place}", config=config) as channel:
        end = time.monotonic() + seconds
        while len(found["batches"]) < 5 or time.monotonic() < end:
            for name, read in (("batches", read_batches), ("async_for", read_each)):
                await queued(channel, count, size)
                before = time.process_time_ns()
                seen = await read(channel, count)
                found[name].append((time.process_time_ns() - before) / 1_000 / count)
                assert seen == count + 1, "all that was sent, and the end"
    return {name: round(min(rounds), 3) for name, rounds in found.items()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--seconds", type=float, default=5.0, help="for each size")
    seconds = options.parse_args().seconds
    for size in (100, 1_000):
        result = common.Result("delivery")
        with TemporaryDirectory() as place:
            found = asyncio.run(measured(size, seconds, Path(place)))
        result.write(size=size, budget_us=BUDGET_US, **{f"{name}_us_per_message": us for name, us in found.items()})


if __name__ == "__main__":
    main()
