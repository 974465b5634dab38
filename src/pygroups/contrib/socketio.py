"""Client managers for python-socketio: the servers of a service are the members of a group, without a Redis.

    server = socketio.AsyncServer(client_manager=AsyncGroupManager("mychat"), async_mode="asgi")

An `emit` goes to the clients of this server at once, and to those of the others by one multicast.  So the clients
of all other servers get the emits of all senders in one order.  Guide: docs/guides/blocks.md, *With python-socketio*.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields
from typing import Any, Final

from socketio.async_pubsub_manager import AsyncPubSubManager
from socketio.pubsub_manager import PubSubManager

from pygroups.channel import Channel, Message
from pygroups.channel.options import Options, made
from pygroups.sync.background import Background, background
from pygroups.sync.kept import Kept

TIMEOUT: Final = 30.0  # seconds, of a message and of the join
BATCHES_MAX: Final = 16  # of messages that the server has not handled; then all senders wait for it


class AsyncGroupManager(AsyncPubSubManager):  # type: ignore[misc]
    """The client manager of a `socketio.AsyncServer`.

    `group`: the name of the pygroups group, another one for each service of a machine.  `write_only`, `logger` and
    `json` are those of every manager of socketio; a write-only one emits from a process that is no server.  All other
    options are those of pygroups.Channel, as `bind`, `discovery` and `secret` for several machines.  `rejoin` is true
    by default.  The manager joins the group with its first use, and leaves it at the end of the process.
    """

    name = "pygroups"

    def __init__(
        self, group: str, *, write_only: bool = False, logger: Any = None, json: Any = None, **options: Any
    ) -> None:
        super().__init__(channel=group, write_only=write_only, logger=logger, json=json)
        self._member = Member(group, **options)

    async def _publish(self, data: dict[str, Any]) -> None:
        payload = self.json.dumps(data).encode()
        await self._member.loop.awaited(self._member.publish(payload))

    async def _listen(self) -> AsyncIterator[bytes]:
        while True:
            for payload in await self._member.loop.awaited(self._member.heard()):
                yield payload


class GroupManager(PubSubManager):  # type: ignore[misc]
    """The client manager of a `socketio.Server`, with threads; and, with `write_only=True`, for programs that emit
    without an event loop.  The parameters are those of AsyncGroupManager."""

    name = "pygroups"

    def __init__(
        self, group: str, *, write_only: bool = False, logger: Any = None, json: Any = None, **options: Any
    ) -> None:
        super().__init__(channel=group, write_only=write_only, logger=logger, json=json)
        self._member = Member(group, **options)

    def _publish(self, data: dict[str, Any]) -> None:
        payload = self.json.dumps(data).encode()
        self._member.loop.run(self._member.publish(payload))

    def _listen(self) -> Iterator[bytes]:
        while True:
            yield from self._member.loop.run(self._member.heard())


class Member:
    """The membership of this process.  The coroutines run in the background loop."""

    def __init__(self, group: str, *, rejoin: bool = True, **options: Any) -> None:
        self._options = made("GroupManager", Options, group, rejoin=rejoin, **options)
        self._begin()

    def _begin(self) -> None:
        self._kept = Kept(self._made, self._read, TIMEOUT)
        self._heard: asyncio.Queue[list[bytes]] | None = None  # None: nobody listens

    @property
    def loop(self) -> Background:
        """The background loop of this process.  After a fork the membership is a new one."""
        if self._kept.loop is not background():
            self._begin()
        return self._kept.loop

    async def publish(self, payload: bytes) -> None:
        """Send to all members."""
        await (await self._kept.member()).send(payload, timeout=TIMEOUT)

    async def heard(self) -> list[bytes]:
        """The next messages."""
        if self._heard is None:
            self._heard = asyncio.Queue(BATCHES_MAX)
        await self._kept.member()
        return await self._heard.get()

    def _made(self) -> Channel:
        names = [field.name for field in fields(self._options)]
        return Channel(**{name: getattr(self._options, name) for name in names})

    async def _read(self, channel: Channel) -> None:
        """Read all, also if no server listens here: it has no clients yet, and the others must not wait."""
        async for events in channel.batches():
            messages = [event.payload for event in events if isinstance(event, Message)]
            if messages and self._heard is not None:
                await self._heard.put(messages)
