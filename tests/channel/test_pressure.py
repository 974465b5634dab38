"""Back-pressure: a sender waits while not all others have consumed its window, and never for itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pygroups import Channel, Message, NotSent, Timeout, View, WouldBlock, WouldDeadlock
from pygroups.core.limits import RUN_COST, Config
from tests.channel.socket_group import Group, Reader, both_profiles, in_a_group, until

__all__ = ["both_profiles"]
pytestmark = pytest.mark.usefixtures("both_profiles")
SMALL = Config(window=256 << 10, run_bytes=16 << 10, stable_bytes=16 << 10)
PART = bytes(8 << 10)
PARTS = SMALL.window // len(PART)


async def fill(channel: Channel) -> int:
    """Send until the window is full and nothing moves any more; how many went in."""
    count = 0
    while True:
        try:
            channel.send_nowait(PART)
        except WouldBlock:
            await asyncio.sleep(0.3)
            try:
                channel.send_nowait(PART)
            except WouldBlock:
                return count
        count += 1


async def two(group: Group) -> tuple[Reader, Channel]:
    """A sender with a reader, and a member that nobody reads."""
    sender, idle = await group.read("A", config=SMALL), await group.joined("B", config=SMALL)
    await until(lambda: len(sender.channel.view.members) == 2)
    return sender, idle


def test_a_window_is_all_that_nobody_reads(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        sender, idle = await two(group)
        assert PARTS - 2 <= await fill(sender.channel) <= PARTS
        assert idle.stats()["unread"]["bytes"] <= SMALL.window
        assert sender.channel.stats()["window"]["free"] < len(PART) + 5

    in_a_group(tmp_path, story)


def test_what_is_read_makes_room_again(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        sender, idle = await two(group)
        sent = await fill(sender.channel)
        waiting = asyncio.create_task(sender.channel.send(PART))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        reader = Reader(idle)
        assert await waiting == sent + 1
        await until(lambda: len(reader.payloads) == sent + 1)
        await until(lambda: sender.channel.stats()["window"]["free"] == SMALL.window)

    in_a_group(tmp_path, story)


def test_a_member_that_leaves_holds_nobody_up(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        sender, idle = await two(group)
        await fill(sender.channel)
        waiting = asyncio.create_task(sender.channel.send(PART))
        await idle.leave()
        await waiting

    in_a_group(tmp_path, story)


def test_senders_wait_in_line_and_can_give_up(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        sender, idle = await two(group)
        sent = await fill(sender.channel)
        parts = [bytes([number]) * len(PART) for number in range(4)]
        tasks = [asyncio.create_task(sender.channel.send(part)) for part in parts]
        await asyncio.sleep(0.01)
        tasks[1].cancel()
        await until(lambda: sender.channel.stats()["window"]["waits_for"])  # after a second at most
        names = f"within 0.01 s, because messages in it wait for {idle.address} to read$"
        with pytest.raises(Timeout, match=f"not sent: the window had no room for the message {names}"):
            await sender.channel.send(PART, timeout=0.01)
        with pytest.raises(NotSent) as caught:
            await sender.channel.send_many([PART, PART], timeout=0.01)
        assert caught.value.accepted == 0
        reader = Reader(idle)
        numbers = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(numbers.pop(1), asyncio.CancelledError)
        assert numbers == [sent + 1, sent + 2, sent + 3]
        await sender.channel.send(b"last")
        await until(lambda: b"last" in reader.payloads)
        assert reader.payloads[sent:] == [parts[0], parts[2], parts[3], b"last"]

    in_a_group(tmp_path, story)


def test_send_many_says_how_far_it_came(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        sender, idle = await two(group)
        with pytest.raises(Timeout) as caught:
            await sender.channel.send_many([PART] * (PARTS + 5), timeout=0.5)
        assert PARTS - 2 <= caught.value.accepted <= PARTS
        reader = Reader(idle)
        await until(lambda: len(reader.payloads) == caught.value.accepted)

    in_a_group(tmp_path, story)


def test_two_that_answer_inside_their_loops_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """Each sends several windows from the task that reads: without the rule both would wait for ever."""

    async def story(group: Group) -> None:
        channels = [await group.joined(name, config=SMALL) for name in "AB"]
        await until(lambda: len(channels[0].view.members) == 2)

        async def work(channel: Channel) -> int:
            heard = 0
            async for event in channel:
                if isinstance(event, View) and len(event.members) == 2:
                    for _ in range(3 * PARTS):
                        await channel.send(PART)
                elif isinstance(event, Message):
                    heard += 1
                    if heard == 6 * PARTS:
                        return heard
            return heard

        assert await asyncio.gather(*map(work, channels)) == [6 * PARTS] * 2

    in_a_group(tmp_path, story)


def test_a_reader_that_sends_with_too_much_unread_is_told(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        config = Config(window=256 << 10, run_bytes=16 << 10, stable_bytes=16 << 10, queue_max=512 << 10)
        loud, idle = await group.read("A", config=config), await group.joined("C", config=config)
        busy = await group.joined("B", config=config)
        await until(lambda: len(loud.channel.view.members) == 3)
        assert isinstance(await anext(busy), View)  # from now on this task is the reader of B
        await fill(busy)  # the idle one reads nothing, so there is no room
        flooding = asyncio.create_task(loud.channel.send_many([PART] * (20 * PARTS)))
        reading = Reader(idle)  # and then reads everything, but what B has not read stays unread
        with pytest.raises(WouldDeadlock, match="the message was not sent"):
            for _ in range(100 * PARTS):
                await busy.send(PART)
        flooding.cancel()
        assert reading.payloads
        unread = busy.stats()["unread"]
        assert unread["bytes"] + RUN_COST * unread["items"] > config.queue_max

    in_a_group(tmp_path, story)


def test_a_payload_may_be_larger_than_the_window(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        config = Config(window=16 << 10, run_bytes=16 << 10)
        first, second = await group.read("A", config=config), await group.read("B", config=config)
        await until(lambda: len(first.channel.view.members) == 2)
        sizes = (16 << 10, 17 << 10, 3 << 20, 5, 1 << 20)
        for size in sizes:
            await first.channel.send(bytes(size))
        await until(lambda: len(first.payloads) == len(second.payloads) == len(sizes))
        assert [len(payload) for payload in second.payloads] == list(sizes)
        await until(lambda: first.channel.stats()["window"]["free"] == 16 << 10)
        assert first.channel.send_nowait(bytes(3 << 20)) == 6, "an empty window takes any payload"
        with pytest.raises(WouldBlock):
            first.channel.send_nowait(b"x")
        await until(lambda: len(second.payloads) == 6)
        for size in sizes:
            await first.channel.send(bytes(size), to=second.channel.address)
        await until(lambda: len(second.payloads) == 6 + len(sizes))
        assert [len(payload) for payload in second.payloads[6:]] == list(sizes)

    in_a_group(tmp_path, story)


def test_statistics_have_the_totals(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first, second = await group.read("A"), await group.read("B")
        await until(lambda: len(first.channel.view.members) == 2)
        parts = [bytes(100)] * 7
        await first.channel.send_many(parts)
        await second.channel.send(bytes(1 << 20))
        await first.channel.send(bytes(300), to=second.channel.address)
        await until(lambda: len(first.payloads) == 8 and len(second.payloads) == 9)
        here, there = (reader.channel.stats()["totals"] for reader in (first, second))
        assert (here["views"], there["views"]) == (2, 1)
        assert [here[kind]["messages"] for kind in ("sent", "delivered", "sent_to_one", "delivered_to_one")] == [
            7,
            8,
            1,
            0,
        ]
        assert [there[kind]["messages"] for kind in ("sent", "delivered", "sent_to_one", "delivered_to_one")] == [
            1,
            8,
            0,
            1,
        ]
        assert 700 <= here["sent"]["bytes"] < 800 and 300 <= there["delivered_to_one"]["bytes"] < 310
        assert (1 << 20) + 700 <= here["delivered"]["bytes"] == there["delivered"]["bytes"] < (1 << 20) + 800
        assert here["missed"] == here["runs_sent_again"] == 0

    in_a_group(tmp_path, story)


def test_many_messages_to_one_leave_the_loop_room(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first, second = await group.read("A"), await group.read("B")
        await until(lambda: len(first.channel.view.members) == 2)
        turns = 0

        async def tick() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        await asyncio.sleep(0)
        before = turns
        for _ in range(200):
            await first.channel.send(bytes(32 << 10), to=second.channel.address)
        assert turns > before
        ticking.cancel()
        await until(lambda: len(second.payloads) == 200)

    in_a_group(tmp_path, story)
