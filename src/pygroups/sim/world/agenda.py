"""Virtual time: the entries to come, and their times.  Entries of one time run in the order in which they were
added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Any, Final

from pygroups.core.limits import SECOND

from ..promises.broken import Broken

PER_SECOND_MAX: Final = 400_000  # entries in a second of virtual time; more of them are an endless storm
LAST: Final = 1 << 62  # a place behind all other entries of that time
Entry = tuple[int, int, Callable[..., None], tuple[Any, ...]]  # time, place in that time, function, arguments


class Agenda:
    """Virtual time in microseconds from 0; time passes only from one entry to the next."""

    def __init__(self) -> None:
        self.now = 0
        self.done = 0  # number of entries that have run
        self._heap: list[Entry] = []
        self._noted = 0
        self._plan: Iterator[Entry] = iter(())

    def at(self, when: int, do: Callable[..., None], *args: Any) -> None:
        """Call `do(*args)` at `when`, or now if that time has passed."""
        self._noted += 1
        heappush(self._heap, (when if when > self.now else self.now, self._noted, do, args))

    def after(self, delay: int, do: Callable[..., None], *args: Any) -> None:
        """Call `do(*args)` in `delay` microseconds."""
        self.at(self.now + delay, do, *args)

    def next(self) -> int | None:
        """Return the time of the next entry; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def plan(self, entries: Iterable[tuple[int, Callable[..., None], tuple[Any, ...]]]) -> None:
        """Add the entries that are known at the start, instead of one `at` for each.  A planned entry runs before
        all entries of its time that are added later.  Only the next planned entry is in the heap, so that other
        entries cost less."""
        ordered = sorted(entries, key=lambda entry: entry[0])
        first = self._noted + 1
        self._noted += len(ordered)
        self._plan = iter([(when, first + place, do, args) for place, (when, do, args) in enumerate(ordered)])
        self._put_next()

    def _put_next(self) -> None:
        for when, place, do, args in self._plan:
            heappush(self._heap, (when, place, self._planned, (do, args)))
            return

    def _planned(self, do: Callable[..., None], args: tuple[Any, ...]) -> None:
        self._put_next()
        do(*args)

    def run_until(self, limit: int) -> None:
        """Run all entries that are due until `limit`; the time is `limit` afterwards."""
        heap, pop = self._heap, heappop
        most = PER_SECOND_MAX * (1 + (limit - self.now) // SECOND)
        end: Entry = (limit, LAST, _nothing, ())
        heappush(heap, end)
        for done in range(most):
            entry = pop(heap)
            if entry is end:
                self.done += done
                self.now = limit
                return
            self.now, _, do, args = entry
            do(*args)
        raise Broken(
            "liveness",
            f"more than {most:,} events before {limit} us of virtual time: a member repeats an event without end",
        )


def _nothing() -> None:
    """The function of the entry that ends `run_until`; it is called if an exception left that entry in the heap."""
