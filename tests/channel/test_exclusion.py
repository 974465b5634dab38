"""Whoever is removed from its group cannot overlook it."""

from __future__ import annotations

import asyncio

import pytest

from pygroups import Channel, Excluded, Happening, Left
from pygroups.core import events as core
from pygroups.testing import Group, run

events: list[Happening] = []


async def drain(channel: Channel) -> None:
    events.clear()
    async for event in channel:
        events.append(event)


def test_iteration_raises_after_an_exclusion_and_again_whenever_it_is_tried() -> None:
    async def story(group: Group) -> None:
        async with group.channel("g", name="A") as channel:
            task = asyncio.create_task(drain(channel))
            await asyncio.sleep(1)
            channel._member._tell(
                lambda event, now: channel._member.stack.layers[0].up_event(event), core.Excluded("excluded", "")
            )
            with pytest.raises(Excluded, match="open a new channel"):
                await task
            assert events[-1] == Left("excluded", [])
            with pytest.raises(Excluded):
                await anext(channel)
            with pytest.raises(Excluded):
                await anext(channel.batches())

    run(story)


def test_after_a_leave_of_ones_own_iteration_just_ends() -> None:
    async def story(group: Group) -> None:
        async with group.channel("g", name="A") as channel:
            task = asyncio.create_task(drain(channel))
            await asyncio.sleep(1)
        await task
        assert events[-1] == Left("left", [])
        with pytest.raises(StopAsyncIteration):
            await anext(channel)

    run(story)
