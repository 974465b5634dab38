"""A program whose member was removed from its group cannot overlook it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pygroups import Excluded, Left
from pygroups.core import events as core
from tests.channel_world import Group, in_a_group


def test_iteration_raises_after_an_exclusion_and_again_whenever_it_is_tried(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A")
        channel = reader.channel
        channel._member._tell(lambda event, now: channel._top.up_event(event), core.Excluded("excluded", ""))  # type: ignore[attr-defined]
        with pytest.raises(Excluded, match="open a new channel"):
            await reader.task
        assert reader.events[-1] == Left("excluded", [])
        with pytest.raises(Excluded):
            await anext(channel)
        with pytest.raises(Excluded):
            await anext(channel.batches())

    in_a_group(tmp_path, story)


def test_after_a_leave_of_the_programs_own_iteration_just_ends(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        reader = await group.read("A")
        await asyncio.sleep(0)
        await reader.channel.leave()
        await reader.task
        assert reader.events[-1] == Left("left", [])
        with pytest.raises(StopAsyncIteration):
            await anext(reader.channel)

    in_a_group(tmp_path, story)
