"""Finds a send that waits for reads while the task that reads the events waits for that send."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from pygroups.core.errors import Error, Unknown, WouldDeadlock
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
    """The sends of the tasks that the reading task started.  The reading task may wait for these tasks.  And the sends
    of the reading task itself that wait until a message is read."""

    def __init__(self) -> None:
        # the future of each send, its start, and its error
        self._since: dict[asyncio.Future[None], tuple[int, Error]] = {}
        self._seen = (0, 0)  # the progress of the reading task at the last check
        self._seen_at = 0

    @contextmanager
    def noted(self, waiting: asyncio.Future[None], now: int, error: Error) -> Iterator[None]:
        """A send begins to wait at `now`, and ends with the block.  `error`: for the send, if the task is blocked."""
        self._since[waiting] = now, error
        try:
            yield
        finally:
            del self._since[waiting]

    def end(self, now: int, progress: tuple[int, int], *, blocked: bool) -> None:
        """Raise its error in each of these sends if the reading task is `blocked` without `progress` for DEADLOCK
        microseconds."""
        if progress != self._seen:
            self._seen, self._seen_at = progress, now
        if not blocked or now - self._seen_at < DEADLOCK:
            return
        for waiting, (since, error) in list(self._since.items()):
            if now - since >= DEADLOCK and not waiting.done():
                waiting.set_exception(error)


def never_read(number: int) -> Unknown:
    """The error of a send that waits until own message `number` is read, while no task reads."""
    return Unknown(
        f"message {number} was sent, and the program has read no event for {DEADLOCK // SECOND} s: until='read' needs "
        "a task that reads the events and does not wait for this send",
        number,
    )


def unread_behind(queue_max: int) -> WouldDeadlock:
    """The error of a send in the reading task itself, while too many bytes wait for that task."""
    return WouldDeadlock(
        f"the message was not sent: the task that reads the events waits in send, and more than {queue_max:,} bytes of "
        "events are unread; send from another task, or read first"
    )
