"""One member of the demo, in a process of its own: it sends its feeds, applies all records, and obeys orders.

Orders come as JSON lines on standard input; the first one is the task.  Reports go as JSON lines to standard output.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from pygroups import Channel, Left, Message, View
from pygroups.cli.logs import show_warnings
from pygroups.cli.streams import lines_of

from .feeds import Feed, payload_of, record_in
from .messages import (
    Busy,
    End,
    FirstDelivered,
    Go,
    Joined,
    LeaveGroup,
    Mark,
    Marked,
    Order,
    Task,
    TellBusy,
    Views,
    WorkerReport,
)
from .replica import Replica, digest_of

TICK_SECONDS: Final = 0.005  # the shortest pause between two calls of send_many
REPORT_SECONDS: Final = 0.1
ORDER_BYTES: Final = 1 << 16


class Worker:
    """The member of the demo."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.replica = Replica(Path(task.replica))
        self.channel = Channel(
            task.group,
            profile=task.profile,
            name=task.name,
            discovery=task.discovery,
            journal=task.journal,
            state=self.replica,
        )
        self.sent = {feed.name: 0 for feed in task.feeds}
        self.totals = {feed.name: 0 for feed in task.feeds}
        self.ready = asyncio.Event()  # the first view, and with it the state, was applied
        self.go = asyncio.Event()
        self.seconds = 0.0
        self.watching = False  # report the first delivery after the view

    async def run(self, orders: Orders) -> None:
        """Be a member until the order to leave."""
        async with self.channel, asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(self._read())
            others = [tasks.create_task(job) for job in (self._report(), *map(self._feed, self.task.feeds))]
            await self._obey(orders)
            await self.channel.leave()
            await reading
            for task in others:
                task.cancel()
        self.replica.close()
        say(End(self.replica.count, digest_of(self.replica.path)))

    # -- reading

    async def _read(self) -> None:
        async for events in self.channel.batches():
            records = [record_in(event.payload) for event in events if isinstance(event, Message)]
            if records:
                self.replica.apply(records)
                if self.watching:
                    self.watching = False
                    say(FirstDelivered(now_us()))
            for event in events:
                if isinstance(event, View):
                    self._on_view(event)
                elif isinstance(event, Left):
                    assert event.reason == "left", f"the other members removed this member: {event.reason}"

    def _on_view(self, view: View) -> None:
        if not self.ready.is_set():
            self.ready.set()
            lines = {feed.name: self.replica.next_line(feed.name) for feed in self.task.feeds}
            say(Joined(str(self.channel.address), self.replica.count, lines))
        self.watching = bool(view.left)
        say(Views(now_us(), [str(member) for member in view.members]))

    # -- sending

    async def _feed(self, feed: Feed) -> None:
        """Send the lines of `feed` that are not in the state, evenly spread over the time of the order."""
        lines = feed.records()
        self.totals[feed.name] = len(lines)
        await self.ready.wait()
        line = self.replica.next_line(feed.name)
        self.sent[feed.name] = line - 1
        await self.go.wait()
        began, pause = time.monotonic(), self.seconds / (len(lines) + 1)
        first = line
        while line <= len(lines):
            due = min(len(lines) + 1, first + int((time.monotonic() - began) / pause))
            await self.channel.send_many([payload_of(feed.name, n, lines[n - 1]) for n in range(line, due)])
            line = max(line, due)
            self.sent[feed.name] = line - 1
            await asyncio.sleep(max(TICK_SECONDS, began + (line - first + 1) * pause - time.monotonic()))

    # -- orders and reports

    async def _obey(self, orders: Orders) -> None:
        async for order in orders:
            if isinstance(order, Go):
                self.seconds = order.seconds
                self.go.set()
            elif isinstance(order, Mark):
                members = [member for member in self.channel.view.members if str(member) in order.members]
                self.channel.mark(order.kind, reason=order.reason, members=members)
                say(Marked(order.kind))
            elif isinstance(order, TellBusy):
                await self._tell_when_busy()
            elif isinstance(order, LeaveGroup):
                return

    async def _tell_when_busy(self) -> None:
        """Report Busy as soon as not all members have acknowledged all runs of the sequencer."""
        while not (runs := self._unacknowledged()):
            await asyncio.sleep(0)
        say(Busy(now_us(), runs, dict(self.sent)))

    def _unacknowledged(self) -> int:
        held: dict[str, int] = self.channel.stats()["gauges"]
        return held.get("nakack.stored", 0) + held.get("total.stored", 0)

    async def _report(self) -> None:
        await self.ready.wait()
        while True:
            held = sum(self.channel.stats()["gauges"].values())
            say(WorkerReport(dict(self.sent), dict(self.totals), self.replica.count, held))
            await asyncio.sleep(REPORT_SECONDS)


class Orders:
    """The orders of the director, one after the other."""

    def __init__(self, file: int) -> None:
        self.lines = lines_of(file, ORDER_BYTES)
        self.waiting: list[bytes] = []

    async def task(self) -> Task:
        """The first order, which contains the task."""
        self.waiting = await anext(self.lines)
        return msgspec.json.decode(self.waiting.pop(0), type=Task)

    def __aiter__(self) -> Orders:
        return self

    async def __anext__(self) -> Order:
        while not self.waiting:
            self.waiting = await anext(self.lines)
        order: Order = msgspec.json.decode(self.waiting.pop(0), type=Order)
        return order


def say(word: Any) -> None:
    """Send a report to the director."""
    sys.stdout.buffer.write(msgspec.json.encode(word) + b"\n")
    sys.stdout.buffer.flush()


def now_us() -> int:
    """The time of the machine's monotonic clock, which is the same for all processes."""
    return time.monotonic_ns() // 1_000


async def main() -> None:
    """Read the task, and run it."""
    show_warnings()  # but not those of views: the director narrates who was lost
    orders = Orders(sys.stdin.fileno())
    await Worker(await orders.task()).run(orders)


if __name__ == "__main__":
    asyncio.run(main())
