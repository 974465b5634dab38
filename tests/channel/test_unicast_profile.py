"""Channels without a group: profile `unicast` over real sockets, TCP and UDP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from pygroups import (
    Channel,
    ChannelClosed,
    Config,
    Left,
    Message,
    NotBuilt,
    NotSent,
    Timeout,
    Undelivered,
    UsageError,
    WouldBlock,
)
from pygroups.testing import run as in_memory

BOTH = pytest.mark.parametrize("transport", ["tcp", "udp"])
Main = Callable[[], Coroutine[Any, Any, None]]


def run(main: Main) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await main()

    asyncio.run(bounded())


def channel(name: str, **options: Any) -> Channel:
    return Channel(None, profile="unicast", name=name, **options)


async def messages(receiver: Channel, count: int) -> list[Message]:
    found: list[Message] = []
    async for event in receiver:
        assert isinstance(event, Message), event
        found.append(event)
        if len(found) == count:
            break
    return found


@BOTH
def test_messages_to_a_place_arrive_in_order_and_their_sender_can_be_answered(transport: str) -> None:
    async def main() -> None:
        async with channel("A", transport=transport) as a, channel("B", transport=transport) as b:
            numbers = [await a.send(b"%d" % number, to=b.contact) for number in range(1, 101)]
            got = await messages(b, 100)
            assert [message.number for message in got] == numbers == list(range(1, 101))
            assert [message.payload for message in got] == [b"%d" % number for number in numbers]
            assert {message.sender for message in got} == {a.address}
            assert await b.send(b"answer", to=got[0].sender, until="delivered") == 1
            assert [message.payload for message in await messages(a, 1)] == [b"answer"]

    run(main)


@BOTH
def test_delivered_is_acknowledged_and_a_number_can_be_awaited_later(transport: str) -> None:
    async def main() -> None:
        async with channel("A", transport=transport) as a, channel("B", transport=transport) as b:
            await a.send(b"one", to=b.contact, until="delivered", timeout=10)
            number = await a.send(b"two", to=b.contact)
            await a.wait(number, timeout=10)
            assert a.stats()["gauges"]["unicast2.sent"] == 0

    run(main)


@BOTH
def test_large_payloads_arrive_whole(transport: str) -> None:
    async def main() -> None:
        async with channel("A", transport=transport) as a, channel("B", transport=transport) as b:
            payload = bytes(range(256)) * 8_000
            reading = asyncio.create_task(messages(b, 2))
            await a.send(payload, to=b.contact)
            await a.send(b"behind", to=b.contact)
            assert [message.payload for message in await reading] == [payload, b"behind"]

    run(main)


@BOTH
def test_a_process_that_ends_is_reported_with_what_it_did_not_acknowledge(transport: str) -> None:
    async def main() -> None:
        async with channel("A", transport=transport) as a:
            b = channel("B", transport=transport)
            await b.__aenter__()
            await a.send(b"one", to=b.contact, until="delivered")
            place, peer = b.contact, b.address
            _crash(b)
            number = await a.send(b"two", to=peer)
            async for event in a:
                assert event == Undelivered(peer, range(number, number + 1))
                break
            with pytest.raises(NotSent, match=f"listens at {place}"):
                await a.send(b"three", to=place)

    run(main)


@BOTH
def test_another_process_at_the_same_place_is_another_receiver(transport: str) -> None:
    async def main() -> None:
        async with channel("A", transport=transport) as a:
            b = channel("B", transport=transport)
            await b.__aenter__()
            place, first = b.contact, b.address
            await a.send(b"one", to=place, until="delivered")
            _crash(b)
            async with channel("B", transport=transport, bind=place) as again:
                reported = 0
                while True:  # the first ones may still be sent to the process that ended
                    number = await a.send(b"again", to=place)
                    try:
                        await a.wait(number, timeout=10)
                    except Exception:  # noqa: BLE001 (Unknown: it was sent to the former process)
                        reported += 1
                        continue
                    break
                (message,) = await messages(again, 1)
                assert (message.payload, message.number) == (b"again", 1)
                for _ in range(reported):
                    event = await anext(a)
                    assert isinstance(event, Undelivered) and event.to == first

    run(main)


def _crash(crashing: Channel) -> None:
    """End the process behind a channel as a crash would."""
    session = crashing._opened()
    session.watchdog.stop()
    session.member.close()


@BOTH
def test_leaving_waits_until_everything_is_acknowledged(transport: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with channel("B", transport=transport) as b:
            async with channel("A", transport=transport, journal=tmp_path) as a:
                for number in range(300):
                    await a.send(b"%d" % number, to=b.contact)
            assert [message.payload for message in await messages(b, 300)] == [b"%d" % number for number in range(300)]
            assert [event async for event in a] == [Left("left", [])]
            assert a.stats()["gauges"]["unicast2.sent"] == 0

    run(main)
    assert [path.name for path in tmp_path.iterdir()] == ["-"]


@BOTH
def test_a_full_window_lets_a_sender_wait_until_its_receiver_reads(transport: str) -> None:
    async def main() -> None:
        config = Config(window=256 << 10, run_bytes=1 << 10)
        options = {"transport": transport, "config": config}
        async with channel("A", **options) as a, channel("B", **options) as b:
            with pytest.raises(WouldBlock, match="has not answered yet"):
                a.send_nowait(b"x", to=b.contact)
            await a.send(b"x", to=b.contact)
            sent = 1
            with pytest.raises(WouldBlock, match="is full"):
                while True:
                    a.send_nowait(bytes(1_000), to=b.contact)
                    sent += 1
            assert 200 < sent < 300
            with pytest.raises(TimeoutError):
                await a.send(bytes(1_000), to=b.contact, timeout=0.05)
            waiting = asyncio.create_task(a.send(bytes(1_000), to=b.contact))
            assert len(await messages(b, sent + 1)) == sent + 1
            assert await waiting == sent + 1

    run(main)


def test_a_sender_that_waits_for_a_process_that_ends_is_released() -> None:
    async def main() -> None:
        config = Config(window=128 << 10)
        async with channel("A", config=config) as a:
            b = channel("B", config=config)
            await b.__aenter__()
            peer = b.address
            await a.send(bytes(100_000), to=b.contact, until="delivered")  # and nobody reads it
            waiting = asyncio.create_task(a.send(bytes(100_000), to=peer))
            await asyncio.sleep(0)
            _crash(b)
            number = await waiting
            assert await anext(a) == Undelivered(peer, range(number, number + 1))

    run(main)


def test_processes_with_other_limits_do_not_talk() -> None:
    async def main() -> None:
        async with channel("A") as a, channel("B", config=Config(payload_max=1 << 20)) as b:
            with pytest.raises(NotSent, match="the same limits and the same version"):
                await a.send(b"one", to=b.contact)

    run(main)


def test_a_member_of_a_group_is_not_found_by_its_place(tmp_path: Path) -> None:
    async def main() -> None:
        async with Channel("orders", discovery=f"dir:{tmp_path}") as member, channel("A") as a:
            with pytest.raises(NotSent, match="no process with profile 'unicast'"):
                await a.send(b"one", to=member.contact)
            with pytest.raises(UsageError, match="is not an address: use one of"):
                await member.send(b"one", to=a.contact)

    run(main)


def test_messages_to_oneself() -> None:
    async def main() -> None:
        async with channel("A") as a:
            await a.send(b"one", to=a.contact, until="delivered")
            assert [(message.sender, message.number) for message in await messages(a, 1)] == [(a.address, 1)]

    run(main)


def test_wrong_calls() -> None:
    for wrong, sentence in (
        ({"group": "orders"}, "has no group: write"),
        ({"discovery": "dir:/tmp/x"}, "discovery= needs a group, and profile .unicast. has none"),
        ({"transport": "udp:239.1.2.3:7000"}, "one process at a time"),
    ):
        with pytest.raises(UsageError, match=sentence):
            Channel(wrong.get("group"), profile="unicast", **{k: v for k, v in wrong.items() if k != "group"})
    with pytest.raises(UsageError, match="needs a group"):
        Channel(None)

    async def main() -> None:
        async with channel("A") as a, channel("B") as b:
            for call, sentence in (
                (a.send(b"x"), "name the receiver"),
                (a.send_many([b"x"]), "name the receiver"),
                (a.send(b"x", to=b.contact, until="stable"), "needs a group"),
                (a.send(b"x", to=b.address, until="stable"), "stable"),
                (a.send(b"x", to="nowhere"), "does not name a process: write host:port"),
                (a.send(b"x", to="192.0.2.1:7000"), "on another machine"),
            ):
                with pytest.raises(UsageError, match=sentence):
                    await call
            with pytest.raises(NotSent, match="does not know the address of"):
                await a.send(b"x", to=b.address)
            with pytest.raises(ChannelClosed, match="has no view"):
                _ = a.view
            assert a.group is None and "without a group" in repr(a)
        with pytest.raises(ChannelClosed):
            await a.send(b"x", to="127.0.0.1:1")

    run(main)


def test_pygroups_testing_refuses_it() -> None:
    async def program(_: Any) -> None:
        async with channel("A"):
            raise AssertionError("it is not built")

    with pytest.raises(NotBuilt, match="runs members of groups only"):
        in_memory(program)


def test_the_stated_memory_grows_with_the_processes_that_send() -> None:
    """Without a group no view counts them: four senders fill a window each at a program that reads nothing."""
    config = Config(window=8 << 20, queue_max=64 << 10)
    part = bytes(60 << 10)

    async def fill(sender: Channel, to: str) -> None:
        with suppress(Timeout):
            while True:
                await sender.send(part, to=to, timeout=1)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            idle, *senders = [await stack.enter_async_context(channel(name, config=config)) for name in "ABCDE"]
            alone = idle.stats()["memory_bound"]
            await asyncio.gather(*[fill(sender, idle.contact) for sender in senders])
            stats = idle.stats()
            assert stats["unread"]["bytes"] > 4 * (8 << 20) - 8 * len(part)
            assert stats["unread"]["bytes"] < stats["memory"]["unread"]
            assert stats["memory_bound"] > 3 * alone
            assert [path for path, row in stats["tables"].items() if row["size"] > (row["limit"] or 50)] == []

    run(main)
