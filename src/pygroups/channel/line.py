"""Senders that wait, in order, for room in one window."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple


class Waiting(NamedTuple):
    """A sender that waits for room."""

    woken: asyncio.Future[None]
    size: int


class Line:
    """The line before one window.  Room that was given to a sender stays reserved until that sender has run."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.quarter = window // 4
        self.reserved = 0
        self.waiting: deque[Waiting] = deque()

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.reserved

    def join(self, size: int) -> asyncio.Future[None]:
        """Stand in line for `size` bytes; the future is done when they are reserved."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(Waiting(woken, size))
        return woken

    def done(self, woken: asyncio.Future[None], size: int) -> None:
        """Whoever waited for this runs again: it takes what was reserved, or gives up."""
        if not woken.done():
            woken.cancel()  # the guard let nobody wait: no room is kept for it
        elif not woken.cancelled() and woken.exception() is None:
            self.reserved -= size

    def wake(self, room: int) -> int:
        """Wake those in line for whom there is room, once a quarter of the window is free; the room that is left."""
        waiting = self.waiting
        while waiting and (waiting[0].woken.done() or room >= min(max(waiting[0].size, self.quarter), self.window)):
            woken, size = waiting.popleft()
            if not woken.done():
                woken.set_result(None)
                self.reserved += size
                room -= size
        return room

    def fail(self, error: Callable[[], Exception]) -> None:
        """Nobody gets any room any more."""
        while self.waiting:
            woken, _ = self.waiting.popleft()
            if not woken.done():
                woken.set_exception(error())
