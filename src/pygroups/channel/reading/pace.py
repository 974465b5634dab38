"""The pace of reading: the number of messages that a reader gets before the event loop runs other tasks.

A program that handles messages without a suspending `await` would otherwise keep the loop as long as messages are
queued. The member would then send no heartbeat, and the other members would remove it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pygroups.core.limits import MILLISECOND

TURN: Final = 5 * MILLISECOND  # the longest time that the program runs before the loop runs other tasks
FIRST: Final = 16  # messages in the first slice, before the first measurement


class Pace:
    """Adapts the size of a slice to the time that the program needs for a message.  Reads the clock once for a slice.

    `most`: the most messages in a slice.  `target`: the microseconds that a slice may take.
    """

    def __init__(self, now: Callable[[], int], most: int, target: int = TURN) -> None:
        self.now = now
        self.most = most
        self.target = target
        self.allowed = FIRST
        self.given = 0  # messages in the last slice
        self.given_at = 0
        self.ran_at = 0  # the last known time at which the loop ran other tasks

    def adapt(self) -> bool:
        """Adapt the size after the last slice.  Returns whether the loop must run other tasks before the next one."""
        now = self.now()
        took = now - self.given_at
        if took > self.target:
            self.allowed = max(1, self.given * self.target // took)
        elif 2 * took < self.target:
            self._grow()
        self.given_at = now
        return now - self.ran_at >= TURN

    def ran(self) -> None:
        """The loop has run other tasks."""
        self.given_at = self.ran_at = self.now()

    def let_run(self) -> None:
        """The loop has run other tasks since the last slice, because the program suspended its task."""
        self._grow()
        self.ran()

    def _grow(self) -> None:
        if self.given == self.allowed:
            self.allowed = min(2 * self.allowed, self.most)
