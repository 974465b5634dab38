"""Virtual time: what happens next, and when.  Ties are dealt with in the order in which they were noted."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Final

from pygroups.core.limits import SECOND

from .promises.broken import Broken

PER_SECOND_MAX: Final = 400_000  # entries in a second of virtual time: more is a storm that does not end


class Agenda:
    """Time in microseconds from 0; it passes only from one entry to the next."""

    def __init__(self) -> None:
        self.now = 0
        self.done = 0  # entries so far
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._noted = 0

    def at(self, when: int, do: Callable[..., None], *args: Any) -> None:
        """Call `do(*args)` at `when`, or now if that is over."""
        self._noted += 1
        heapq.heappush(self._heap, (max(when, self.now), self._noted, do, args))

    def after(self, delay: int, do: Callable[..., None], *args: Any) -> None:
        """Call `do(*args)` in `delay` microseconds."""
        self.at(self.now + delay, do, *args)

    def run_until(self, limit: int) -> None:
        """Let everything happen that is due until `limit`, which is then."""
        heap, pop = self._heap, heapq.heappop
        done, most = 0, PER_SECOND_MAX * (1 + (limit - self.now) // SECOND)
        while heap and heap[0][0] <= limit:
            self.now, _, do, args = pop(heap)
            do(*args)
            done += 1
            if done > most:
                raise Broken("liveness", f"{done:,} things happen before {limit} us, and it goes on: a storm")
        self.done += done
        self.now = limit
