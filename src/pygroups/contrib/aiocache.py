"""A backend for aiocache: the caches of all processes of a group have the same items, and a read needs no network.

    cache = aiocache.Cache(GroupCache, group="mysite")
    aiocache.caches.set_config({"default": {"cache": "pygroups.contrib.aiocache.GroupCache", "group": "mysite"}})

The items are those of one replicated dict: a change or a deletion in one process is one in all.  Guide:
docs/guides/blocks.md, *With aiocache*.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, TypeVar

from aiocache.base import BaseCache
from aiocache.serializers import JsonSerializer

from pygroups.blocks import Blocks, ReplicatedDict
from pygroups.blocks.options import BlocksOptions
from pygroups.channel.options import made
from pygroups.sync.background import background
from pygroups.sync.kept import Kept

Result = TypeVar("Result")
Items = ReplicatedDict[str, Any]
NAME: Final = "aiocache"  # of the dict
JOIN_TIMEOUT: Final = 30.0  # seconds, if the cache has no `timeout`


class GroupCache(BaseCache):  # type: ignore[misc]
    """A cache that the processes of `group` share.

    `serializer`, `plugins`, `namespace`, `key_builder`, `timeout` and `ttl` are those of every cache of aiocache; the
    default serializer is JsonSerializer.  With NullSerializer a value must be one that msgpack has.  All other options
    are those of pygroups.Blocks, as `bind`, `discovery` and `secret` for several machines; `rejoin` is true by default.

    The cache joins the group with its first use, in a thread of its own, and leaves it with `close()` or at the end of
    the process.  A write returns when this process has it, and each other process has it within milliseconds.  With the
    profile "total", the default, both sides of a network split write, and with the merge all take those of one side.
    """

    NAME = "pygroups"

    def __init__(
        self,
        group: str,
        *,
        serializer: Any = None,
        plugins: Any = None,
        namespace: str | None = None,
        key_builder: Callable[..., str] | None = None,
        timeout: float | None = 5,
        ttl: float | None = None,
        rejoin: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(
            serializer=serializer or JsonSerializer(),
            plugins=plugins,
            namespace=namespace,
            key_builder=key_builder,
            timeout=timeout,
            ttl=ttl,
        )
        self._options = made("GroupCache", BlocksOptions, group, rejoin=rejoin, **options)
        self._begin()

    def _begin(self) -> None:
        self._kept = Kept(self._connect, self._live, JOIN_TIMEOUT)

    def _connect(self) -> Blocks:
        blocks = Blocks(**self._options.for_channel())
        self._items: Items = ReplicatedDict(blocks, NAME, str, Any)
        return blocks

    async def _live(self, blocks: Blocks) -> None:
        async for _ in blocks:
            pass  # until the end

    async def _run(self, work: Callable[[Items], Coroutine[Any, Any, Result]]) -> Result:
        if self._kept.loop is not background():
            self._begin()  # this process was forked

        async def run() -> Result:
            await self._kept.member()
            return await work(self._items)

        return await self._kept.loop.awaited(run())

    # -- what aiocache calls

    async def _get(self, key: str, encoding: str | None = "utf-8", _conn: Any = None) -> Any:
        async def work(items: Items) -> Any:
            return items.get(key)

        return await self._run(work)

    async def _gets(self, key: str, encoding: str | None = "utf-8", _conn: Any = None) -> Any:
        return await self._get(key)

    async def _multi_get(self, keys: Iterable[str], encoding: str | None = "utf-8", _conn: Any = None) -> list[Any]:
        async def work(items: Items) -> list[Any]:
            return [items.get(key) for key in keys]

        return await self._run(work)

    async def _set(
        self, key: str, value: Any, ttl: float | None = None, _cas_token: Any = None, _conn: Any = None
    ) -> bool | int:
        if _cas_token is not None:
            return await self._swap(key, _cas_token, value, ttl)
        return await self._multi_set([(key, value)], ttl)

    async def _multi_set(self, pairs: Iterable[tuple[str, Any]], ttl: float | None = None, _conn: Any = None) -> bool:
        await self._run(lambda items: items.update(dict(pairs), ttl=ttl or None))
        return True

    async def _swap(
        self, key: str, before: Any, after: Any, ttl: float | None = None, *, keep_ttl: bool = False
    ) -> bool:
        return await self._run(
            lambda items: items.compare_and_set(key, before, after, ttl=ttl or None, keep_ttl=keep_ttl)
        )

    async def _add(self, key: str, value: Any, ttl: float | None = None, _conn: Any = None) -> bool:
        if not await self._swap(key, None, value, ttl):
            raise ValueError(f"Key {key} already exists, use .set to update the value")
        return True

    async def _exists(self, key: str, _conn: Any = None) -> bool:
        async def work(items: Items) -> bool:
            return key in items

        return await self._run(work)

    async def _increment(self, key: str, delta: int, _conn: Any = None) -> int:
        while True:
            before = await self._get(key)
            try:
                after = delta + (0 if before is None else int(before))
            except (TypeError, ValueError):
                raise TypeError("Value is not an integer") from None
            value = str(after) if isinstance(before, str) else after
            if await self._swap(key, before, value, keep_ttl=True):
                return after

    async def _expire(self, key: str, ttl: float, _conn: Any = None) -> bool:
        while (value := await self._get(key)) is not None:
            if await self._swap(key, value, value, ttl):
                return True
        return False

    async def _delete(self, key: str, _conn: Any = None) -> int:
        return int(await self._run(lambda items: items.pop(key)) is not None)

    async def _clear(self, namespace: str | None = None, _conn: Any = None) -> bool:
        async def work(items: Items) -> bool:
            if namespace:
                await items.delete(*[key for key in items if key.startswith(namespace)])
            else:
                await items.clear()
            return True

        return await self._run(work)

    async def _raw(
        self, command: str, *args: Any, encoding: str | None = "utf-8", _conn: Any = None, **named: Any
    ) -> Any:
        """A method of pygroups.blocks.ReplicatedDict: `raw("delete", "key", until="stable")`."""

        async def work(items: Items) -> Any:
            answer = getattr(items, command)(*args, **named)
            return await answer if asyncio.iscoroutine(answer) else answer

        return await self._run(work)

    async def _redlock_release(self, key: str, value: Any) -> int:
        return int(await self._swap(key, value, None))

    async def _close(self, *args: Any, _conn: Any = None, **named: Any) -> None:
        """Leave the group.  The next use joins it again."""
        await self._kept.loop.awaited(self._kept.leave())
