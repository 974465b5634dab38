"""One member of a measured group, as a process: `python -m pygroups.cli.perf.worker`.

A member remembers the head of each delivered message, in order, and when each batch came.  Everything that is reported
is computed from these after the load.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from bisect import bisect_left
from typing import Final, cast

import msgspec
from xxhash import xxh3_64

from pygroups.channel.channel import Channel
from pygroups.channel.channel_events import Message, View
from pygroups.core.errors import Error, UsageError
from pygroups.core.run import Run
from pygroups.core.totals import Volume

from .messages import HEAD, Begin, Failed, Finish, Load, Order, Report, Seen, Sent, Task, Viewed

YIELD_EVERY: Final = 256  # messages between two looks at the clock, at most
YIELD_BYTES: Final = 256_000  # the bytes of these messages, at most, if there are several
SAMPLE: Final = 5_000  # values of a kind in one report


class CountedRuns(Volume):
    """The own runs, and how many messages each had."""

    __slots__ = ("sizes",)

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def add(self, run: Run) -> None:
        super().add(run)
        self.sizes.append(run.count)


class Worker:
    """Sends, reads and remembers."""

    def __init__(self, channel: Channel, index: int, load: Load) -> None:
        self.channel = channel
        self.index = index
        self.load = load
        self.heads = bytearray()
        self.times: list[float] = []  # when each batch came
        self.ends: list[int] = []  # the deliveries up to the end of that batch
        self.accepted = 0
        self.runs = CountedRuns()
        self.looks: list[tuple[float, float]] = []  # the time and the CPU seconds at each of the two instants
        channel._top.env.totals.sent = self.runs

    # -- reading

    async def read(self) -> None:
        """Remember every message, and tell each view."""
        if self.load.each:
            async for event in self.channel:
                if isinstance(event, Message):
                    self._came(event.payload[: HEAD.size])
                elif isinstance(event, View):
                    self._viewed(event)
            return
        async for events in self.channel.batches():
            if type(events[0]) is Message:
                messages = cast(list[Message], events)
                self._came(b"".join([message.payload[: HEAD.size] for message in messages]))
            elif isinstance(events[0], View):
                self._viewed(events[0])

    def _came(self, heads: bytes) -> None:
        self.heads += heads
        self.times.append(time.monotonic())
        self.ends.append(len(self.heads) // HEAD.size)

    def _viewed(self, view: View) -> None:
        say(Viewed([index_of(member.name) for member in view.members]))

    # -- sending

    async def send(self, begin: Begin) -> None:
        """Send until the end of the load, and tell how much was accepted."""
        for at in (begin.first, begin.last):
            asyncio.get_running_loop().call_later(max(0.0, at - time.monotonic()), self._look)
        if begin.sends:
            await (self._flood(begin.until) if self.load.rate is None else self._drip(self.load.rate, begin.until))
        await asyncio.sleep(max(0.0, begin.until - time.monotonic()))
        say(Sent(self.accepted))

    def _look(self) -> None:
        self.looks.append((time.monotonic(), time.process_time()))

    async def _flood(self, until: float) -> None:
        send, pad, pack, index, now = self.channel.send, self._pad(), HEAD.pack, self.index, time.monotonic
        turn = range(max(1, min(YIELD_EVERY, YIELD_BYTES // self.load.size)))
        while now() < until:
            for _ in turn:
                await send(pack(index, self.accepted, now()) + pad)
                self.accepted += 1

    async def _drip(self, rate: float, until: float) -> None:
        """A message that is late because an earlier one waited counts its latency from when it was due.

        Messages that are due and not sent at the end of the load are not sent: the group is slower than this rate.
        """
        pad, due = self._pad(), time.monotonic()
        while due < until and time.monotonic() < until:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await self.channel.send(HEAD.pack(self.index, self.accepted, due) + pad)
            self.accepted += 1
            due += 1 / rate

    def _pad(self) -> bytes:
        return bytes(self.load.size - HEAD.size)

    # -- the report

    async def seen(self, finish: Finish) -> Seen:
        """Wait for the rest, then report."""
        await self._all_delivered(finish)
        lost, double = self._lost_and_double(finish.accepted)
        (first, cpu_first), (last, cpu_last) = self.looks
        low, high = self._delivered_before(first), self._delivered_before(last)
        sizes = self.runs.sizes
        return Seen(
            delivered=len(self.heads) // HEAD.size,
            order=xxh3_64(self.heads).hexdigest(),
            lost=lost,
            double=double,
            counted=high - low,
            seconds=last - first,
            cpu_seconds=cpu_last - cpu_first,
            latencies=self._latencies(low, high),
            run_messages=sizes[:: len(sizes) // SAMPLE + 1],
            run_messages_max=max(sizes, default=0),
            bytes_sent_again=self.channel.stats()["totals"]["bytes_sent_again"],
            gap=None if finish.killed_at is None else self._gap(finish.killed_at),
        )

    async def _all_delivered(self, finish: Finish) -> None:
        """Count only messages of senders that live: of the others nobody knows how many there are."""
        idle_since, before = time.monotonic(), 0
        while time.monotonic() - idle_since < finish.patience:
            delivered = len(self.heads) // HEAD.size
            if delivered != before:
                idle_since, before = time.monotonic(), delivered
            if delivered >= sum(finish.accepted.values()) and not self._lost_and_double(finish.accepted)[0]:
                break
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)  # for whatever comes twice

    def _lost_and_double(self, accepted: dict[int, int]) -> tuple[int, int]:
        """The messages that are missing, and those that came again or behind a later one of their sender."""
        next_number: dict[int, int] = {}
        lost = double = 0
        for sender, number, _ in HEAD.iter_unpack(self.heads):
            expected = next_number.get(sender, 0)
            if number < expected:
                double += 1
            else:
                lost += number - expected
                next_number[sender] = number + 1
        return lost + sum([max(0, count - next_number.get(one, 0)) for one, count in accepted.items()]), double

    def _delivered_before(self, at: float) -> int:
        place = bisect_left(self.times, at)
        return self.ends[place - 1] if place else 0

    def _latencies(self, low: int, high: int) -> list[float]:
        """Of a sample of the deliveries from `low` to `high`."""
        found = []
        for place in range(low, high, (high - low) // SAMPLE + 1):
            came = self.times[bisect_left(self.ends, place + 1)]
            found.append(came - HEAD.unpack_from(self.heads, place * HEAD.size)[2])
        return found

    def _gap(self, after: float) -> float:
        pairs = zip(self.times, self.times[1:], strict=False)
        return max([later - earlier for earlier, later in pairs if later > after], default=0.0)


def index_of(name: str) -> int:
    """The index of the member with this name."""
    return int(name[1:])


def say(report: Report) -> None:
    """Send a report to the director."""
    print(msgspec.json.encode(report).decode(), flush=True)


async def main() -> None:
    """Join, and obey until the director closes the input."""
    logging.getLogger("pygroups").setLevel(logging.ERROR)  # views and advice are no news here
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    task = msgspec.json.decode(await orders.readline(), type=Task)
    channel = Channel(
        task.group,
        name=f"m{task.index}",
        profile=task.profile,
        transport=task.transport,
        discovery=task.discovery,
        expect=task.expect,
        journal=task.journal,
    )
    async with channel, asyncio.TaskGroup() as tasks:
        worker = Worker(channel, task.index, task.load)
        running = [tasks.create_task(worker.read())]
        while line := await orders.readline():
            order = msgspec.json.decode(line, type=Order)
            if isinstance(order, Begin):
                running.append(tasks.create_task(worker.send(order)))
            else:
                say(await worker.seen(order))
        for one in running:
            one.cancel()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except* Error as errors:
        say(Failed(str(errors.exceptions[0]), isinstance(errors.exceptions[0], UsageError)))
