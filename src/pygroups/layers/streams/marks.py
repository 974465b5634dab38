"""Functions for layers that follow origins from view to view.  They forget old origins, and find the runs beyond the
end of a view."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pygroups.core.address import Address
from pygroups.core.events import Positions
from pygroups.core.run import Run


def forget_outside(marks: dict[Address, Any], members: Collection[Address], most: int) -> None:
    """Keep of the origins outside the view the `most` that were in a view last: a former member's late runs must not be
    delivered again.  A layer calls this function in each view.  `marks` is sorted by the last view of its origins."""
    for member in members:
        if member in marks:
            marks[member] = marks.pop(member)
    if len(marks) > most:
        outside = [origin for origin in marks if origin not in members]
        for origin in outside[: max(0, len(outside) - most)]:
            del marks[origin]


def before_cut(run: Run, cut: Positions | None) -> bool:
    """Whether a run of a stream belongs to the view that ends at `cut`.  If the cut is not known (None), every run
    does."""
    return cut is None or (run.stream is not None and run.seq < cut.get(run.stream, 0))
