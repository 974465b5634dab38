"""A channel layer for Django Channels: the workers of a site are the members of a group, and no server is beside them.

    CHANNEL_LAYERS = {
        "default": {"BACKEND": "pygroups.contrib.channels.GroupLayer", "CONFIG": {"group": "mysite"}},
    }

Each worker keeps the group memberships of its own consumers, and a message to a group is one multicast.  So all workers
hand the messages of all senders over in one order, a membership costs no message, and the messages and memberships of
a worker that ends concern no other worker.  Guide: docs/guides/blocks.md, *With Django Channels*.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from channels.exceptions import ChannelFull, MessageTooLarge
from channels.layers import BaseChannelLayer

from pygroups.blocks import Blocks, ReplicatedDict, Requests, Resync
from pygroups.blocks.options import BlocksOptions
from pygroups.channel import Event, Message, View
from pygroups.channel.options import made
from pygroups.core.address import Address
from pygroups.core.errors import Error, NotSent, UsageError
from pygroups.sync.background import background
from pygroups.sync.kept import Kept

Result = TypeVar("Result")
TIMEOUT: Final = 30.0  # seconds, of an operation: for the first one, which joins the group, too
SWEEPS: Final = 4  # in the time after which a message expires
WANTED_MAX: Final = 10_000  # channels that other workers read; the oldest wish is forgotten, and comes again
OWNED: Final = re.compile(r"[^!]*\.([0-9a-f]{16})\.\d+!")  # the names that new_channel() makes
PLAIN: Final = (bytes, str, int, float, bool, type(None))
_log: Final = logging.getLogger("pygroups.contrib.channels")


class ToGroup(msgspec.Struct, array_like=True, tag="g"):
    """For all channels of a group."""

    group: str
    body: bytes


class ToChannel(msgspec.Struct, array_like=True, tag="c"):
    """For a channel of one worker."""

    channel: str
    body: bytes


class Want(msgspec.Struct, array_like=True, tag="w"):
    """The sender waits for a message on each of these channels, which belong to no worker."""

    channels: list[str]


class Given(msgspec.Struct, array_like=True, tag="n"):
    """A message on a channel that belongs to no worker, for the one worker that gets it; `left` seconds remain."""

    channel: str
    left: float
    body: bytes


class Membership(msgspec.Struct, array_like=True, tag="m"):
    """A request to the worker of `channel`."""

    group: str
    channel: str
    is_member: bool


class Flush(msgspec.Struct, array_like=True, tag="f"):
    """A request to all workers: forget all messages and memberships."""


class Held(NamedTuple):
    """A message that waits for its reader."""

    deadline: float  # in the time of the event loop
    body: bytes


_decoder: Final = msgspec.msgpack.Decoder(ToGroup | ToChannel | Want | Given)


class GroupLayer(BaseChannelLayer):  # type: ignore[misc]
    """The channel layer of Django Channels on a pygroups group, with the extensions "groups" and "flush".

    `group`: the name of the pygroups group, another one for each site of a machine.  `expiry`, in seconds, `capacity`,
    in messages, `channel_capacity` and `group_expiry`, in seconds, are those of the specification of channel layers.
    `timeout`, in seconds, limits the wait of a `send` for the group.  All other options are those of pygroups.Blocks,
    as `bind`, `discovery` and `secret` for several machines.  `rejoin` is true by default.

    The layer joins the group with its first use, in a thread of its own, and leaves it at the end of the process.  Any
    event loop and any thread (`async_to_sync`) can use it.  `send` raises ChannelFull if the channel is full, as far as
    this worker can see it, or if the group takes no message within `timeout`; MessageTooLarge for more than the
    `payload_max` of the Config; TypeError for a message that has other types than the specification allows.
    """

    extensions = ("groups", "flush")

    def __init__(
        self,
        group: str | None = None,
        *,
        expiry: float = 60,
        group_expiry: float = 86_400,
        capacity: int = 100,
        channel_capacity: dict[Any, int] | None = None,
        timeout: float = TIMEOUT,
        rejoin: bool = True,
        **options: Any,
    ) -> None:
        if group is None:
            raise UsageError("GroupLayer needs the name of a group: CONFIG = {'group': 'mysite'}")
        super().__init__(expiry=expiry, capacity=capacity)
        self.channel_capacity = self.compile_capacities(channel_capacity or {})
        self.group_expiry = group_expiry
        self.timeout = timeout
        self.options = made("GroupLayer", BlocksOptions, group, rejoin=rejoin, **options)
        self._worker: Worker | None = None

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        """Send a message to one channel.  Raises ChannelFull and MessageTooLarge."""
        self.require_valid_channel_name(channel)
        body = _encoded(message)
        await self._run(lambda worker: worker.send(channel, body))

    async def receive(self, channel: str) -> dict[str, Any]:
        """The next message of a channel.  One reader gets it."""
        self.require_valid_channel_name(channel)
        message: dict[str, Any] = msgspec.msgpack.decode(await self._run(lambda worker: worker.receive(channel)))
        return message

    async def new_channel(self, prefix: str = "specific") -> str:
        """The name of a new channel that this process reads."""
        return self._here().new_channel(prefix)

    async def group_add(self, group: str, channel: str) -> None:
        """From now on messages to the group go to this channel too."""
        await self._set_member(group, channel, True)

    async def group_discard(self, group: str, channel: str) -> None:
        """From now on messages to the group do not go to this channel."""
        await self._set_member(group, channel, False)

    async def _set_member(self, group: str, channel: str, is_member: bool) -> None:
        self.require_valid_group_name(group)
        self.require_valid_channel_name(channel)
        await self._run(lambda worker: worker.set_member(Membership(group, channel, is_member)))

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Send a message to all channels of the group.  A channel that is full does not get it."""
        self.require_valid_group_name(group)
        body = _encoded(message)
        await self._run(lambda worker: worker.send_to_group(group, body))

    async def flush(self) -> None:
        """Forget all messages and all memberships, at all workers."""
        await self._run(lambda worker: worker.flush())

    async def close(self) -> None:
        """Leave the pygroups group.  The next use joins it again."""
        await self._run(lambda worker: worker.kept.leave())

    def _here(self) -> Worker:
        """The worker of this process, also after a fork."""
        if self._worker is None or self._worker.kept.loop is not background():
            self._worker = Worker(self)
        return self._worker

    async def _run(self, work: Callable[[Worker], Coroutine[Any, Any, Result]]) -> Result:
        worker = self._here()
        return await worker.kept.loop.awaited(work(worker))


