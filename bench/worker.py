"""One member of a benchmark's group, as a process.  It is told what to do, and tells what it saw, in lines of JSON.

Each message begins with 8 bytes: its sender's index and its number there.  What is delivered is remembered as these
bytes, in order; from them the order, each sender's order and completeness are judged after the load.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys
import time
from typing import Any, cast

import common  # first: it makes this tree the one that is measured
from xxhash import xxh3_64

from pygroups import Channel, ChannelClosed, Message, NotSent, View
from pygroups.core.limits import Config

HEAD = struct.Struct(">BxxxI")  # sender, number
STAMP = struct.Struct(">d")  # when it was to be sent; behind the head
HEAD_BYTES = HEAD.size
YIELD_EVERY = 256


class Worker:
    """Sends, reads, and looks at the clock when it is told to."""

    def __init__(self, channel: Channel, index: int, how: str) -> None:
        self.channel = channel
        self.index = index
        self.heads = bytearray()  # of what was delivered, in order
        self.times: list[float] = []  # when a batch was read, and how much was there then
        self.views: list[tuple[float, list[str]]] = []  # when each was read, and its members
        self.latencies: list[float] = []
        self.timed = index  # the sender whose messages are timed
        self.accepted = 0
        self.snapshots: list[dict[str, float]] = []
        self.stopped = False
        self.load: asyncio.Task[None] | None = None
        self.reader = asyncio.create_task(
            {"batches": self.read_batches, "each": self.read_each, "views": self.read_views}[how]()
        )

    # -- reading

    async def read_batches(self) -> None:
        heads = self.heads
        async for events in self.channel.batches():
            if type(events[0]) is Message:
                heads += b"".join([message.payload[:HEAD_BYTES] for message in cast(list[Message], events)])

    async def read_each(self) -> None:
        heads = self.heads
        async for event in self.channel:
            if isinstance(event, Message):
                heads += event.payload[:HEAD_BYTES]

    async def read_views(self) -> None:
        """As read_each, and when each view came."""
        async for event in self.channel:
            if isinstance(event, Message):
                self.heads += event.payload[:HEAD_BYTES]
            elif isinstance(event, View):
                self.views.append((time.monotonic(), [member.name for member in event.members]))

    async def read_with_times(self) -> None:
        """As read_batches, and when each batch came."""
        async for events in self.channel.batches():
            if type(events[0]) is Message:
                now = time.monotonic()
                self.times.append(now)
                for message in cast(list[Message], events):
                    self.heads += message.payload[:HEAD_BYTES]
                    if message.payload[0] == self.timed:
                        self.latencies.append(now - STAMP.unpack_from(message.payload, HEAD_BYTES)[0])

    def read_differently(self, of: int | None = None) -> None:
        """With times from now on, for the messages of sender `of`; None: the own ones."""
        self.timed = self.index if of is None else of
        self.reader.cancel()
        self.reader = asyncio.create_task(self.read_with_times())

    # -- sending

    async def flood(self, size: int, until: float, yields: bool = False) -> None:
        """As fast as the window allows.  `yields`: other tasks run after each message."""
        send, pad, pack, index = self.channel.send, bytes(size - HEAD_BYTES), HEAD.pack, self.index
        number = self.accepted
        while time.monotonic() < until:
            for _ in range(YIELD_EVERY):
                await send(pack(index, number) + pad)
                number += 1
                if yields:
                    await asyncio.sleep(0)
        self.accepted = number

    async def drip(self, size: int, rate: float, until: float) -> None:
        """At a fixed rate; each message carries the time at which it was to be sent."""
        pad = bytes(size - HEAD_BYTES - STAMP.size)
        due = time.monotonic()
        while due < until and not self.stopped:
            wait = due - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            try:
                await self.channel.send(HEAD.pack(self.index, self.accepted) + STAMP.pack(due) + pad)
            except (NotSent, ChannelClosed):
                return
            self.accepted += 1
            due += 1 / rate

    # -- what it saw

    def delivered(self) -> int:
        return len(self.heads) // HEAD_BYTES

    def look(self) -> None:
        self.snapshots.append({"at": time.monotonic(), "cpu": time.process_time(), "delivered": self.delivered()})

    async def all_delivered(self, count: int, patience: float) -> None:
        end = time.monotonic() + patience
        while self.delivered() < count and time.monotonic() < end:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # and whatever comes twice

    def report(self) -> dict[str, Any]:
        """The order as a hash, and what is wrong with each sender's order."""
        next_number: dict[int, int] = {}
        double = missing = 0
        for sender, number in HEAD.iter_unpack(self.heads):
            expected = next_number.get(sender, 0)
            if number < expected:
                double += 1
            else:
                missing += number - expected
                next_number[sender] = number + 1
        order = xxh3_64(self.heads).hexdigest()
        return {
            "delivered": self.delivered(),
            "order": order,
            "by_sender": next_number,
            "double_or_out_of_order": double,
            "missing": missing,
            "accepted": self.accepted,
            "snapshots": self.snapshots,
        }

    def gaps(self, after: float) -> dict[str, Any]:
        """The longest time between two batches, of those that end after `after`."""
        pairs = list(zip(self.times, self.times[1:], strict=False))
        return {"gap_ms": round(1_000 * max((b - a for a, b in pairs if b > after), default=-1.0), 1)}


async def obey(worker: Worker, order: dict[str, Any]) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    what = order.pop("do")
    if what == "flood":
        for at in order.pop("look_at"):
            loop.call_later(max(0.0, at - time.monotonic()), worker.look)
        await worker.flood(**order)
    elif what == "drip":
        await worker.drip(**order)
    elif what == "begin_drip":  # and answer at once
        worker.load = asyncio.create_task(worker.drip(**order))
    elif what == "read_differently":
        worker.read_differently(**order)
    elif what == "wait":
        await worker.all_delivered(**order)
    elif what == "report":
        return worker.report()
    elif what == "gaps":
        return worker.gaps(**order)
    elif what == "latencies":
        values = sorted(worker.latencies)
        return {"count": len(values), **{f"p{p}": common.quantile(values, p / 100) * 1_000 for p in (50, 99)}}
    elif what == "view":
        view = worker.channel.view
        return {"members": [member.name for member in view.members]}
    elif what == "views":
        return {"views": worker.views}
    elif what == "stats":
        return {"stats": worker.channel.stats()}
    else:
        raise AssertionError(f"what is {what}?")
    return {"accepted": worker.accepted}


async def main(options: dict[str, Any]) -> None:
    how, index, waits = options.pop("how"), options.pop("index"), options.pop("waits", False)
    options["config"] = Config(**options.pop("config", {}))
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    if waits:  # all is imported, so that the join itself is measured
        say({"ready": options["name"]})
        if not await orders.readline():
            return
    async with Channel(**options) as channel:
        worker = Worker(channel, index, how)
        say({"joined": str(channel.address), "pid": os.getpid()})
        while line := await orders.readline():
            order = json.loads(line)
            say(await obey(worker, order))
        worker.stopped = True
        worker.reader.cancel()


def say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
