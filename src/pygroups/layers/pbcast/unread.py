"""The delivered messages that the application has not read: no sender waits for them, so this member limits them."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from pygroups.core.address import Address
from pygroups.core.events import Marks
from pygroups.core.run import Run
from pygroups.core.tables import Tables

from .store import size_of


class Unread:
    """The delivered runs, in the order of their delivery."""

    __slots__ = ("bytes_held", "limit", "marks", "runs")

    tables: ClassVar[Tables] = {
        "marks": "marks",
        "runs": "unread",
        "runs[]": "fixed",
    }

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.runs: deque[tuple[Address, int, int]] = deque()  # the origin, the number after the last, and the bytes
        self.marks: Marks = {}  # what the application has read; only of origins in `runs`
        self.bytes_held = 0

    @property
    def is_full(self) -> bool:
        """Whether this member takes no message of others, until the application reads."""
        return self.bytes_held > self.limit

    def delivered(self, run: Run) -> None:
        """A run was handed up."""
        assert run.origin is not None
        self.runs.append((run.origin, run.next, size_of(run)))
        self.bytes_held += size_of(run)

    def consumed(self, marks: Marks) -> None:
        """The application has read all messages below these marks."""
        self.marks |= marks
        while self.runs and self.marks.get(self.runs[0][0], 0) >= self.runs[0][1]:
            self.bytes_held -= self.runs.popleft()[2]
        if not self.runs:
            self.marks = {}
