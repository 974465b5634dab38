"""A member of a group in the background loop, kept for a program that does not open and close it itself."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Generic, TypeVar

from pygroups.core.errors import ChannelClosed, Error, UsageError

from .background import Background, background

Member = TypeVar("Member")
RETRY: Final = 1.0  # seconds between two attempts to join
_log: Final = logging.getLogger("pygroups.sync")


class Kept(Generic[Member]):
    """A Channel or Blocks that joins with its first use, joins again after an error, and leaves at the end of the
    process.

    `made` makes one, which is not open yet.  `lived` runs while it is open, and ends with it.  `timeout`, in seconds,
    limits the wait for the join.  All but `end` runs in the background loop.  A forked process needs another object:
    its `background()` is not `loop`.
    """

    def __init__(
        self,
        made: Callable[[], AbstractAsyncContextManager[Member]],
        lived: Callable[[Member], Coroutine[Any, Any, None]],
        timeout: float | None,
    ) -> None:
        self.loop: Background = background()
        self._made = made
        self._lived = lived
        self._timeout = timeout
        self._joined: asyncio.Future[Member] | None = None
        self._life: asyncio.Task[None] | None = None

    async def member(self) -> Member:
        """The open one.  Raises TimeoutError if the join takes too long, and UsageError for options that cannot be."""
        if self._joined is None:
            self._joined = asyncio.get_running_loop().create_future()
            self._life = asyncio.create_task(self._live(self._joined))
            atexit.register(self.end)
        async with asyncio.timeout(self._timeout):
            return await asyncio.shield(self._joined)

    async def _live(self, joined: asyncio.Future[Member]) -> None:
        while True:
            try:
                async with self._made() as member:
                    joined.set_result(member)
                    await self._lived(member)
                    raise ChannelClosed("the group has ended")
            except UsageError as error:
                if not joined.done():
                    joined.set_exception(error)
                return
            except Error as error:
                _log.error("this process is out of its group, and joins again: %s", error)
            if joined.done():
                self._joined = joined = asyncio.get_running_loop().create_future()
            await asyncio.sleep(RETRY)

    async def leave(self) -> None:
        """Leave the group.  The next use joins again."""
        life, self._joined, self._life = self._life, None, None
        if life is not None:
            life.cancel()
            await asyncio.wait([life])

    def end(self) -> None:
        """Leave at the end of the program, so that the others need not suspect it; not in a forked process."""
        with contextlib.suppress(Error):
            self.loop.run(self.leave())
