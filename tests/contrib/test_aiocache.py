"""The backend of aiocache: what aiocache says of a backend, and that all processes have the same items."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiocache
import pytest
from aiocache.lock import OptimisticLock, OptimisticLockError, RedLock
from aiocache.serializers import NullSerializer

from pygroups import UsageError
from pygroups.contrib.aiocache import GroupCache

Caches = Callable[..., "contextlib.AbstractAsyncContextManager[list[GroupCache]]"]


@pytest.fixture
def caches(tmp_path: Path) -> Caches:
    """So many caches, each as if it were in a process of its own."""

    @contextlib.asynccontextmanager
    async def opened(number: int, **options: Any) -> AsyncIterator[list[GroupCache]]:
        options = {"timeout": 60, **options}
        made = [aiocache.Cache(GroupCache, group="t", discovery=f"dir:{tmp_path}", **options) for _ in range(number)]
        try:
            yield made
        finally:
            for cache in made:
                await cache.close()

    return opened


async def until(cache: GroupCache, key: str, value: Any) -> None:
    """Wait until the cache has this value."""
    while await cache.get(key) != value:
        await asyncio.sleep(0.01)


def test_all_processes_have_the_same_items(caches: Caches) -> None:
    async def story() -> None:
        async with caches(2) as (a, b):
            assert await a.set("k", {"n": [1, None]}) is True
            await until(b, "k", {"n": [1, None]})
            assert await b.multi_set([("x", 1), ("y", 2)]) is True
            assert await b.multi_get(["x", "z", "y"]) == [1, None, 2]
            await until(a, "y", 2)
            assert await a.delete("k") == 1 and await a.delete("k") == 0
            await until(b, "k", None)
            assert await b.get("k", default=5) == 5
            assert [await b.exists("x"), await b.exists("k")] == [True, False]
            assert await a.clear() is True
            await until(b, "x", None)

    asyncio.run(story())


def test_of_two_processes_that_add_or_swap_one_succeeds(caches: Caches) -> None:
    async def story() -> None:
        async with caches(2) as (a, b):
            added = await asyncio.gather(a.add("k", "a"), b.add("k", "b"), return_exceptions=True)
            assert sorted(map(repr, added), reverse=True) == [
                repr(ValueError("Key k already exists, use .set to update the value")),
                "True",
            ]
            await asyncio.gather(*(cache.increment("n", delta=2) for cache in (a, b) * 10))
            assert await b.increment("n", delta=-1) == 39
            with pytest.raises(TypeError):
                await a.increment("k")
            with pytest.raises(OptimisticLockError):
                async with OptimisticLock(a, "k") as lock:
                    await a.set("k", "other")
                    await lock.cas("mine")
            async with OptimisticLock(a, "k") as lock:
                await lock.cas("mine")
            assert await a.get("k") == "mine"
            async with RedLock(a, "r", 60):
                waiting = asyncio.create_task(RedLock(b, "r", 0.01).__aenter__())
                await waiting  # its own lease is over
            assert not await a.exists("r-lock")

    asyncio.run(story())


def test_a_key_expires_and_an_increment_does_not_make_its_time_longer(caches: Caches) -> None:
    async def story() -> None:
        async with caches(1, ttl=0.3) as (a,):
            await a.set("k", 1)
            await a.set("kept", 1)
            await a.set("other", 1, ttl=None)
            await a.increment("k")
            assert await a.expire("kept", 0) is True and await a.expire("none", 1) is False
            await until(a, "k", None)
            assert [await a.get("kept"), await a.get("other")] == [1, 1]
            assert await a.expire("other", 0.1) is True
            await until(a, "other", None)

    asyncio.run(story())


def test_namespaces_serializers_and_decorators(caches: Caches, tmp_path: Path) -> None:
    calls: list[int] = []

    async def story() -> None:
        async with caches(1, namespace="n:", serializer=NullSerializer()) as (a,):
            await a.set("k", [b"\xff"])
            await a.set("k", 1, namespace="m:")
            assert await a.get("k") == [b"\xff"] and await a.raw("get", "n:k") == [b"\xff"]
            await a.clear(namespace="n:")
            assert [await a.get("k"), await a.get("k", namespace="m:")] == [None, 1]
            await a.raw("delete", "m:k", until="stable")
            assert await a.raw("keys") == set()

            @aiocache.cached(cache=GroupCache, key="f", group="t", discovery=f"dir:{tmp_path}")
            async def f() -> int:
                calls.append(1)
                return 5

            assert [await f(), await f()] == [5, 5] and calls == [1]
            await f.cache.close()  # type: ignore[attr-defined]

    asyncio.run(story())


def test_a_cache_is_used_in_later_event_loops(tmp_path: Path) -> None:
    cache = GroupCache("t", discovery=f"dir:{tmp_path}", timeout=60)
    asyncio.run(cache.set("k", 1))
    assert asyncio.run(cache.get("k")) == 1
    asyncio.run(cache.close())


def test_wrong_options_are_refused_with_the_first_use() -> None:
    with pytest.raises(UsageError, match="do not handle all changes in one order"):
        asyncio.run(GroupCache("g", profile="fifo").get("k"))
    with pytest.raises(UsageError, match="has no option disco"):
        GroupCache("g", disco="dir:/x")
