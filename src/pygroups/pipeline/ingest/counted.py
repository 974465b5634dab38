"""Counts the messages that a journal has before each delivery in the delivery's view, so that the writer's own count
(`position`) is checked and not believed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass
class Counting:
    """The messages that the journal has so far in `view` (a key). None in `count`: a table from before this count."""

    view: int | None = None
    count: int | None = 0

    def follow(
        self, views: NDArray[np.int64], nulls: NDArray[np.bool_], counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The numbers before each of some deliveries that follow one another, and a mask of those without a number: a
        delivery without a view, and the deliveries in a view whose beginning was not counted."""
        if not len(views):
            return np.zeros(0, np.int64), np.zeros(0, np.bool_)
        before = np.cumsum(counts) - counts
        begins = np.flatnonzero(np.append(True, (views[1:] != views[:-1]) | (nulls[1:] != nulls[:-1])))
        rows = np.diff(np.append(begins, len(views)))
        start = -before[begins]
        goes_on = not nulls[0] and (self.view is None or self.view == views[0])
        start[0] += self.count or 0 if goes_on and self.view is not None else 0
        values, unknown = before + np.repeat(start, rows), nulls.copy()
        if goes_on and self.count is None:
            unknown[: rows[0]] = True
        self.view = None if nulls[-1] else int(views[-1])
        self.count = None if unknown[-1] and not nulls[-1] else int(values[-1] + counts[-1])
        return values, unknown
