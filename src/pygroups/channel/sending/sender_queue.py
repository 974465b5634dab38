"""The senders that wait for room in one window, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple


class Waiting(NamedTuple):
    """A sender that waits for room."""

    woken: asyncio.Future[None]
    size: int


class SenderQueue:
    """The senders before one window.  Room that a sender was given stays reserved until the sender's task has run."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.quarter = window // 4
        self.reserved = 0
        self.waiting: deque[Waiting] = deque()

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.reserved

    def join(self, size: int) -> asyncio.Future[None]:
        """Wait for `size` bytes behind the earlier senders.  The future is done when the bytes are reserved."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(Waiting(woken, size))
        return woken

    def done(self, woken: asyncio.Future[None], size: int) -> None:
        """End the wait of a sender, which uses the reserved room now, or gives up."""
        if not woken.done():
            woken.cancel()  # the guard raised an error before the wait: reserve no room
        elif not woken.cancelled() and woken.exception() is None:
            self.reserved -= size

    def wake(self, room: int) -> int:
        """Wake the senders for which there is room, once a quarter of the window is free.  Returns the remaining
        room."""
        waiting = self.waiting
        while waiting and (waiting[0].woken.done() or room >= min(max(waiting[0].size, self.quarter), self.window)):
            woken, size = waiting.popleft()
            if not woken.done():
                woken.set_result(None)
                self.reserved += size
                room -= size
        return room

    def fail(self, error: Callable[[], Exception]) -> None:
        """Raise an error in every waiting sender."""
        while self.waiting:
            woken, _ = self.waiting.popleft()
            if not woken.done():
                woken.set_exception(error())
