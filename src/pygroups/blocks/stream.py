"""A stream of events for one reader in the program, filled by the task that reads the channel."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Generic, Self, TypeVar

from .errors import Overrun

Item = TypeVar("Item")
UNREAD_MAX: Final = 65_536  # items; the next one ends the stream
SLICE: Final = 256  # items, after which other tasks run


class Stream(Generic[Item]):
    """`async for` gives the items in order.  Behind them it ends, or raises the error with which the stream closed.

    A reader that leaves UNREAD_MAX items unread gets these, and then Overrun: it must not hold the blocks up.
    """

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._news = asyncio.Event()
        self._given = 0
        self.closed = False
        self._error: BaseException | None = None

    def put(self, item: Item) -> None:
        if self.closed:
            return
        if len(self._items) >= UNREAD_MAX:
            self.close(Overrun(f"this reader left {UNREAD_MAX:,} events unread, and misses those behind them"))
            return
        self._items.append(item)
        self._news.set()

    def close(self, error: BaseException | None = None) -> None:
        """The items that are there are the last ones."""
        if not self.closed:
            self.closed, self._error = True, error
            self._news.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        while not self._items:
            if self.closed:
                raise self._error or StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        self._given += 1
        if self._given % SLICE == 0:
            await asyncio.sleep(0)
        return self._items.popleft()
