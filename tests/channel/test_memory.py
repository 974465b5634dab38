"""What messages occupy is bounded by what `stats()` says, whatever a program does or leaves undone."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from pygroups import Address, Channel, ChannelClosed, Message, NotSent, Timeout, UsageError, View, WouldBlock
from pygroups.core.limits import Config
from tests.channel.socket_group import Group, Reader, in_a_group, until
from tests.patience import patience

SMALL = Config(
    payload_max=16 << 10,
    run_bytes=16 << 10,
    window=256 << 10,
    stable_bytes=16 << 10,
    queue_max=1 << 20,
    receive_bytes=256 << 10,
)
LARGE = msgspec.structs.replace(SMALL, payload_max=1 << 20)  # payloads in pieces
PART = bytes(8 << 10)
PARTS = SMALL.window // len(PART)
SLACK = 512 << 10  # what is no message: tasks, counters, the buffers of two connections


@contextmanager
def bounded_by(*channels: Channel) -> Iterator[None]:
    """What is allocated meanwhile stays below the sum of the bounds that the channels state."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    bound = sum(channel.stats()["memory_bound"] for channel in channels)
    assert peak < bound + SLACK, (peak, bound)


async def flood(channel: Channel, seconds: float) -> int:
    """Send without a pause for a while; how many messages were accepted."""
    sent = 0
    try:
        async with asyncio.timeout(patience(seconds)):
            while True:
                await channel.send(bytes(len(PART)))
                sent += 1
    except TimeoutError:
        return sent


async def slowly(channel: Channel, seen: list[Message]) -> None:
    async for event in channel:
        if isinstance(event, Message):
            seen.append(event)
            await asyncio.sleep(0.01)


