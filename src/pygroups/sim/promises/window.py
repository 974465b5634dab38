"""window-bound: a member has at most one window of multicasts that at least one other member has not read."""

from __future__ import annotations

from collections import deque

from pygroups.core.address import Address
from pygroups.core.events import Marks

from .facts import Check, Viewed
from .messages import Messages


class WindowBound(Check):
    """Counts each member's multicasts that the slowest other member of its view has not read."""

    promises = ("window-bound",)

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.views: dict[Address, Viewed] = {}
        self.first: dict[Address, int] = {}  # per member, its first message for a joiner of its view
        self.read: dict[Address, Marks] = {}  # per member and origin, the first unread number
        self.gaps: dict[tuple[Address, Address], dict[int, int]] = {}  # per member and origin, begins and ends of gaps
        self.unread: dict[Address, deque[tuple[int, int]]] = {}  # per sender, the numbers and sizes of unread messages
        self.sizes: dict[Address, int] = {}  # the sums of these sizes
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"window-bound": self.judged}

    def viewed(self, view: Viewed) -> None:
        member = view.member
        self.views[member] = view
        self.first[member] = self.messages.next.get(member, {}).get(member, 1)
        if view.digest is not None:
            self.read[member] = dict(view.digest)
        for gap in view.gaps:
            self.gaps.setdefault((member, gap.origin), {})[gap.first] = gap.next

    def consumed(self, member: Address, marks: Marks) -> None:
        read = self.read.setdefault(member, {})
        for origin, mark in marks.items():
            read[origin] = max(mark, read.get(origin, 1))

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        view = self.views.get(member)
        if to is not None or view is None:
            return
        self.judged += 1
        unread = self.unread.setdefault(member, deque())
        size = packed_size(len(payload))
        unread.append((number, size))
        total = self.sizes.get(member, 0) + size
        low = min((self._read_by(other, view) for other in view.members if other != member), default=number)
        while unread and unread[0][0] < low:
            total -= unread.popleft()[1]
        self.sizes[member] = total
        window = self.around.config.window
        if total > window and len(unread) > 1:
            detail = f"{total:,} unread bytes, from message {unread[0][0]} on; the window is {window:,} bytes"
            self.broken("window-bound", detail, member=member, message=(member, number), view=view.id)

    def _read_by(self, other: Address, view: Viewed) -> int:
        """The number below which the application of `other` has read all multicasts of the sender of `view` that it
        receives."""
        read = self.read.get(other, {}).get(view.member, 1)
        gaps = self.gaps.get((other, view.member), {})
        while read in gaps:
            read = gaps[read]  # the messages of a gap never come
        if self._comes_with_a_gap(other, view, read):
            read = max(read, view.merged.get(view.member, (1, 0))[0])
        came = other in view.transitional or any(other in side.members for side in view.subgroups)
        return read if came else max(read, self.first[view.member])

    def _comes_with_a_gap(self, other: Address, view: Viewed, read: int) -> bool:
        """Whether `other` has read all multicasts of the sender that it delivered, and has not installed this merged
        view yet, to which it comes from another view than the sender.  Then the messages that it lacks are a gap."""
        here = self.views.get(other)
        ahead = bool(view.subgroups) and (here is None or here.id < view.id) and other not in view.transitional
        return ahead and read >= self.messages.next.get(other, {}).get(view.member, 1)


def packed_size(size: int) -> int:
    """The size of a payload within a run's body, in bytes."""
    return size + (2 if size < 1 << 8 else 3 if size < 1 << 16 else 5)