class Worker:
    """The channels and memberships of one process.  All but `new_channel` runs in the background loop."""

    def __init__(self, layer: GroupLayer) -> None:
        self.kept = Kept(self._connect, self._read, layer.timeout)
        self.dropped = 0  # messages for full channels
        self._layer = layer
        self._id = secrets.token_hex(8)
        self._made = 0  # channels
        self._queues: dict[str, deque[Held]] = {}  # none is empty
        self._readers: dict[str, deque[asyncio.Future[Held]]] = {}  # that wait
        self._groups: dict[str, dict[str, float]] = {}  # the own channels in each group, and their ends
        self._wanted: dict[str, dict[Address, None]] = {}  # the workers that wait for a message of a channel
        self._shared: dict[tuple[str, str], float] = {}  # memberships of channels without a worker that this one made
        self._shared_groups: ReplicatedDict[tuple[str, str], bool]
        self._requests: Requests
        self._events: AsyncIterator[Event]
        self._members: tuple[Address, ...] = ()
        self._tasks: set[asyncio.Task[None]] = set()

    # -- membership in the pygroups group

    def _connect(self) -> Blocks:
        blocks = Blocks(**self._layer.options.for_channel())
        self._shared_groups = ReplicatedDict(blocks, "groups", tuple[str, str], bool)
        self._requests = Requests(blocks, "layer", self._on_request, request=Membership | Flush)
        self._events = blocks.events()  # from the first one on
        return blocks

    async def _read(self, blocks: Blocks) -> None:
        try:
            self._start(self._keep_shared())
            self._start(self._sweep())
            async for event in self._events:
                self._on_event(blocks, event)
        finally:
            for task in [*self._tasks]:
                task.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_event(self, blocks: Blocks, event: Event) -> None:
        if isinstance(event, View):
            self._on_view(blocks, event.members)
        elif isinstance(event, Message):
            message = _decoder.decode(event.payload)
            if isinstance(message, ToGroup):
                self._on_group(message, blocks.is_mine(event.sender))
            elif isinstance(message, ToChannel):
                if self._owns(message.channel):
                    self._put(message.channel, self._held(message.body))
            elif isinstance(message, Given):
                self._put(message.channel, self._held(message.body, message.left))
                if any(not reader.done() for reader in self._readers.get(message.channel, ())):  # one more waits
                    self._want(blocks, [message.channel])
            elif not blocks.is_mine(event.sender):
                for channel in message.channels:
                    self._on_want(channel, event.sender)

    def _on_view(self, blocks: Blocks, members: tuple[Address, ...]) -> None:
        """A new worker learns of the channels that this one reads; those that are gone get nothing more."""
        is_new = not {*members} <= {*self._members}
        self._members = members
        for channel, wanting in [*self._wanted.items()]:
            self._wanted[channel] = {member: None for member in wanting if member in members}
            if not self._wanted[channel]:
                del self._wanted[channel]
        wants = [channel for channel in self._readers if not self._owns(channel)]
        if wants and is_new:
            self._want(blocks, wants)

    def _want(self, blocks: Blocks, channels: list[str]) -> None:
        self._start(_quietly(blocks.channel.send(_bytes(Want(channels)))))

    # -- sending

    async def send(self, channel: str, body: bytes) -> None:
        blocks = await self.kept.member()
        if OWNED.fullmatch(channel) is None:
            is_full = not self._put(channel, self._held(body))
        elif not (is_full := self._owns(channel) and self._is_full(channel)):
            try:
                await self._multicast(blocks, ToChannel(channel, body))
            except NotSent:
                is_full = True
        if is_full:
            raise ChannelFull(channel)

    async def send_to_group(self, group: str, body: bytes) -> None:
        blocks = await self.kept.member()
        try:
            await self._multicast(blocks, ToGroup(group, body))
        except NotSent as error:
            _log.warning("a message to %s is dropped: %s", group, error)

    async def _multicast(self, blocks: Blocks, message: ToGroup | ToChannel | Want) -> None:
        try:
            await blocks.channel.send(_bytes(message), timeout=self._layer.timeout)
        except UsageError as error:
            raise MessageTooLarge(str(error)) from None

    def _on_group(self, message: ToGroup, is_mine: bool) -> None:
        channels, now = self._groups.get(message.group, {}), _now()
        for channel in [channel for channel, end in channels.items() if end <= now]:
            del channels[channel]
        for channel in channels:
            self._put(channel, self._held(message.body))
        if is_mine and self._shared_groups:  # one worker puts the message into channels that belong to none: its sender
            for group, channel in self._shared_groups:
                if group == message.group:
                    self._put(channel, self._held(message.body))

    # -- receiving

    def new_channel(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix.rstrip('.')}.{self._id}.{self._made}!"

    def _owns(self, channel: str) -> bool:
        owned = OWNED.fullmatch(channel)
        return owned is not None and owned[1] == self._id

    async def receive(self, channel: str) -> bytes:
        if "!" in channel and not self._owns(channel):
            raise UsageError(f"channel {channel!r} belongs to another process: only the one that made it reads it")
        blocks = await self.kept.member()
        while (held := self._taken(channel)) is not None:
            if held.deadline > _now():
                return held.body
        reader: asyncio.Future[Held] = asyncio.get_running_loop().create_future()
        readers = self._readers.setdefault(channel, deque())
        readers.append(reader)
        try:
            if not self._owns(channel):
                await self._multicast(blocks, Want([channel]))
            return (await reader).body
        except asyncio.CancelledError:
            if reader.done() and not reader.cancelled():
                self._put_back(channel, reader.result())
            raise
        finally:
            if reader in readers:
                readers.remove(reader)
            if not readers and self._readers.get(channel) is readers:
                del self._readers[channel]

    def _taken(self, channel: str) -> Held | None:
        """The next message of the channel, which goes from its queue."""
        queue = self._queues.get(channel)
        if queue is None:
            return None
        held = queue.popleft()
        if not queue:
            del self._queues[channel]
        return held

    def _put(self, channel: str, held: Held) -> bool:
        """Give a message to a reader here, or to a worker that wants it, or keep it.  False: the channel is full."""
        for reader in self._readers.get(channel, ()):
            if not reader.done():
                reader.set_result(held)
                return True
        if channel in self._wanted:
            self._give(channel, held, self._next_wanting(channel))
            return True
        if self._is_full(channel):
            self.dropped += 1
            return False
        self._queues.setdefault(channel, deque()).append(held)
        return True

    def _put_back(self, channel: str, held: Held) -> None:
        """A reader was canceled when it had just got this message."""
        if channel in self._queues or not self._readers.get(channel):
            self._queues.setdefault(channel, deque()).appendleft(held)
        else:
            self._put(channel, held)

    def _is_full(self, channel: str) -> bool:
        capacity: int = self._layer.get_capacity(channel)
        return len(self._queues.get(channel, ())) >= capacity

    def _held(self, body: bytes, left: float | None = None) -> Held:
        return Held(_now() + (self._layer.expiry if left is None else left), body)

    async def _sweep(self) -> None:
        """Forget expired messages, also of channels that nobody reads any more."""
        while True:
            await asyncio.sleep(self._layer.expiry / SWEEPS)
            for channel, queue in [*self._queues.items()]:
                while queue and queue[0].deadline <= _now():
                    queue.popleft()
                if not queue:
                    del self._queues[channel]

    # -- channels that belong to no worker: a message waits at its sender, and one worker that reads the channel gets it

    def _on_want(self, channel: str, member: Address) -> None:
        while (held := self._taken(channel)) is not None:
            if held.deadline > _now():
                self._give(channel, held, member)
                return
        self._wanted.setdefault(channel, {})[member] = None
        if len(self._wanted) > WANTED_MAX:
            del self._wanted[next(iter(self._wanted))]

    def _next_wanting(self, channel: str) -> Address:
        wanting = self._wanted[channel]
        member = next(iter(wanting))
        del wanting[member]
        if not wanting:
            del self._wanted[channel]
        return member

    def _give(self, channel: str, held: Held, member: Address) -> None:
        async def give() -> None:
            blocks = await self.kept.member()
            try:
                await blocks.channel.send(_bytes(Given(channel, held.deadline - _now(), held.body)), to=member)
            except (NotSent, UsageError):  # it has left
                self._put(channel, held)

        self._start(_quietly(give()))

    # -- groups

    async def set_member(self, what: Membership) -> None:
        blocks = await self.kept.member()
        owned = OWNED.fullmatch(what.channel)
        if owned is None:
            await self._set_shared(what)
        elif owned[1] == self._id:
            self._set_own(what)
        elif len(blocks.members) > 1:
            await self._requests.call_all(what, timeout=self._layer.timeout)

    def _set_own(self, what: Membership) -> None:
        channels = self._groups.setdefault(what.group, {})
        channels.pop(what.channel, None)
        if what.is_member:
            channels[what.channel] = _now() + self._layer.group_expiry
        elif not channels:
            del self._groups[what.group]

    async def _set_shared(self, what: Membership) -> None:
        key, timeout = (what.group, what.channel), self._layer.timeout
        if what.is_member:
            self._shared[key] = _now() + self._layer.group_expiry
            await self._shared_groups.set(key, True, ttl=self._layer.group_expiry, timeout=timeout)
        else:
            self._shared.pop(key, None)
            await self._shared_groups.delete(key, timeout=timeout)

    async def _keep_shared(self) -> None:
        """Repeat the memberships that a lost merge or a new group has forgotten."""
        changes = self._shared_groups.changes()
        await self._repeat_shared()
        async for change in changes:
            if isinstance(change, Resync):
                await self._repeat_shared()

    async def _repeat_shared(self) -> None:
        for key, end in [*self._shared.items()]:
            if key not in self._shared_groups and end > _now():
                await _quietly(self._shared_groups.set(key, True, ttl=end - _now()))

    async def _on_request(self, request: Membership | Flush, caller: Address) -> None:
        if isinstance(request, Flush):
            self._queues.clear()
            self._groups.clear()
            self._shared.clear()
        elif self._owns(request.channel):
            self._set_own(request)

    async def flush(self) -> None:
        await self.kept.member()
        await self._shared_groups.clear(timeout=self._layer.timeout)
        await self._requests.call_all(Flush(), timeout=self._layer.timeout)


async def _quietly(work: Awaitable[object]) -> None:
    with contextlib.suppress(Error, TimeoutError):
        await work


def _now() -> float:
    return asyncio.get_running_loop().time()


def _bytes(message: ToGroup | ToChannel | Want | Given) -> bytes:
    return msgspec.msgpack.encode(message)


def _encoded(message: dict[str, Any]) -> bytes:
    if not isinstance(message, dict):
        raise TypeError("a message must be a dict")
    _check_plain(message)
    return msgspec.msgpack.encode(message)


def _check_plain(value: Any) -> None:
    """Raise TypeError for a type that would come as another one: a date as its text, say."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{key!r} cannot be a key in a message: use a str")
            _check_plain(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_plain(item)
    elif not isinstance(value, PLAIN):
        raise TypeError(f"{value!r} cannot be sent: use bytes, str, int, float, bool, None, lists and dicts")
