"""A dict that all members of the group have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, Literal, Self, TypeVar, cast, overload

import msgspec

from pygroups.core.errors import UsageError

from .blocks import Blocks
from .dict_machine import Clear, DictMachine, Drop, Put, Swap
from .news import Changed, News
from .options import ORDERED
from .stream import Stream
from .wire import BlockKey, encode

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")
Until = Literal["read", "stable"] | None
TTL_MAX: Final = 366 * 24 * 3600.0  # seconds


class Change(msgspec.Struct, Generic[K, V], frozen=True):
    """`key` has a new value, None without one; `old` is the value before, None without one."""

    key: K
    old: V | None
    new: V | None


class Resync(msgspec.Struct, frozen=True):
    """The whole dict was replaced, because this side lost a merge or this member joined again: read it again."""


class ReplicatedDict(Mapping[K, V]):
    """A dict with the same items at all members.  Reading is local and immediate, and writing is a message in the one
    order of the group.

    `name` is the name of the dict in the group; a group has any number of them.  `key` and `value` are the types of
    its keys and values: all that msgspec encodes, such as str, dataclasses, Structs and lists of these; by default any
    plain value.  A read gives a new object, so changing it does not change the dict.  Keys are equal if they have the
    same type and value: 1, 1.0 and True are three keys.

    At all members of a view the dicts are equal after the same messages.  Each write returns when this process has
    made the change, so a process reads its own writes.  In a crash no write is lost that `until="stable"` confirmed;
    in profile "uniform" none that returned.  In a network split with "total" both sides write, and with the merge all
    take the dict of the side that `on_merge` chooses; with "uniform" only the side with a majority writes.

    Raises UsageError in a profile without one order, for a wrong name, and when a read finds a value of another type.
    """

    @overload
    def __init__(self: ReplicatedDict[Any, Any], blocks: Blocks, name: str) -> None: ...

    @overload
    def __init__(self: ReplicatedDict[K, V], blocks: Blocks, name: str, key: type[K], value: type[V]) -> None: ...

    @overload
    def __init__(self, blocks: Blocks, name: str, key: Any, value: Any) -> None: ...

    def __init__(self, blocks: Blocks, name: str, key: Any = Any, value: Any = Any) -> None:
        blocks.check_block("a ReplicatedDict", name, ORDERED)
        self.name = name
        self._blocks = blocks
        self._key: BlockKey = ("dict", name)
        self._keys = _decoder(key, "key")
        self._values = _decoder(value, "value")

    def __repr__(self) -> str:
        return f"<ReplicatedDict {self.name!r} of {len(self)}>"

    # -- reading

    def __getitem__(self, key: K) -> V:
        """The value of `key` as this process has it now.  Raises KeyError without one."""
        machine = self._machine
        entry = None if machine is None else machine.entries.get(encode(key))
        if entry is None:
            raise KeyError(key)
        return cast(V, self._decoded(self._values, entry.value))

    def __contains__(self, key: object) -> bool:
        machine = self._machine
        return machine is not None and encode(key) in machine.entries

    def __len__(self) -> int:
        machine = self._machine
        return 0 if machine is None else len(machine.entries)

    def __iter__(self) -> Iterator[K]:
        """The keys as they are now; a change meanwhile changes nothing of it."""
        machine = self._machine
        keys = [] if machine is None else list(machine.entries)
        return iter([self._decoded(self._keys, key) for key in keys])

    @property
    def _machine(self) -> DictMachine | None:
        return cast("DictMachine | None", self._blocks.machine(self._key))

    def _decoded(self, decoder: msgspec.msgpack.Decoder[Any], data: bytes) -> Any:
        try:
            return decoder.decode(data)
        except msgspec.ValidationError as error:
            raise UsageError(f"dict {self.name!r} has data of another type: {error}") from None

    def changes(self) -> Changes[K, V]:
        """The changes from now on: `async for change in prices.changes()` gives Change, or Resync when the whole dict
        was replaced.  A reader that falls 65,536 changes behind gets Overrun."""
        return Changes(self._blocks.changes(self._key), self)

    # -- writing

    async def set(
        self, key: K, value: V, *, ttl: float | None = None, until: Until = "read", timeout: float | None = None
    ) -> None:
        """Set the value of `key`, and wait until this process has it; with `until="stable"` until all members have
        received it; with None only until it is sent.

        With `ttl` the key is deleted after so many seconds, unless it is written again.  The coordinator measures the
        time and deletes the key by a message, so that it goes at one place of the order everywhere; after a change of
        the coordinator the time can be longer, and it is never shorter.  If the coordinator does not, for instance
        because it is a program without blocks, the next member does so 2 s later.

        `timeout`, in seconds, and the errors are those of a send: Timeout, Unknown, DeliveredElsewhere, ChannelClosed.
        """
        await self.update({key: value}, ttl=ttl, until=until, timeout=timeout)

    async def update(
        self, items: Mapping[K, V], *, ttl: float | None = None, until: Until = "read", timeout: float | None = None
    ) -> None:
        """Set all `items` at once: no reader at any member sees a part of them."""
        pairs = [(self._own_key(key), self._own_value(value)) for key, value in items.items()]
        await self._blocks.call(self._key, Put(pairs, _seconds(ttl)), until=until, timeout=timeout)

    async def pop(self, key: K, default: D | None = None, *, timeout: float | None = None) -> V | D | None:
        """Delete `key`.  Returns the value that it had, or `default`.  Of several callers one gets the value."""
        (found,) = await self._blocks.call(self._key, Drop([self._own_key(key)]), timeout=timeout)
        return default if found is None else cast(V, self._decoded(self._values, found))

    async def delete(self, *keys: K, until: Until = "read", timeout: float | None = None) -> None:
        """Delete `keys`; an absent one changes nothing."""
        drop = Drop([self._own_key(key) for key in keys])
        await self._blocks.call(self._key, drop, until=until, timeout=timeout)

    async def clear(self, *, until: Until = "read", timeout: float | None = None) -> None:
        """Delete all items."""
        await self._blocks.call(self._key, Clear(), until=until, timeout=timeout)

    async def compare_and_set(
        self,
        key: K,
        expected: V | None,
        value: V | None,
        *,
        ttl: float | None = None,
        keep_ttl: bool = False,
        until: Literal["read", "stable"] = "read",
        timeout: float | None = None,
    ) -> bool:
        """Set `value` if the key has the value `expected` at this place of the order; None stands for no value.
        Returns whether it was set.  Of several callers with the same `expected` one succeeds.  With `keep_ttl` a key
        that has a time is deleted when it would have been without this write, and `ttl` is for an absent key only."""
        before = None if expected is None else self._own_value(expected)
        after = None if value is None else self._own_value(value)
        swap = Swap(self._own_key(key), before, after, _seconds(ttl), keep_ttl)
        return bool(await self._blocks.call(self._key, swap, until=until, timeout=timeout))

    def _own_key(self, key: K) -> bytes:
        return self._checked(self._keys, key, "key")

    def _own_value(self, value: V) -> bytes:
        return self._checked(self._values, value, "value")

    def _checked(self, decoder: msgspec.msgpack.Decoder[Any], item: object, what: str) -> bytes:
        """The encoded item.  A type that the readers do not expect is refused here, and not at the other members."""
        try:
            data = encode(item)
            decoder.decode(data)
        except (TypeError, OverflowError, msgspec.ValidationError) as error:
            raise UsageError(f"this cannot be a {what} of dict {self.name!r}: {error}") from None
        return data


class Changes(Generic[K, V]):
    """The changes of a dict for one reader.  See ReplicatedDict.changes()."""

    def __init__(self, stream: Stream[News], of: ReplicatedDict[K, V]) -> None:
        self._stream = stream
        self._of = of

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change[K, V] | Resync:
        news = await anext(self._stream)
        if not isinstance(news, Changed):
            return Resync()
        read, of = self._of._decoded, self._of
        old, new = [None if value is None else read(of._values, value) for value in (news.old, news.new)]
        return Change(read(of._keys, news.key), old, new)


def _decoder(kind: Any, what: str) -> msgspec.msgpack.Decoder[Any]:
    try:
        return msgspec.msgpack.Decoder(kind)
    except TypeError as error:
        raise UsageError(f"{what}={kind!r} is not a type that msgspec decodes: {error}") from None


def _seconds(ttl: float | None) -> float:
    if ttl is None:
        return 0.0
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl <= TTL_MAX:
        raise UsageError(f"ttl={ttl!r} must be a number of seconds above 0, up to a year")
    return float(ttl)
