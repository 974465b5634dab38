"""Blocks for programs without an event loop.  Each class has the methods of the class of the same name in
pygroups.blocks; the calls block their thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from pygroups import blocks
from pygroups.blocks.options import BlocksOptions
from pygroups.channel import Channel
from pygroups.channel.options import with_parameters_of
from pygroups.core.address import Address
from pygroups.core.errors import ChannelClosed, UsageError

from .background import Background, background

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")
Result = TypeVar("Result")


class Blocks:
    """As pygroups.blocks.Blocks, with the same options.  Any number of threads use the blocks.

    with pygroups.sync.Blocks("shop", profile="uniform") as blocks:
        stock = pygroups.sync.ReplicatedDict(blocks, "stock", str, int)
        stock.set("apples", 3)
    """

    @with_parameters_of(BlocksOptions)
    def __init__(self, options: BlocksOptions) -> None:
        self._options = options
        self._inner: blocks.Blocks | None = None
        self._loop: Background = background()

    @property
    def inner(self) -> blocks.Blocks:
        """The blocks in the background loop.  Raises ChannelClosed outside of `with`, and in a forked process."""
        self._loop.check()
        if self._inner is None:
            raise ChannelClosed("the blocks have not joined their group: use them inside `with`")
        return self._inner

    @property
    def channel(self) -> Channel:
        """The channel in the background loop, for its view and its statistics."""
        return self.inner.channel

    @property
    def members(self) -> tuple[Address, ...]:
        """As Blocks.members."""
        return self.inner.members

    def __enter__(self) -> Self:
        if self._inner is not None:
            raise UsageError("these blocks were opened before: create new Blocks")
        self._loop = background()  # that of this process, also if it was forked since
        self._inner = self._loop.run(self._open())
        return self

    async def _open(self) -> blocks.Blocks:
        return await blocks.Blocks(**self._options.for_channel()).__aenter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.run(self.inner.__aexit__(kind, error, traceback))

    # -- for the blocks

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._loop.run(work)

    def ask(self, question: Callable[[], Result]) -> Result:
        return self._loop.ask(question)


class ReplicatedDict(Mapping[K, V]):
    """As pygroups.blocks.ReplicatedDict."""

    def __init__(self, of: Blocks, name: str, key: Any = Any, value: Any = Any) -> None:
        self._of = of
        self._inner: blocks.ReplicatedDict[K, V] = blocks.ReplicatedDict(of.inner, name, key, value)
        self.name = name

    def __getitem__(self, key: K) -> V:
        return self._of.ask(lambda: self._inner[key])

    def __contains__(self, key: object) -> bool:
        return self._of.ask(lambda: key in self._inner)

    def __len__(self) -> int:
        return self._of.ask(lambda: len(self._inner))

    def __iter__(self) -> Iterator[K]:
        return iter(self._of.ask(lambda: list(self._inner)))

    def copy(self) -> dict[K, V]:
        """All items at one place of the order."""
        return self._of.ask(lambda: dict(self._inner))

    def set(self, key: K, value: V, **options: Any) -> None:
        """As ReplicatedDict.set: `ttl`, `until` and `timeout`."""
        self._of.run(self._inner.set(key, value, **options))

    def update(self, items: Mapping[K, V], **options: Any) -> None:
        """As ReplicatedDict.update: `ttl`, `until` and `timeout`."""
        self._of.run(self._inner.update(items, **options))

    def pop(self, key: K, default: D | None = None, *, timeout: float | None = None) -> V | D | None:
        """As ReplicatedDict.pop."""
        return self._of.run(self._inner.pop(key, default, timeout=timeout))

    def delete(self, *keys: K, **options: Any) -> None:
        """As ReplicatedDict.delete: `until` and `timeout`."""
        self._of.run(self._inner.delete(*keys, **options))

    def clear(self, **options: Any) -> None:
        """As ReplicatedDict.clear: `until` and `timeout`."""
        self._of.run(self._inner.clear(**options))

    def compare_and_set(self, key: K, expected: V | None, value: V | None, **options: Any) -> bool:
        """As ReplicatedDict.compare_and_set: `ttl`, `keep_ttl`, `until` and `timeout`."""
        return self._of.run(self._inner.compare_and_set(key, expected, value, **options))


class Grant:
    """As pygroups.blocks.Grant."""

    def __init__(self, of: Blocks, inner: blocks.Grant) -> None:
        self._of = of
        self._inner = inner
        self.token = inner.token

    @property
    def is_held(self) -> bool:
        """As Grant.is_held."""
        return self._of.ask(lambda: self._inner.is_held)

    def renew(self) -> None:
        """As Grant.renew."""
        self._of.run(self._inner.renew())

    def release(self) -> None:
        """As Grant.release."""
        self._of.run(self._inner.release())


class Semaphore:
    """As pygroups.blocks.Semaphore; `with semaphore as grant` holds a permit."""

    def __init__(self, of: Blocks, name: str, permits: int, *, lease: float | None = None) -> None:
        self._begin(of, blocks.Semaphore(of.inner, name, permits, lease=lease))

    def _begin(self, of: Blocks, inner: blocks.Semaphore) -> None:
        self._of = of
        self._inner = inner
        self._local = threading.local()  # the grants of `with`, by thread

    @property
    def holders(self) -> tuple[Address, ...]:
        """As Semaphore.holders."""
        return self._of.ask(lambda: self._inner.holders)

    def acquire(self, *, timeout: float | None = None) -> Grant:
        """As Semaphore.acquire."""
        return Grant(self._of, self._of.run(self._inner.acquire(timeout=timeout)))

    def try_acquire(self, *, timeout: float | None = None) -> Grant | None:
        """As Semaphore.try_acquire."""
        grant = self._of.run(self._inner.try_acquire(timeout=timeout))
        return None if grant is None else Grant(self._of, grant)

    def __enter__(self) -> Grant:
        grants = self._local.__dict__.setdefault("grants", [])
        grants.append(self.acquire())
        return cast(Grant, grants[-1])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        grant = self._local.grants.pop()
        try:
            grant.release()
        except blocks.NotHeld:
            if kind is None:
                raise


class Lock(Semaphore):
    """As pygroups.blocks.Lock; `with lock as grant` holds it."""

    def __init__(self, of: Blocks, name: str, *, lease: float | None = None) -> None:
        self._begin(of, blocks.Lock(of.inner, name, lease=lease))


class Counter:
    """As pygroups.blocks.Counter."""

    def __init__(self, of: Blocks, name: str) -> None:
        self._of = of
        self._inner = blocks.Counter(of.inner, name)

    @property
    def value(self) -> int:
        """As Counter.value."""
        return self._of.ask(lambda: self._inner.value)

    def add(self, amount: int = 1, *, timeout: float | None = None) -> int:
        """As Counter.add."""
        return self._of.run(self._inner.add(amount, timeout=timeout))

    def set(self, value: int, *, timeout: float | None = None) -> None:
        """As Counter.set."""
        self._of.run(self._inner.set(value, timeout=timeout))

    def compare_and_set(self, expected: int, value: int, *, timeout: float | None = None) -> bool:
        """As Counter.compare_and_set."""
        return self._of.run(self._inner.compare_and_set(expected, value, timeout=timeout))


class Task(Generic[V]):
    """As pygroups.blocks.Task."""

    def __init__(self, of: Blocks, inner: blocks.Task[V]) -> None:
        self._of = of
        self._inner = inner
        self.id, self.attempt, self.value = inner.id, inner.attempt, inner.value

    def done(self) -> None:
        """As Task.done."""
        self._of.run(self._inner.done())

    def give_back(self) -> None:
        """As Task.give_back."""
        self._of.run(self._inner.give_back())


class WorkQueue(Generic[V]):
    """As pygroups.blocks.WorkQueue."""

    def __init__(self, of: Blocks, name: str, value: Any = Any, *, attempts: int | None = None) -> None:
        self._of = of
        self._inner: blocks.WorkQueue[V] = blocks.WorkQueue(of.inner, name, value, attempts=attempts)

    def put(self, value: V, *, timeout: float | None = None) -> int:
        """As WorkQueue.put."""
        return self._of.run(self._inner.put(value, timeout=timeout))

    def put_many(self, values: list[V], *, timeout: float | None = None) -> list[int]:
        """As WorkQueue.put_many."""
        return self._of.run(self._inner.put_many(values, timeout=timeout))

    def get(self, *, timeout: float | None = None) -> Task[V]:
        """As WorkQueue.get."""
        return Task(self._of, self._of.run(self._inner.get(timeout=timeout)))

    def __iter__(self) -> Iterator[Task[V]]:
        """One task after the other, without an end."""
        while True:
            yield self.get()

    @property
    def waiting(self) -> int:
        """As WorkQueue.waiting."""
        return self._of.ask(lambda: self._inner.waiting)

    @property
    def running(self) -> int:
        """As WorkQueue.running."""
        return self._of.ask(lambda: self._inner.running)

    @property
    def failed(self) -> dict[int, V]:
        """As WorkQueue.failed."""
        return self._of.ask(lambda: self._inner.failed)


class Requests:
    """As pygroups.blocks.Requests; `handler(value, caller)` is a plain function, which runs in a thread."""

    def __init__(
        self, of: Blocks, name: str, handler: Callable[[Any, Address], Any] | None = None, **types: Any
    ) -> None:
        async def handled(value: Any, caller: Address) -> Any:
            assert handler is not None
            return await asyncio.to_thread(handler, value, caller)

        self._of = of
        inner = of.inner
        self._inner = of.ask(lambda: blocks.Requests(inner, name, None if handler is None else handled, **types))

    def call(self, member: Address, value: Any, *, timeout: float | None = None) -> Any:
        """As Requests.call."""
        return self._of.run(self._inner.call(member, value, timeout=timeout))

    def call_some(self, members: Sequence[Address], value: Any, **options: Any) -> list[blocks.Reply]:
        """As Requests.call_some: `wants` and `timeout`."""
        return self._of.run(self._inner.call_some(members, value, **options))

    def call_all(self, value: Any, **options: Any) -> list[blocks.Reply]:
        """As Requests.call_all: `wants` and `timeout`."""
        return self._of.run(self._inner.call_all(value, **options))
