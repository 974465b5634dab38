"""How many messages a reader is given before the event loop gets a turn.

A program that handles each message without an `await` that suspends would otherwise keep the loop for as long as
anything is queued: no heartbeat leaves this member, and the others remove it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pygroups.core.limits import MILLISECOND

TURN: Final = 5 * MILLISECOND  # the loop gets a turn when the program has run for so long
FIRST: Final = 16  # messages in the first slice, before anything was measured


class Pace:
    """Adapts the size of a slice to how long the program takes for a message; the clock is read once for a slice.

    `most`: messages in a slice at most; `target`: the microseconds that a slice may take.
    """

    def __init__(self, now: Callable[[], int], most: int, target: int = TURN) -> None:
        self.now = now
        self.most = most
        self.target = target
        self.allowed = FIRST
        self.given = 0  # messages in the last slice
        self.given_at = 0
        self.ran_at = 0  # when the loop had a turn last, as far as is known

    def is_late(self) -> bool:
        """The program asks for more: learn from the last slice, and say whether the loop is to have a turn first."""
        now = self.now()
        took = now - self.given_at
        if took > self.target:
            self.allowed = max(1, self.given * self.target // took)
        elif 2 * took < self.target:
            self._grow()
        self.given_at = now
        return now - self.ran_at >= TURN

    def ran(self) -> None:
        """The loop has had a turn."""
        self.given_at = self.ran_at = self.now()

    def let_run(self) -> None:
        """The program asks for more, and has let the loop run meanwhile."""
        self._grow()
        self.ran()

    def _grow(self) -> None:
        if self.given == self.allowed:
            self.allowed = min(2 * self.allowed, self.most)
