"""Channels of one group in one event loop, over real sockets, and what their readers were given."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pygroups import Channel, Event, Left, Message, View
from tests.patience import patience

profile = "total"  # of the channels of a group, unless they ask for another one


@pytest.fixture(params=["total", "fifo"])
def both_profiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs in a group of each profile."""
    monkeypatch.setattr(sys.modules[__name__], "profile", request.param)


class Reader:
    """A channel whose events are read as they come."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.events: list[Event] = []
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for event in self.channel:
            self.events.append(event)

    @property
    def payloads(self) -> list[bytes]:
        return [event.payload for event in self.events if isinstance(event, Message)]

    @property
    def views(self) -> list[View]:
        return [event for event in self.events if isinstance(event, View)]

    @property
    def left(self) -> list[Left]:
        return [event for event in self.events if isinstance(event, Left)]


class Group:
    """Opens channels of one group; they leave when it ends."""

    def __init__(self, stack: AsyncExitStack, folder: Path) -> None:
        self.stack = stack
        self.folder = folder

    def channel(self, name: str, **options: Any) -> Channel:
        """A channel that has not joined."""
        return Channel("g", name=name, **{"profile": profile, "discovery": f"dir:{self.folder}"} | options)

    async def joined(self, name: str, **options: Any) -> Channel:
        """A channel that nobody reads."""
        return await self.stack.enter_async_context(self.channel(name, **options))

    async def read(self, name: str, **options: Any) -> Reader:
        """A channel with a reader."""
        return Reader(await self.joined(name, **options))


@asynccontextmanager
async def group_in(folder: Path) -> AsyncIterator[Group]:
    async with AsyncExitStack() as stack:
        yield Group(stack, folder / "groups")


def in_a_group(folder: Path, story: Callable[[Group], Awaitable[None]], seconds: float = 60) -> None:
    """Run `story` in an event loop of its own."""

    async def main() -> None:
        async with asyncio.timeout(patience(seconds)), group_in(folder) as group:
            await story(group)

    asyncio.run(main())


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(patience(20)):
        while not condition():
            await asyncio.sleep(0.002)
