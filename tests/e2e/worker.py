"""A member in a process of its own, for tests: does what it is told, and writes down what its application sees.

Orders come as JSON lines on standard input, reports go as JSON lines to standard output; the first line says who it is.
What the application is given goes to a log, one unbuffered write per batch, so that a death loses none of it; the log
is not the journal, and knows nothing of it.  When standard input ends, so does the process: none outlives its test.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from typing import Any, Final

from pygroups import (
    Blocked,
    Channel,
    ChannelClosed,
    Config,
    Excluded,
    Gap,
    Left,
    MergeView,
    Message,
    NotSent,
    Slow,
    Suspected,
    Unblocked,
    View,
)
from pygroups.cli.streams import lines_of
from pygroups.core.limits import Config as Limits
from tests.e2e.kill_points import NetworkFirst, Steps

PROGRESS_SECONDS: Final = 0.1
ORDER_BYTES: Final = 1 << 16


class Counts:
    """The state of an application: per sender, how many of its messages the state contains."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    async def get_state(self) -> bytes:
        return json.dumps(self.counts).encode()

    async def set_state(self, data: bytes) -> None:
        self.counts = json.loads(data)


class Worker:
    """One life, from its first order on."""

    def __init__(self, wishes: dict[str, Any], steps: Steps) -> None:
        self.steps = steps
        limits, settings = wishes.pop("config", None), wishes.pop("settings", None)  # of the layers; of programs
        internal = Limits(**limits) if limits else Limits()
        config = Config(**settings, internal=internal) if settings else internal if limits else None
        self.report_seconds: float = wishes.pop("report_seconds", PROGRESS_SECONDS)
        self.log = os.open(wishes.pop("log"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        self.state = Counts()
        if wishes.pop("counts", False):
            wishes["state"] = self.state
        self.channel = Channel(**wishes, config=config)
        self.last: dict[str, int] = {}  # of each sender, the last number that was delivered or is in a gap
        self.accepted = 0
        self.reads = asyncio.Event()
        self.reads.set()
        self.sending: asyncio.Task[None] | None = None
        self.tasks: list[asyncio.Task[None]] = []

    async def live(self, orders: Orders) -> None:
        """Be a member until told to leave, or left out."""
        async with self.channel:
            say("joined", address=str(self.channel.address))
            reading = asyncio.create_task(self._read())
            self.tasks = [asyncio.create_task(self._report()), asyncio.create_task(self._obey(orders))]
            done, _ = await asyncio.wait([reading, *self.tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            left = await self.channel.leave()
            self.reads.set()
            await reading
        for task in self.tasks:
            task.cancel()
        self._progress()
        say("left", reason=left.reason, unknown=list(left.unknown))

    # -- reading

    async def _read(self) -> None:
        try:
            await self._read_all()
        except Excluded as why:  # the event before says so too, and is in the log
            say("excluded", why=str(why))

    async def _read_all(self) -> None:
        async for events in self.channel.batches():
            lines: list[str] = []
            for event in events:
                if isinstance(event, Message):
                    lines.append(self._on_message(event))
                elif isinstance(event, View):
                    lines.append(f"V {json.dumps(view_of(event))}")
                    if isinstance(event, MergeView) and event.reset:
                        lines.append(f"R {event.winner[0]}")  # its state is that of this side now
                    say("view", **view_of(event))
                elif isinstance(event, Left):
                    lines.append(f"L {json.dumps({'reason': event.reason, 'unknown': list(event.unknown)})}")
                elif isinstance(event, Slow):
                    say("slow", member=str(event.member), seconds=event.seconds)
                elif isinstance(event, Gap):
                    lines.append(f"G {event.sender} {event.first} {event.count}")
                    self.last[str(event.sender)] = event.first + event.count - 1  # the others have these
                elif isinstance(event, Blocked):
                    lines.append(f"B {event.reason}")
                    say("blocked", reason=event.reason)
                elif isinstance(event, Unblocked):
                    lines.append("U")
                    say("unblocked")
                elif isinstance(event, Suspected):
                    say("suspected", member=str(event.member))
                else:
                    lines.append(f"X unexpected: {event!r}")
            os.write(self.log, "".join([line + "\n" for line in lines]).encode())
            await self.reads.wait()

    def _on_message(self, message: Message) -> str:
        sender = str(message.sender)
        self.last[sender] = message.number
        self.state.counts[sender] = self.state.counts.get(sender, 0) + 1
        if message.payload != payload_of(sender, message.number, len(message.payload)):
            return f"X {sender} {message.number} holds {message.payload[:80]!r}"
        return f"M {sender} {message.number} {message.position}"

    # -- sending

    async def _send(self, count: int, size: int, burst: int | None = None, pause: float = 0) -> None:
        """`count` messages of `size` bytes, as fast as the window lets it, or in bursts; until it leaves."""
        me, end = str(self.channel.address), self.accepted + count
        with suppress(ChannelClosed, NotSent):  # it leaves: what was not accepted was certainly not sent
            while self.accepted < end:
                for number in range(self.accepted + 1, min(end, self.accepted + (burst or count)) + 1):
                    assert await self.channel.send(payload_of(me, number, size)) == number
                    self.accepted = number
                if burst is not None:
                    await asyncio.sleep(pause)
        say("sent", accepted=self.accepted)

    async def _stop_sending(self) -> None:
        """What was not accepted is withdrawn."""
        if self.sending is not None:
            self.sending.cancel()
            await asyncio.wait([self.sending])
            if not self.sending.cancelled():
                self.sending.result()

    # -- orders and reports

    async def _obey(self, orders: Orders) -> None:
        async for order in orders:
            match order.pop("do"):
                case "send":
                    self.sending = asyncio.create_task(self._send(**order))
                case "stop sending":
                    await self._stop_sending()
                    say("sent", accepted=self.accepted)
                case "die":
                    self.steps.die_after(**order)
                case "read":
                    self.reads.set()
                case "do not read":
                    self.reads.clear()
                    say("hears", nothing="more than the batch it is at")
                case "report seldom":
                    self.report_seconds = order["seconds"]
                case "mark":
                    members = [member for member in self.channel.view.members if str(member) in order["members"]]
                    self.channel.mark(order["kind"], reason=order["reason"], members=members)
                    say("marked", kind=order["kind"])
                case "tell data":
                    say("data", counts=self.state.counts)
                case "leave":
                    await self._stop_sending() if order.get("stop") else None
                    return
                case unknown:
                    raise AssertionError(f"no such order: {unknown}")
        os._exit(0)  # nobody is there any more who could tell this process anything

    async def _report(self) -> None:
        while True:
            self._progress()
            await asyncio.sleep(self.report_seconds)

    def _progress(self) -> None:
        stats = self.channel.stats()
        held = {name: value for name, value in stats["gauges"].items() if value}
        if stats["unread"]["items"]:
            held["unread"] = stats["unread"]["items"]
        say("progress", accepted=self.accepted, last=self.last, held=held, memory_bound=stats["memory_bound"])


class Orders:
    """What the test wants, one after the other."""

    def __init__(self, file: int) -> None:
        self.lines = lines_of(file, ORDER_BYTES)
        self.waiting: list[bytes] = []

    def __aiter__(self) -> Orders:
        return self

    async def __anext__(self) -> dict[str, Any]:
        while not self.waiting:
            self.waiting = await anext(self.lines)
        order: dict[str, Any] = json.loads(self.waiting.pop(0))
        return order


def payload_of(sender: str, number: int, size: int) -> bytes:
    """What `sender` sends as its message `number`: nobody else's message, and no other one's, looks so."""
    words = f"{sender} {number} ".encode()
    return (words * (1 + size // len(words)))[:size] if size > len(words) else words


def view_of(view: View) -> dict[str, Any]:
    """A view in words."""
    return {
        "id": [view.id.number, str(view.id.leader)],
        "members": [str(member) for member in view.members],
        "joined": [str(member) for member in view.joined],
        "transitional": [str(member) for member in view.transitional],
        "subgroups": [list(map(str, side)) for side in view.subgroups] if isinstance(view, MergeView) else [],
    }


def say(report: str, **content: Any) -> None:
    """Tell the test."""
    os.write(sys.stdout.fileno(), json.dumps({"report": report} | content).encode() + b"\n")


async def main() -> None:
    """Say that all is imported, wait for the first order, and live."""
    orders = Orders(sys.stdin.fileno())
    say("ready")
    try:
        wishes = await anext(orders)
    except StopAsyncIteration:
        return  # not needed
    steps = NetworkFirst() if wishes.pop("planted", False) else Steps()
    steps.faults_before = wishes.pop("faults_before", False)
    if death := wishes.pop("die", None):
        steps.die_after(**death)
    steps.watch_members()
    await Worker(wishes, steps).live(orders)


if __name__ == "__main__":
    asyncio.run(main())
