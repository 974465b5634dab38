"""slow-exclusion: only a member whose application has read nothing for long enough is excluded by policy."""

from __future__ import annotations

from collections import deque
from typing import Final

from pygroups.core.address import Address
from pygroups.core.events import Marks
from pygroups.core.layer import NEVER
from pygroups.core.limits import SECOND

from .facts import Check, Delivery, Viewed

NEWS: Final = 1 * SECOND  # the longest time until a sender learns that its messages were read
MILLE: Final = 1_000  # a clock can run faster by one in so many


class SlowExclusion(Check):
    """A member is excluded by policy only if another member has asked for the exclusion.  While no fault makes a
    running process look dead, a member asks for an exclusion only if the slow member has left messages of the asking
    member unread for `slow_exclude`, and has read no message of any sender in this time."""

    promises = ("slow-exclusion",)

    def __init__(self) -> None:
        self.undisturbed = True
        self.sent: dict[Address, deque[tuple[int, int]]] = {}  # per sender, numbers and times of the last multicasts
        self.read: dict[Address, Marks] = {}  # per member and origin, the first unread number
        self.given: dict[Address, Marks] = {}  # and the number after the last message that was delivered
        self.reads: dict[Address, deque[int]] = {}  # per member, the times of its reads
        self.wanted: dict[Address, None] = {}  # members whose exclusion another one has asked for
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"slow-exclusion": self.judged}

    def disturbed(self) -> None:
        self.undisturbed = False

    def viewed(self, view: Viewed) -> None:
        for member in view.expelled:
            if member not in self.wanted:
                self.broken("slow-exclusion", "the member was excluded, and no member asked for that", member=member)
        read, given = self.read.setdefault(view.member, {}), self.given.get(view.member, {})
        for origin, mark in (view.digest or {}).items():
            if read.get(origin, 1) >= given.get(origin, 1):  # else the application reads first what it was given before
                read[origin] = mark

    def delivered(self, delivery: Delivery) -> None:
        self.given.setdefault(delivery.member, {})[delivery.origin] = delivery.first + delivery.count

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        if to is None and self.around.config.slow_exclude < NEVER:
            self.sent.setdefault(member, deque()).append((number, self.around.clock()))

    def consumed(self, member: Address, marks: Marks) -> None:
        if self.around.config.slow_exclude == NEVER:
            return
        read, now = self.read.setdefault(member, {}), self.around.clock()
        for origin, mark in marks.items():
            if mark > read.get(origin, 1):
                read[origin] = mark
                self.reads.setdefault(member, deque()).append(now)

    def replaced(self, member: Address) -> None:
        self.wanted[member] = None

    def asked_out(self, member: Address, other: Address, if_silent: bool) -> None:
        self.wanted[other] = None
        now, after = self.around.clock(), self.around.config.slow_exclude
        if not self.undisturbed or after == NEVER or if_silent:
            return
        self.judged += 1
        since, known = now - after + after // MILLE, now - NEWS
        if any(since < at < known for at in self.reads.get(other, ())):
            self.broken("slow-exclusion", "the member is to be excluded, and has just read", member=other, other=member)
        unread = self.read.get(other, {}).get(member, 1)
        waits = next((at for number, at in self.sent.get(member, ()) if number >= unread), now)
        if waits > since:
            detail = f"the member is to be excluded, and its oldest unread message is {now - waits} us old"
            self.broken("slow-exclusion", detail, member=other, other=member)
