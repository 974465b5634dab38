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
import itertools
import logging
import math
import re
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from channels.exceptions import ChannelFull, MessageTooLarge
from channels.layers import BaseChannelLayer

from pygroups.blocks import Blocks, ReplicatedDict
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


class Sent(msgspec.Struct, array_like=True, tag="s"):
    """For all channels of the group `to`, or for the channel `to` of one worker."""

    to: str
    is_group: bool
    body: bytes


class Want(msgspec.Struct, array_like=True, tag="w"):
    """The sender waits for a message on this channel, which belongs to no worker."""

    channel: str


class Given(msgspec.Struct, array_like=True, tag="n"):
    """A message on a channel that belongs to no worker, for the one worker that gets it; `left` seconds remain."""

    channel: str
    left: float
    body: bytes


class Membership(msgspec.Struct, array_like=True, tag="m"):
    """For the worker of `channel`."""

    group: str
    channel: str
    is_member: bool


class Flush(msgspec.Struct, array_like=True, tag="f"):
    """For all workers: forget all messages and memberships."""


Frame = Sent | Want | Given | Membership | Flush
_decoder: Final = msgspec.msgpack.Decoder(Frame)
_numbers: Final = itertools.count()


class Held(NamedTuple):
    """A message that waits for its reader.  The one with the lowest deadline is the next one."""

    deadline: float  # in the time of the event loop
    number: int
    body: bytes


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
        await self._run(lambda worker: worker.set_member(group, channel, is_member))

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
        worker = self._here()
        await worker.kept.loop.awaited(worker.kept.leave())

    def _here(self) -> Worker:
        """The worker of this process, also after a fork."""
        if self._worker is None or self._worker.kept.loop is not background():
            self._worker = Worker(self)
        return self._worker

    async def _run(self, work: Callable[[Worker], Coroutine[Any, Any, Result]]) -> Result:
        worker = self._here()

        async def run() -> Result:
            await worker.kept.member()
            return await work(worker)

        return await worker.kept.loop.awaited(run())


class Box(asyncio.PriorityQueue[Held]):
    """The messages of one channel, at this worker."""

    readers = 0  # that wait, or have not taken their message yet

    @property
    def surplus(self) -> int:
        """The messages that are left when each reader here has one; below 0: the readers that wait."""
        return self.qsize() - self.readers

    def forget(self, until: float) -> None:
        """Forget the messages that expire before `until`."""
        while not self.empty():
            held = self.get_nowait()
            if held.deadline > until:
                self.put_nowait(held)
                return


