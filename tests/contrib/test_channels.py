"""The layer of Django Channels: the specification of channel layers, and a site of which a worker is killed."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from channels.exceptions import ChannelFull, MessageTooLarge
from django.conf import settings

from pygroups import Config, UsageError
from pygroups.contrib.channels import GroupLayer
from tests.contrib.servers import Service, WebSocket, check_heard, kill_under_load
from tests.patience import patience

Layers = Callable[..., "contextlib.AbstractAsyncContextManager[list[GroupLayer]]"]

if not settings.configured:
    settings.configure(CHANNEL_LAYERS={})


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    """So many layers, each as if it were in a process of its own."""

    @contextlib.asynccontextmanager
    async def opened(number: int, **options: Any) -> AsyncIterator[list[GroupLayer]]:
        made = [GroupLayer("t", discovery=f"dir:{tmp_path}", **options) for _ in range(number)]
        try:
            for layer in made:
                await layer.send("start", {})
            yield made
        finally:
            for layer in made:
                await layer.close()

    return opened


async def nothing_on(layer: GroupLayer, channel: str) -> bool:
    """Whether the channel has no message.  Whatever was sent before is there: this message comes behind it."""
    mark = {"mark": random.random()}
    await layer.send(channel, mark)
    return bool(await layer.receive(channel) == mark)


def test_a_channel_of_a_process_gets_the_messages_of_each_sender_in_order(layers: Layers) -> None:
    async def story() -> None:
        async with layers(2) as (a, b):
            mine, other = await a.new_channel(), await b.new_channel("worker")
            assert mine != other and "!" in mine and other.startswith("worker.")
            await a.group_add("all", mine)
            for number in range(50):  # by name and by group alternately: one order all the same
                await (b.send(mine, {"n": number}) if number % 2 else b.group_send("all", {"n": number}))
            assert [await a.receive(mine) for _ in range(50)] == [{"n": number} for number in range(50)]
            with pytest.raises(UsageError, match="belongs to another process"):
                await a.receive(other)

    asyncio.run(story())


def test_a_message_keeps_its_types_and_a_wrong_one_is_refused(layers: Layers) -> None:
    message = {"type": "a.b", "b": b"\xff", "i": -(2**63), "f": 0.5, "l": [1, [True]], "d": {"é": None}}

    async def story() -> None:
        async with layers(2, config=Config(payload_max=2 << 20)) as (a, b):
            mine = await a.new_channel()
            await b.send(mine, message)
            await b.send(mine, {"large": "x" * 1_000_000})
            assert await a.receive(mine) == message
            assert len((await a.receive(mine))["large"]) == 1_000_000
            with pytest.raises(MessageTooLarge):
                await b.send(mine, {"large": "x" * (3 << 20)})
            for wrong in ({"when": datetime.datetime.now()}, {"list": [object()]}, {1: 2}, "text"):
                with pytest.raises(TypeError):
                    await a.send(mine, wrong)  # type: ignore[arg-type]
            for name in ("no spaces", "ü", "x" * 101, 5):
                with pytest.raises(TypeError):
                    await a.send(name, {})  # type: ignore[arg-type]
                with pytest.raises(TypeError):
                    await a.group_add(name, mine)  # type: ignore[arg-type]

    asyncio.run(story())


def test_a_channel_of_no_process_gives_each_message_to_one_reader(layers: Layers) -> None:
    async def story() -> None:
        async with layers(3) as (a, b, c):
            await a.send("work", {"n": 0})  # nobody reads yet
            assert await b.receive("work") == {"n": 0}
            readers = [asyncio.create_task(layer.receive("work")) for layer in (b, c, c)]
            await nothing_on(b, await b.new_channel())  # by now all know that b and c wait
            await nothing_on(c, await c.new_channel())
            for number in range(3):
                await a.send("work", {"n": number})
            got = [await reader for reader in readers]
            assert sorted(message["n"] for message in got) == [0, 1, 2]
            for number in range(20):
                await a.send("work", {"n": number})
            got = [await layer.receive("work") for layer in (b, c) * 10]
            assert sorted(message["n"] for message in got) == [*range(20)]

    asyncio.run(story())


def test_a_process_that_joins_later_learns_who_reads(layers: Layers, tmp_path: Path) -> None:
    async def story() -> None:
        async with layers(1) as (a,):
            reader = asyncio.create_task(a.receive("work"))
            await nothing_on(a, await a.new_channel())
            b = GroupLayer("t", discovery=f"dir:{tmp_path}")
            await b.send("work", {"n": 1})
            assert await reader == {"n": 1}
            await b.close()

    asyncio.run(story())


def test_a_group_has_the_channels_that_were_added_at_any_process(layers: Layers) -> None:
    async def story() -> None:
        async with layers(2) as (a, b):
            mine, other = await a.new_channel(), await b.new_channel()
            for layer, channel in ((a, mine), (a, other), (b, other), (a, "work"), (b, "work")):
                await layer.group_add("all", channel)
            await b.group_send("all", {"n": 1})
            assert [await a.receive(mine), await b.receive(other), await a.receive("work")] == [{"n": 1}] * 3
            assert await nothing_on(b, other)  # added twice, and there once
            await b.send("work", {"n": 2})
            assert await a.receive("work") == {"n": 2}
            for channel in (mine, other, "work"):
                await b.group_discard("all", channel)
                await b.group_discard("other", channel)
            await a.group_send("all", {"n": 3})
            assert [await nothing_on(layer, channel) for layer, channel in ((a, mine), (b, other))] == [True, True]

    asyncio.run(story())


def test_a_new_group_has_the_memberships_that_its_processes_made_before(layers: Layers) -> None:
    async def story() -> None:
        async with layers(1) as (a,):
            await a.group_add("all", "work")
            await a.close()  # the last one: the group and its memberships are gone
            reader = asyncio.create_task(a.receive("work"))
            async with asyncio.timeout(patience(10)):
                while not reader.done():
                    await a.group_send("all", {"n": 1})
            assert await reader == {"n": 1}

    asyncio.run(story())


def test_a_full_channel_takes_no_more_and_a_group_passes_it_over(layers: Layers) -> None:
    async def story() -> None:
        async with layers(2, capacity=2, channel_capacity={"wide*": 3}) as (a, b):
            mine, wide = await a.new_channel(), await a.new_channel("wide")
            for channel in (mine, wide):
                await a.group_add("all", channel)
            for number in range(5):
                await b.group_send("all", {"n": number})
            assert [await a.receive(wide) for _ in range(3)] == [{"n": 0}, {"n": 1}, {"n": 2}]
            with pytest.raises(ChannelFull):
                await a.send(mine, {"n": 5})
            assert [await a.receive(mine) for _ in range(2)] == [{"n": 0}, {"n": 1}]
            assert await nothing_on(a, mine)
            for number in range(2):
                await a.send("work", {"n": number})
            with pytest.raises(ChannelFull):
                await a.send("work", {"n": 2})

    asyncio.run(story())


def test_messages_and_memberships_expire(layers: Layers) -> None:
    async def story() -> None:
        async with layers(1, expiry=0.2, group_expiry=0.5) as (a,):
            mine = await a.new_channel()
            await a.group_add("all", mine)
            await a.group_add("all", "work")
            await a.send(mine, {"n": 1})
            await a.send("work", {"n": 1})
            await asyncio.sleep(0.4)  # without a bound above: all times may be longer
            assert await nothing_on(a, mine) and await nothing_on(a, "work")
            await asyncio.sleep(0.4)
            await a.group_send("all", {"n": 2})
            assert await nothing_on(a, mine)

    asyncio.run(story())


def test_a_flush_forgets_all_at_all_processes(layers: Layers) -> None:
    async def story() -> None:
        async with layers(2) as (a, b):
            mine = await a.new_channel()
            await a.group_add("all", mine)
            await a.send(mine, {"n": 1})
            await a.send("work", {"n": 1})
            await b.flush()
            await b.group_send("all", {"n": 2})
            assert await nothing_on(a, mine) and await nothing_on(a, "work")

    asyncio.run(story())


def test_threads_and_later_event_loops_use_one_layer(layers: Layers, tmp_path: Path) -> None:
    layer = GroupLayer("t", discovery=f"dir:{tmp_path}")
    mine = asyncio.run(layer.new_channel())
    asyncio.run(layer.send(mine, {"n": 1}))
    assert asyncio.run(layer.receive(mine)) == {"n": 1}
    asyncio.run(layer.close())


def test_a_forked_worker_is_a_member_of_its_own(tmp_path: Path) -> None:
    layer = GroupLayer("t", discovery=f"dir:{tmp_path}", timeout=300)
    mine = asyncio.run(layer.new_channel())
    asyncio.run(layer.send(mine, {"n": 1}))
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            asyncio.run(layer.send(mine, {"n": 2}))
            assert asyncio.run(layer.new_channel()).split(".")[1] != mine.split(".")[1]
            asyncio.run(layer.close())
            os._exit(0)
        os._exit(1)
    assert [asyncio.run(layer.receive(mine)) for _ in range(2)] == [{"n": 1}, {"n": 2}]
    assert os.waitpid(child, 0)[1] == 0
    asyncio.run(layer.close())


def test_wrong_options_are_refused_when_the_layer_is_made() -> None:
    with pytest.raises(UsageError, match="needs the name of a group"):
        GroupLayer()
    with pytest.raises(UsageError, match="need a profile with a state"):
        GroupLayer("g", profile="gossip")
    with pytest.raises(UsageError, match="has no option disco"):
        GroupLayer("g", disco="dir:/x")


# -- a real server


@pytest.mark.slow
def test_the_websockets_of_other_workers_miss_nothing_when_one_is_killed(tmp_path: Path) -> None:
    with Service("tests.contrib.channels_site:app", tmp_path) as service:
        lost, kept = asyncio.run(kill_under_load(service.port, WebSocket))
    orders = [[text for text in one.heard if "hello" not in text] for one in kept]
    assert all(order == orders[0] for order in orders), "two websockets have heard other messages, or another order"
    check_heard(lost, kept)
