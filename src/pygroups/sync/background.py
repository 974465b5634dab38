"""The event loop in a thread of its own that the blocking objects of a process share."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from pygroups.core.errors import ChannelClosed, UsageError

Result = TypeVar("Result")
FORKED: Final = "this object belongs to the process that opened it: open a new one in the forked process"


class Background:
    """An event loop in a daemon thread.  Each process has its own, also one that was forked."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pygroups", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run `work` in the loop, and wait for its result.  An interrupt of the wait (Ctrl-C) cancels it."""
        future = self._begin(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def awaited(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run `work` in the loop, for a coroutine of another loop.  A cancellation cancels it."""
        return await asyncio.wrap_future(self._begin(work))

    def _begin(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        try:
            self.check()
        except BaseException:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def ask(self, question: Callable[[], Result]) -> Result:
        """The result of `question()`, which is called in the loop and must not wait."""

        async def asked() -> Result:
            return question()

        return self.run(asked())

    def check(self) -> None:
        """Raise ChannelClosed in a forked process, and UsageError in the thread of the loop itself, which would wait
        for itself."""
        if os.getpid() != self._pid:
            raise ChannelClosed(FORKED)
        if threading.current_thread() is self._thread:
            raise UsageError("pygroups.sync cannot be called in its own event loop: use pygroups.Channel there")


_current: list[Background] = []
_lock = threading.Lock()


def background() -> Background:
    """The background loop of this process."""
    with _lock:
        if not _current:
            _current.append(Background())
        return _current[0]


def _forget_the_parents() -> None:
    global _lock
    _lock = threading.Lock()  # a thread of the parent may hold the old one for ever
    _current.clear()


os.register_at_fork(after_in_child=_forget_the_parents)