class Worker:
    """The channels and memberships of one process.  All but `new_channel` runs in the background loop."""

    def __init__(self, layer: GroupLayer) -> None:
        self.kept = Kept(self._connect, self._read, layer.timeout)
        self._layer = layer
        self._id = secrets.token_hex(8)
        self._made = 0  # channels
        self._boxes: dict[str, Box] = {}
        self._next_sweep = 0.0
        self._groups: dict[str, dict[str, float]] = {}  # the own channels in each group, and their ends
        self._wanted: dict[str, list[Address]] = {}  # the workers that wait for a message of a channel
        self._shared: dict[tuple[str, str], float] = {}  # memberships of channels without a worker that this one made
        self._shared_groups: ReplicatedDict[tuple[str, str], bool]
        self._events: AsyncIterator[Event]
        self._tasks: set[asyncio.Task[None]] = set()

    # -- membership in the pygroups group

    def _connect(self) -> Blocks:
        blocks = Blocks(**self._layer.options.for_channel())
        self._shared_groups = ReplicatedDict(blocks, "groups", tuple[str, str], bool)
        self._events = blocks.events()  # from the first one on
        return blocks

    async def _read(self, blocks: Blocks) -> None:
        async for event in self._events:
            if isinstance(event, View):
                self._on_view(event.members)
            elif isinstance(event, Message):
                self._on_frame(_decoder.decode(event.payload), event.sender, blocks.is_mine(event.sender))

    def _on_view(self, members: tuple[Address, ...]) -> None:
        """A new worker learns of the channels that this one reads; those that are gone get nothing more."""
        here = {channel: [one for one in wanting if one in members] for channel, wanting in self._wanted.items()}
        self._wanted = {channel: wanting for channel, wanting in here.items() if wanting}
        for channel, box in self._boxes.items():
            if box.surplus < 0 and not self._owns(channel):
                self._start(self._send(Want(channel)))
        self._start(self._repeat_shared())

    def _on_frame(self, frame: Frame, sender: Address, is_mine: bool) -> None:
        match frame:
            case Sent(to, is_group, body):
                if is_group:
                    self._on_group(to, body, is_mine)
                elif self._owns(to):
                    self._put(to, body)
            case Want(channel):
                if not is_mine:
                    self._on_want(channel, sender)
            case Given(channel, left, body):
                self._put(channel, body, left)
                if self._box(channel).surplus < 0:  # one more reader waits
                    self._start(self._send(Want(channel)))
            case Membership(group, channel, is_member):
                if self._owns(channel):
                    self._set_own(group, channel, is_member)
            case Flush():
                for box in self._boxes.values():
                    box.forget(math.inf)
                self._groups.clear()
                self._shared.clear()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        async def quietly() -> None:
            with contextlib.suppress(Error, TimeoutError):
                await work

        task = asyncio.get_running_loop().create_task(quietly())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, frame: Frame, **how: Any) -> None:
        blocks = await self.kept.member()
        await blocks.channel.send(msgspec.msgpack.encode(frame), timeout=self._layer.timeout, **how)

    # -- sending

    async def send(self, channel: str, body: bytes) -> None:
        if OWNED.fullmatch(channel) is None:
            is_taken = self._put(channel, body)
        elif is_taken := not (self._owns(channel) and self._box(channel).full()):
            is_taken = await self._multicast(Sent(channel, False, body))
        if not is_taken:
            raise ChannelFull(channel)

    async def send_to_group(self, group: str, body: bytes) -> None:
        if not await self._multicast(Sent(group, True, body)):
            _log.warning("the workers take no messages: one to %s is dropped", group)

    async def _multicast(self, message: Sent) -> bool:
        """Whether the group took the message."""
        try:
            await self._send(message)
        except NotSent:
            return False
        except UsageError as error:
            raise MessageTooLarge(str(error)) from None
        return True

    def _on_group(self, group: str, body: bytes, is_mine: bool) -> None:
        channels = self._groups.get(group, {})
        for channel, end in [*channels.items()]:
            if end > _now():
                self._put(channel, body)
            else:
                del channels[channel]
        if is_mine:  # one worker puts the message into channels that belong to none: its sender
            for shared, channel in self._shared_groups:
                if shared == group:
                    self._put(channel, body)

    # -- receiving

    def new_channel(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix.rstrip('.')}.{self._id}.{self._made}!"

    def _owns(self, channel: str) -> bool:
        owned = OWNED.fullmatch(channel)
        return owned is not None and owned[1] == self._id

    async def receive(self, channel: str) -> bytes:
        is_own = self._owns(channel)
        if "!" in channel and not is_own:
            raise UsageError(f"channel {channel!r} belongs to another process: only the one that made it reads it")
        box = self._box(channel)
        box.readers += 1
        try:
            while True:
                if box.surplus < 0 and not is_own:
                    await self._send(Want(channel))
                if (held := await box.get()).deadline > _now():
                    return held.body
        finally:
            box.readers -= 1
            self._share(channel, box)

    def _box(self, channel: str) -> Box:
        """The box of a channel.  Now and then, expired messages and boxes without a use go."""
        if _now() >= self._next_sweep:
            self._next_sweep = _now() + self._layer.expiry / SWEEPS
            for box in self._boxes.values():
                box.forget(_now())
            self._boxes = {name: box for name, box in self._boxes.items() if box.readers or not box.empty()}
        if channel not in self._boxes:
            self._boxes[channel] = Box(self._layer.get_capacity(channel))
        return self._boxes[channel]

    def _put(self, channel: str, body: bytes, left: float | None = None) -> bool:
        """Whether the channel has room for the message, which expires in `left` seconds."""
        box = self._box(channel)
        if box.full():
            return False
        box.put_nowait(Held(_now() + (self._layer.expiry if left is None else left), next(_numbers), body))
        self._share(channel, box)
        return True

    # -- channels that belong to no worker: a message waits at its sender, and one worker that reads the channel gets it

    def _on_want(self, channel: str, member: Address) -> None:
        wanting = self._wanted.setdefault(channel, [])
        if member not in wanting:
            wanting.append(member)
        if len(self._wanted) > WANTED_MAX:
            del self._wanted[next(iter(self._wanted))]
        self._share(channel, self._box(channel))

    def _share(self, channel: str, box: Box) -> None:
        """Give messages that no reader here waits for to the workers that want them."""
        while box.surplus > 0 and channel in self._wanted:
            held = box.get_nowait()
            if (left := held.deadline - _now()) > 0:
                member = self._wanted[channel].pop(0)
                if not self._wanted[channel]:
                    del self._wanted[channel]
                self._start(self._give(Given(channel, left, held.body), member))

    async def _give(self, given: Given, member: Address) -> None:
        try:
            await self._send(given, to=member)
        except (NotSent, UsageError):  # it has left
            self._put(given.channel, given.body, given.left)

    # -- groups

    async def set_member(self, group: str, channel: str, is_member: bool) -> None:
        if OWNED.fullmatch(channel) is None:
            await self._set_shared((group, channel), is_member)
        elif self._owns(channel):
            self._set_own(group, channel, is_member)
        else:  # delivered here: what any worker sends from now on comes later
            await self._send(Membership(group, channel, is_member), until="delivered")

    def _set_own(self, group: str, channel: str, is_member: bool) -> None:
        channels = self._groups.setdefault(group, {})
        if is_member:
            channels[channel] = _now() + self._layer.group_expiry
        else:
            channels.pop(channel, None)
        if not channels:
            del self._groups[group]

    async def _set_shared(self, key: tuple[str, str], is_member: bool) -> None:
        if is_member:
            self._shared[key] = _now() + self._layer.group_expiry
            await self._shared_groups.set(key, True, ttl=self._layer.group_expiry, timeout=self._layer.timeout)
        else:
            self._shared.pop(key, None)
            await self._shared_groups.delete(key, timeout=self._layer.timeout)

    async def _repeat_shared(self) -> None:
        """Repeat the memberships that a lost merge or a new group has forgotten."""
        for key, end in [*self._shared.items()]:
            if key not in self._shared_groups and end > _now():
                await self._shared_groups.set(key, True, ttl=end - _now())

    async def flush(self) -> None:
        await self._shared_groups.clear(timeout=self._layer.timeout)
        await self._send(Flush(), until="delivered")


def _now() -> float:
    return asyncio.get_running_loop().time()


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
