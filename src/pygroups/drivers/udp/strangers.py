"""Which datagrams a member with a secret reads during a flood.

A datagram from a place that authentic frames came from is read.  Of all other places together a member reads
STRANGERS_PER_SECOND datagrams, and beyond them one of READ_ONE_OF: the rest is dropped before anything looks into it,
for the price of its system call.  A process that is not known yet repeats its questions, and is then heard.
Note: docs/drivers.md, docs/decisions/0189.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..sockets import SocketAddress

STRANGERS_PER_SECOND: Final = 1_024
READ_ONE_OF: Final = 16


class Strangers:
    """The places that authentic frames came from, at most `limit`; and what is left to read of other places.  `count`
    gets the datagrams that were not read."""

    __slots__ = ("_count", "_dropped", "_filled_at", "_left", "_limit", "known")

    def __init__(self, limit: int, count: Callable[[str, int], None]) -> None:
        self.known: dict[SocketAddress, None] = {}  # the oldest first
        self._count = count
        self._dropped = 0
        self._limit = limit
        self._left = float(STRANGERS_PER_SECOND)
        self._filled_at = 0.0

    def admit(self, place: SocketAddress, now: float, count: int = 1) -> bool:
        """Count `count` datagrams that came from `place` at once, at `now` (seconds).  Returns whether to read them."""
        if place in self.known:
            return True
        left = min(STRANGERS_PER_SECOND, self._left + (now - self._filled_at) * STRANGERS_PER_SECOND)
        self._filled_at = now
        if left >= 1.0:
            self._left = left - count
            return True
        self._left = left
        self._dropped += count
        if self._dropped < READ_ONE_OF * count:
            return False
        self._count("datagrams of unknown places that were not read in a flood", self._dropped - count)
        self._dropped = 0
        return True

    def heard(self, place: SocketAddress) -> None:
        """An authentic frame came from `place`."""
        if place not in self.known:
            self.known[place] = None
            if len(self.known) > self._limit:
                del self.known[next(iter(self.known))]
