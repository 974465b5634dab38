"""The deadlines of keys and leases as this process sees them.

The coordinator acts on a deadline, by a command that all members apply at the same place.  If the key is still there
AGAIN seconds later, the next member in rank acts too, and so on: the coordinator may be a program without blocks.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from .news import Armed
from .replica import Replica
from .wire import BlockKey

AGAIN: Final = 2.0  # seconds until a command that made nothing due is sent again
MOST: Final = 1_000  # keys in a command
STALE: Final = 1_024  # deadlines that may mean nothing, beside as many as there were after the last sweep


class Deadline(NamedTuple):
    at: float
    number: int  # of equal times the first one first
    block: BlockKey
    key: Any
    version: int
    tries: int  # the members that have had their turn


class Deadlines:
    """A heap of deadlines.  A key that was written again has a later one too; its earlier one means nothing."""

    def __init__(self) -> None:
        self._heap: list[Deadline] = []
        self._count = 0
        self._swept = 0  # deadlines after the last sweep

    def arm(self, now: float, armed: Armed, replica: Replica) -> None:
        self._push(now + armed.seconds, armed.block, armed.key, armed.version, 0)
        if len(self._heap) > 2 * self._swept + STALE:
            self._heap = [deadline for deadline in self._heap if _counts(deadline, replica)]
            heapq.heapify(self._heap)
            self._swept = len(self._heap)

    def begin_again(self, now: float, armed: Iterable[tuple[BlockKey, object, int, float]]) -> None:
        """Forget all, and count all these from now: a deadline may come late, and never early."""
        self._heap = []
        for block, key, version, seconds in armed:
            self._push(now + seconds, block, key, version, 0)

    def _push(self, at: float, block: BlockKey, key: object, version: int, tries: int) -> None:
        self._count += 1
        heapq.heappush(self._heap, Deadline(at, self._count, block, key, version, tries))

    @property
    def next(self) -> float | None:
        """The time of the first deadline; None: there is none."""
        return self._heap[0].at if self._heap else None

    def due(self, now: float, replica: Replica, rank: int) -> dict[BlockKey, list[tuple[Any, int]]]:
        """The keys whose time is over and for which the member of this rank acts, by block, at most MOST for each.
        All are due again after AGAIN, if nobody makes them due for all."""
        found: dict[BlockKey, list[tuple[Any, int]]] = {}
        again: list[Deadline] = []
        while self._heap and self._heap[0].at <= now:
            deadline = heapq.heappop(self._heap)
            if not _counts(deadline, replica):
                continue
            again.append(deadline)
            if deadline.tries < rank:
                continue
            found.setdefault(deadline.block, []).append((deadline.key, deadline.version))
            if len(found[deadline.block]) == MOST:
                break
        for _, _, block, key, version, tries in again:
            self._push(now + AGAIN, block, key, version, tries + 1)
        return found


def _counts(deadline: Deadline, replica: Replica) -> bool:
    """Whether nobody has written, renewed or released the key since."""
    machine = replica.machines.get(deadline.block)
    return machine is not None and machine.is_due(deadline.key, deadline.version)
