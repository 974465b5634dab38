"""Programs that send while they read, and a program that only sends, over real sockets.

`python -m tests.channel.answering --seconds 60` plays each for so long, and appends each result to
bench/results/answering.jsonl; `make answering` calls it.  A part that has passed on the same commit is not played
again.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from pygroups import Channel, Message, View, WouldDeadlock
from pygroups.core.limits import Config
from tests.channel.socket_group import Group, Reader, group_in, until

SMALL: Final = Config(
    payload_max=16 << 10, window=128 << 10, run_bytes=16 << 10, stable_bytes=16 << 10, queue_max=8 << 20
)
PART: Final = bytes(2 << 10)
STILL: Final = 20.0  # seconds without any message that count as a deadlock, on a busy machine too
NAMES: Final = "ABCD"


class Answerer:
    """A program that answers, inside of its `async for`, each message of the member before it with `times` messages."""

    def __init__(self, channel: Channel, times: int) -> None:
        self.channel = channel
        self.times = times
        self.answers = True
        self.sending = False
        self.sent = 0
        self.seen: list[tuple[str, int]] = []
        self.deadlocks = 0
        self.read_at = time.monotonic()
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for event in self.channel:
            if isinstance(event, View) and len(event.members) == len(NAMES):
                for _ in range(2 * SMALL.window // len(PART)):  # two windows, before anything is read
                    await self._send()
            elif isinstance(event, Message):
                self.read_at = time.monotonic()
                self.seen.append((event.sender.name, event.number))
                if event.sender == self._before():
                    for _ in range(self.times):
                        await self._send()

    async def _send(self) -> None:
        if not self.answers:
            return
        self.sending = True
        try:
            await self.channel.send(PART)
            self.sent += 1
        except WouldDeadlock:
            self.deadlocks += 1
            self.answers = False  # the message was not sent; from now on this program only reads
        finally:
            self.sending = False

    def _before(self) -> object:
        members = self.channel.view.members
        return members[members.index(self.channel.address) - 1]


async def answer(group: Group, times: int, seconds: float) -> list[Answerer]:
    """Four members answer each other until the time is over, or until a program gets WouldDeadlock.  Returns the
    programs when all messages are read."""
    channels = [await group.joined(name, config=SMALL) for name in NAMES]
    await until(lambda: all(len(channel.view.members) == len(NAMES) for channel in channels))
    programs = [Answerer(channel, times) for channel in channels]
    end = time.monotonic() + seconds
    while time.monotonic() < end and all(program.answers for program in programs):
        still = time.monotonic() - max(program.read_at for program in programs)
        assert still < STILL, f"nobody reads anything for {still:.0f} s: the members wait for each other"
        await asyncio.sleep(0.05)
    for program in programs:
        program.answers = False
    await until(lambda: not any(program.sending for program in programs))
    sent = {program.channel.address.name: program.sent for program in programs}
    total = sum(sent.values())
    async with asyncio.timeout(120):
        while any(len(program.seen) < total for program in programs):
            await asyncio.sleep(0.05)
    for program in programs:
        assert program.seen == programs[0].seen, "one order for all"
        assert Counter(name for name, _ in program.seen) == sent
    return programs


async def only_send(group: Group, seconds: float) -> tuple[int, int, float]:
    """A reads nothing and only sends; B and C read and send.  D joins and leaves meanwhile.

    Returns how many messages A sent meanwhile, the most bytes unread at A, and the longest view change in seconds.
    """
    channels = [await group.joined(name, config=SMALL) for name in "ABC"]
    await until(lambda: all(len(channel.view.members) == 3 for channel in channels))
    readers = [Reader(channel) for channel in channels[1:]]
    sent = Counter[str]()

    async def send(channel: Channel) -> None:
        while True:
            await channel.send(PART)
            sent[channel.address.name] += 1

    sending = [asyncio.create_task(send(channel)) for channel in channels]
    most, longest, end = 0, 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        async with group.channel("D", config=SMALL, events="none"):
            await until(lambda: all(len(channel.view.members) == 4 for channel in channels))
        await until(lambda: all(len(channel.view.members) == 3 for channel in channels))
        longest = max(longest, time.monotonic() - began)
        most = max(most, channels[0].stats()["unread"]["bytes"])
        await asyncio.sleep(0.2)
    meanwhile = sent["A"]
    readers.insert(0, Reader(channels[0]))  # now A reads, and everybody goes on
    before = dict(sent)
    await until(lambda: all(sent[name] > before[name] for name in "ABC"))
    for task in sending:
        task.cancel()
    await asyncio.wait(sending)
    await until(lambda: all(len(reader.payloads) == sum(sent.values()) for reader in readers))
    return meanwhile, most, longest


async def main(seconds: float) -> None:
    from bench.common import Result, passed

    for part in (1, 2, "only sends"):
        if passed("answering", part=part, each_s=seconds):
            print(f"{part}: passed before on this commit", flush=True)
            continue
        result = Result("answering")
        with tempfile.TemporaryDirectory() as folder:
            async with group_in(Path(folder)) as group:
                told, measured = await (
                    _answered(group, part, seconds) if isinstance(part, int) else _only_sent(group, seconds)
                )
        result.write(part=part, each_s=seconds, faults=[], **measured, told=False)
        print(told, flush=True)


async def _answered(group: Group, times: int, seconds: float) -> tuple[str, dict[str, Any]]:
    programs = await answer(group, times, seconds)
    deadlocks = sum(program.deadlocks for program in programs)
    sent = sum(program.sent for program in programs)
    assert (deadlocks > 0) is (times > 1)
    told = f"{times} answers a message: {sent:,} messages, none lost, {deadlocks} of {len(NAMES)} WouldDeadlock"
    return told, {"sent": sent, "deadlocks": deadlocks}


async def _only_sent(group: Group, seconds: float) -> tuple[str, dict[str, Any]]:
    sent, most, longest = await only_send(group, seconds)
    told = f"a member that only sends: {sent:,} sent unread, at most {most:,} bytes unread, "
    told += f"a join and a leave in {longest:.2f} s at most"
    return told, {"sent": sent, "unread_bytes": most, "join_and_leave_s": round(longest, 2)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    asyncio.run(main(parser.parse_args().seconds))
