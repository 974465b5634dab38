"""Finds a send that waits for room in the window while the task that reads the events waits for that send."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from pygroups.core.errors import WouldDeadlock
from pygroups.core.limits import SECOND

# the inbox that the current task reads; tasks that the reading task starts inherit this value
READS: ContextVar[object] = ContextVar("pygroups_reads", default=None)

DEADLOCK: Final = 10 * SECOND  # time without a read while a send that the reading task started waits
ANSWERING: Final = (
    "the message was not sent, because the members would block each other: the task that reads the events started this "
    f"send (with gather, wait_for or a TaskGroup) and has read nothing for {DEADLOCK // SECOND} s, while the send "
    "waits for the window, which opens only when members read.  Call send in the reading task itself, "
    "or in a task that the reading task does not wait for"
)


class ReaderSends:
    """The sends of the tasks that the reading task started.  The reading task may wait for these tasks."""

    def __init__(self) -> None:
        self._since: dict[asyncio.Future[None], int] = {}  # the future of each send, and its start
        self._seen = (0, 0)  # the progress of the reading task at the last check
        self._seen_at = 0

    @contextmanager
    def noted(self, waiting: asyncio.Future[None], now: int) -> Iterator[None]:
        """A send begins to wait at `now`, and ends with the block."""
        self._since[waiting] = now
        try:
            yield
        finally:
            del self._since[waiting]

    def end(self, now: int, progress: tuple[int, int], *, blocked: bool) -> None:
        """Raise WouldDeadlock in each of these sends if the reading task is `blocked` without `progress` for DEADLOCK
        microseconds."""
        if progress != self._seen:
            self._seen, self._seen_at = progress, now
        if not blocked or now - self._seen_at < DEADLOCK:
            return
        for waiting, since in list(self._since.items()):
            if now - since >= DEADLOCK and not waiting.done():
                waiting.set_exception(WouldDeadlock(ANSWERING))


def unread_behind(queue_max: int) -> WouldDeadlock:
    """The error of a send in the reading task itself, while too many bytes wait for that task."""
    return WouldDeadlock(
        f"the message was not sent: the task that reads the events waits in send, and more than {queue_max:,} bytes of "
        "events are unread; send from another task, or read first"
    )