def test_a_publisher_that_never_iterates_waits_for_itself(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A", config=SMALL)
        with bounded_by(channel):
            assert PARTS - 2 <= await flood(channel, 0.3) <= PARTS
        assert channel.stats()["unread"]["bytes"] <= SMALL.window
        with pytest.raises(WouldBlock):
            channel.send_nowait(PART)

    in_a_group(tmp_path, story)


def test_a_publisher_among_readers_that_never_iterates_is_bounded_too(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A", config=SMALL)
        channel = await group.joined("B", config=SMALL)
        await until(lambda: len(reader.channel.view.members) == 2)
        assert PARTS - 2 <= await flood(channel, 0.5) <= PARTS
        assert channel.stats()["window"]["free"] < len(PART) + 5

    in_a_group(tmp_path, story)


def test_large_payloads_that_nobody_reads_wait_one_by_one(tmp_path: Path) -> None:
    """An empty window takes one, to everyone and to one member; the next message waits until it was read."""

    async def story(group: Group) -> None:
        sender, idle = await group.read("A", config=LARGE), await group.joined("B", config=LARGE)
        await until(lambda: len(sender.channel.view.members) == 2)
        with bounded_by(sender.channel, idle):
            for to in (None, idle.address):
                await sender.channel.send(bytes(LARGE.payload_max), to=to, timeout=5)
                with pytest.raises(Timeout):
                    await sender.channel.send(b"x", to=to, timeout=0.3)
        assert idle.stats()["unread"]["bytes"] < 3 * LARGE.payload_max
        reader = Reader(idle)
        await sender.channel.send(b"to all", timeout=5)
        await sender.channel.send(b"to one", to=idle.address, timeout=5)
        await until(lambda: {b"to all", b"to one"} <= set(reader.payloads))

    in_a_group(tmp_path, story)


def test_a_lone_member_sends_as_fast_as_it_reads(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        channel = await group.joined("A", config=SMALL)
        seen: list[Message] = []
        reading = asyncio.create_task(slowly(channel, seen))
        with bounded_by(channel):
            began = time.monotonic()
            sent = await flood(channel, 0.8)
            took = time.monotonic() - began
        assert sent - len(seen) <= PARTS
        assert len(seen) <= took / 0.01
        assert sent > PARTS, "what was read makes room"
        reading.cancel()

    in_a_group(tmp_path, story)


def test_the_slowest_reader_does_not_get_all_the_bandwidth(tmp_path: Path) -> None:
    """The member that reads slowly sends no faster than one that reads at once."""

    async def story(group: Group) -> None:
        quick, slow = await group.read("A", config=SMALL), await group.joined("B", config=SMALL)
        await until(lambda: len(quick.channel.view.members) == 2)
        seen: list[Message] = []
        reading = asyncio.create_task(slowly(slow, seen))
        of_quick, of_slow = await asyncio.gather(flood(quick.channel, 0.8), flood(slow, 0.8))
        assert of_slow <= 2 * of_quick + PARTS
        assert slow.stats()["unread"]["bytes"] <= 2 * SMALL.window
        reading.cancel()

    in_a_group(tmp_path, story)


async def flood_one(channel: Channel, to: Address, seconds: float) -> int:
    sent = 0
    try:
        async with asyncio.timeout(patience(seconds)):
            while True:
                await channel.send(bytes(len(PART)), to=to)
                sent += 1
    except TimeoutError:
        return sent


def test_messages_to_one_member_that_does_not_read_wait_for_its_window(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        sender, idle = await group.read("A", config=SMALL), await group.joined("B", config=SMALL)
        await until(lambda: len(sender.channel.view.members) == 2)
        with bounded_by(sender.channel, idle):
            sent = await flood_one(sender.channel, idle.address, 0.4)
            assert PARTS - 2 <= sent <= PARTS
        with pytest.raises(WouldBlock, match=r"messages to B@.* is full"):
            sender.channel.send_nowait(PART, to=idle.address)
        with pytest.raises(Timeout):
            await sender.channel.send(PART, to=idle.address, timeout=0.01)
        assert sender.channel.stats()["window"]["free"] == SMALL.window, "of multicasts"
        await sender.channel.send(b"to all")
        reader = Reader(idle)
        for _ in range(2 * PARTS):  # the window opens again and again
            await sender.channel.send(PART, to=idle.address, timeout=30)
        await until(lambda: len(reader.payloads) >= 3 * PARTS - 2)

    in_a_group(tmp_path, story)


def test_who_waits_to_send_to_a_member_that_leaves_is_told(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        sender, idle = await group.read("A", config=SMALL), await group.joined("B", config=SMALL)
        await until(lambda: len(sender.channel.view.members) == 2)
        await flood_one(sender.channel, idle.address, 0.3)
        waiting = asyncio.create_task(sender.channel.send(PART, to=idle.address))
        await asyncio.sleep(0.05)
        idle._member.crash(AssertionError("dies"))
        with pytest.raises(NotSent, match="is not in the view"):
            await waiting
        idle._session.crash = None  # type: ignore[union-attr]

    in_a_group(tmp_path, story)


def test_members_that_answer_each_other_alone_inside_their_loops_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        async with asyncio.timeout(patience(20)):
            channels = [await group.joined(name, config=SMALL) for name in "AB"]
            await until(lambda: len(channels[0].view.members) == len(channels[1].view.members) == 2)

            async def work(channel: Channel, peer: Address) -> int:
                heard = 0
                async for event in channel:
                    if isinstance(event, View) and len(event.members) == 2:
                        for _ in range(3 * PARTS):
                            await channel.send(PART, to=peer)
                    elif isinstance(event, Message):
                        heard += 1
                        if heard == 3 * PARTS:
                            return heard
                return heard

            a, b = channels
            assert await asyncio.gather(work(a, b.address), work(b, a.address)) == [3 * PARTS] * 2

    in_a_group(tmp_path, story)


def test_the_reader_that_sends_does_not_wait_for_itself(tmp_path: Path) -> None:
    """A lone member sends several windows from the task that reads."""

    async def story(group: Group) -> None:
        async with asyncio.timeout(patience(10)):
            channel = await group.joined("A", config=SMALL)
            seen = 0
            async for event in channel:
                if isinstance(event, View):
                    for _ in range(3 * PARTS):
                        await channel.send(PART)
                elif isinstance(event, Message):
                    seen += 1
                    if seen == 3 * PARTS:
                        break
            await until(lambda: channel.stats()["window"]["free"] > SMALL.window - 16 * len(PART))

    in_a_group(tmp_path, story)


def test_a_channel_without_events_sends_without_limit_and_keeps_nothing(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A", config=SMALL)
        channel = await group.joined("B", config=SMALL, events="none")
        await until(lambda: len(reader.channel.view.members) == 2)
        with bounded_by(channel, reader.channel):
            for number in range(20 * PARTS):
                await channel.send(PART)
                await reader.channel.send(b"back")
                if number % PARTS == 0:
                    reader.events.clear()
            reader.events.clear()
        assert channel.stats()["unread"] == {"items": 0, "bytes": 0}
        await channel.send(b"end", until="stable")
        with pytest.raises(UsageError, match="events='none'"):
            await anext(channel)
        with pytest.raises(UsageError, match="events='none'"):
            await anext(channel.batches())
        await channel.leave()
        with pytest.raises(ChannelClosed):
            await channel.send(b"x")

    in_a_group(tmp_path, story)


def test_events_none_is_for_who_only_sends() -> None:
    class State:
        async def get_state(self) -> bytes:
            return b""

        async def set_state(self, data: bytes) -> None:
            pass

    with pytest.raises(UsageError, match="state= needs events"):
        Channel("g", events="none", state=State())
    with pytest.raises(UsageError, match="events='some' is not known"):
        Channel("g", events="some")
