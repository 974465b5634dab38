"""The messages that the application has consumed.  The stack gets them once a turn, for the windows of the senders.

A consumed multicast makes no turn due: the marks wait for the next turn, because a turn in which nothing else happens
costs as much as one that delivers a message.  They make a turn due when a sender may wait for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container

from pygroups.core.address import Address
from pygroups.core.events import Consumed, Marks
from pygroups.core.limits import MARKS_MAX
from pygroups.core.top import Delivered


class Consumption:
    """Marks of the consumed messages per origin: of multicasts, and of messages to this member alone."""

    def __init__(
        self, me: Address, schedule: Callable[[], None], later: Callable[[], None], run_min: int, quantum: int
    ) -> None:
        """`schedule` makes a turn due now, and `later` one within some time.  Consumed multicasts of `quantum` bytes
        are reported now."""
        self.me = me
        self.run_min = run_min  # a smaller run counts as so many bytes, as in the window of its sender
        self.quantum = quantum
        self.schedule = schedule
        self.later = later
        self.senders = 0  # tasks of this program that wait for room, perhaps until own multicasts are read
        self.own_read = 0  # bytes of own multicasts that were consumed here
        self._own_unread: deque[tuple[int, int]] = deque()  # the number after the last message of a run, its bytes
        self._multicasts: Marks = {}  # consumed and not reported to the stack yet
        self._unicasts: Marks = {}
        self._bytes = 0  # of the multicasts that were consumed and not reported
        self._had_multicasts: Marks = {}  # consumed, reported or not
        self._had_unicasts: Marks = {}

    def arrived(self, item: Delivered) -> None:
        """Note a delivered run of this member, which is unread."""
        if item.position >= 0:
            self._own_unread.append((item.run.next, max(len(item.run.body), self.run_min)))

    def own_unread_bytes(self) -> int:
        """The bytes of own multicasts that were delivered here and not consumed."""
        return sum([size for _, size in self._own_unread])

    def skipped(self, size: int) -> None:
        """Own multicasts of `size` bytes never come here, so these multicasts no longer fill the window."""
        self.own_read += size
        self.schedule()

    def consume(self, item: Delivered) -> None:
        """Note that the application has consumed this run, and all earlier runs of the same origin."""
        run = item.run
        origin, mark = run.origin, run.first + run.count
        assert origin is not None
        if item.position < 0:
            self._consume_unicast(origin, mark)
            return
        if mark <= self._had_multicasts.get(origin, 0):
            return
        self._had_multicasts[origin] = self._multicasts[origin] = mark
        if origin == self.me:
            unread = self._own_unread
            while unread and unread[0][0] <= mark:
                self.own_read += unread.popleft()[1]
        is_first = not self._bytes
        size = len(run.body)
        self._bytes += size if size > self.run_min else self.run_min
        if self.senders or self._bytes >= self.quantum:
            self.schedule()
        elif is_first:
            self.later()

    def _consume_unicast(self, origin: Address, mark: int) -> None:
        had = self._had_unicasts
        if mark > had.get(origin, 0):
            had[origin] = self._unicasts[origin] = mark
            if len(had) > MARKS_MAX:  # without a group no view forgets them
                del had[next(iter(had))]
            self.schedule()

    def take(self) -> Consumed | None:
        """The messages that were consumed since the last call; None if there are none."""
        if not self._multicasts and not self._unicasts:
            return None
        consumed = Consumed(self._multicasts, self._unicasts)
        self._multicasts, self._unicasts, self._bytes = {}, {}, 0
        return consumed

    def forget_outside(self, members: Container[Address]) -> None:
        """Forget the marks of processes that are not members, because no message of theirs will follow."""
        self._had_multicasts = {origin: mark for origin, mark in self._had_multicasts.items() if origin in members}
        self._had_unicasts = {origin: mark for origin, mark in self._had_unicasts.items() if origin in members}
