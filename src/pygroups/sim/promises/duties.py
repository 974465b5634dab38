"""Duties of time: leave-in-time, repair-in-time, stable-in-time, window-in-time.

A fault excuses a delay, so the duties are judged only in calm periods.  During the measured time no process and no part
of the network is disturbed, and the effects of earlier disturbances are over.  A layer that acts only after a timeout,
or at the next view, keeps every other promise; these checks find it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Marks
from pygroups.core.limits import SECOND, STABLE_QUIET, UNICAST_PERIOD
from pygroups.core.view import ViewId

from .facts import Check, Delivery, Rest, Viewed, WorldFacts
from .messages import Messages

LEAVE: Final = 1 * SECOND  # time for a leave, and twice as much if a view came in the second before it
WINDOW: Final = 1 * SECOND  # time for a window to open after the last reader
PERIODS: Final = 4  # number of periods to retransmit one lost frame


def repair_time(around: WorldFacts) -> int:
    """The longest time for a lone message that loses one frame, in microseconds: four periods and its transit."""
    config = around.config
    return PERIODS * max(config.nakack_period, UNICAST_PERIOD) + 6 * around.trip


def stable_time(around: WorldFacts, then: int) -> int:
    """The longest time from the last delivery, at `then`, until the sender learns of it, in microseconds.  Every
    member votes within a period, and the votes are combined after a pause.  A lost vote is repeated a period later."""
    config = around.config
    lost = around.lost_at is not None and around.lost_at >= then - repair_time(around)
    return config.stable_period * (2 if lost else 1) + STABLE_QUIET + 4 * around.trip


class Leaves(Check):
    """A leaving member is released by the group, and does not have to wait for its own timeout."""

    promises = ("leave-in-time",)

    def __init__(self) -> None:
        self.asked: dict[Address, int] = {}
        self.viewed_at: dict[Address, int] = {}  # time of each member's last view
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"leave-in-time": self.judged}

    def viewed(self, view: Viewed) -> None:
        if view.member not in self.asked:
            self.viewed_at[view.member] = view.at

    def leaving(self, member: Address) -> None:
        self.asked[member] = self.around.clock()

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        asked, now = self.asked.pop(member, None), self.around.clock()
        if asked is None or reason != "left" or not self.around.calm_since(asked):
            return
        self.judged += 1
        viewed_at = self.viewed_at.get(member)
        busy = viewed_at is not None and asked - viewed_at < SECOND  # the number of views per second is limited
        if now - asked > LEAVE * (2 if busy else 1):
            self.broken(
                "leave-in-time", f"the leave took {now - asked} us, although no fault delayed it", member=member
            )


class Lone(msgspec.Struct):
    """A multicast that was sent while no other message of its sender was in transit; in one total order, none of any
    sender."""

    number: int
    view: ViewId
    at: int  # the time of its acceptance, and later of its last delivery
    lacking: dict[Address, None]  # members that have not delivered it


class Repairs(Check):
    """A lone message reaches all members in time, even if it loses a frame, and its sender learns of this in time."""

    promises = ("repair-in-time", "stable-in-time")

    def __init__(self, messages: Messages, *, one_order: bool) -> None:
        self.messages = messages
        self.one_order = one_order  # one order of all senders: a message waits for all messages sent before it
        self.sent: dict[Address, int] = {}  # per sender, the number after its last multicast
        self.views: dict[Address, Viewed] = {}  # of running members
        self.stable: dict[Address, int] = {}  # per sender, the number below which it knows of all deliveries
        self.lone: dict[Address, Lone] = {}
        self.had: dict[Address, Lone] = {}  # messages that all members have, before their sender has learned of it
        self.repairs = 0
        self.told = 0

    def facts(self) -> dict[str, int]:
        return {"repair-in-time": self.repairs, "stable-in-time": self.told}

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        if to is not None:
            return
        self.sent[member] = number + 1
        view = self.views.get(member)
        if view is None or self.stable.get(member, 1) < number or self._waits_for_others(member, view):
            return
        there = all(other in self.views and self.views[other].id == view.id for other in view.members)
        if there and len(payload) <= self.around.config.run_bytes:  # a larger one is many frames, and none is lone
            lacking = dict.fromkeys(view.members)
            self.lone[member] = Lone(number, view.id, self.around.clock(), lacking)

    def _waits_for_others(self, sender: Address, view: Viewed) -> bool:
        """Whether some member lacks an earlier message of another sender, which it must deliver before the next
        message."""
        others = [origin for origin in view.members if origin != sender] if self.one_order else []
        had = [self.messages.next.get(member, {}) for member in view.members]
        return any(marks.get(origin, 1) < self.sent.get(origin, 1) for marks in had for origin in others)

    def delivered(self, delivery: Delivery) -> None:
        lone = self.lone.get(delivery.origin)
        if lone is None or not delivery.first <= lone.number < delivery.first + delivery.count:
            return
        lone.lacking.pop(delivery.member, None)
        if not lone.lacking:
            del self.lone[delivery.origin]
            self._repaired(delivery.origin, delivery.member, lone)
            lone.at = self.around.clock()
            self.had[delivery.origin] = lone

    def _repaired(self, sender: Address, last: Address, lone: Lone) -> None:
        took = self.around.clock() - lone.at
        if not self.around.calm_since(lone.at):
            return
        self.repairs += 1
        if took > repair_time(self.around):
            detail, message = (
                f"the message took {took} us to reach all members, although no fault delayed it",
                (sender, lone.number),
            )
            self.broken("repair-in-time", detail, member=sender, other=last, message=message, view=lone.view)

    def reached(self, member: Address, delivered: int, stable: int) -> None:
        self.stable[member] = stable
        had = self.had.get(member)
        if had is not None and stable > had.number:
            del self.had[member]
            self._told(member, had)

    def _told(self, sender: Address, had: Lone) -> None:
        took = self.around.clock() - had.at
        if not self.around.calm_since(had.at):
            return
        self.told += 1
        if took > stable_time(self.around, had.at):
            detail = (
                f"the sender learned only {took} us after the last delivery, or not yet, that all members delivered"
            )
            self.broken("stable-in-time", detail, member=sender, message=(sender, had.number), view=had.view)

    def settled(self, rests: list[Rest]) -> None:
        now = self.around.clock()
        for sender, had in list(self.had.items()):
            if now - had.at > stable_time(self.around, had.at):
                self._told(sender, had)

    def viewed(self, view: Viewed) -> None:
        self._over(view.member)
        self.views[view.member] = view

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        self._over(member)

    def leaving(self, member: Address) -> None:
        self._over(member)

    def _over(self, member: Address) -> None:
        """Stop the measurements in the view of `member`, because the view changes or the member ends."""
        view = self.views.pop(member, None)
        if view is not None:
            for sender in view.members:
                self.lone.pop(sender, None)
                self.had.pop(sender, None)


class Windows(Check):
    """A sender's window opens when all members have read its messages."""

    promises = ("window-in-time",)

    def __init__(self) -> None:
        self.views: dict[Address, Viewed] = {}
        self.sent: dict[Address, int] = {}  # per sender, the first number that no member delivered
        self.read: dict[Address, Marks] = {}  # per member and origin, the first unread number
        self.waiting: dict[Address, int] = {}  # since when a sender waits, or since when all members have read
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"window-in-time": self.judged}

    def viewed(self, view: Viewed) -> None:
        self.views[view.member] = view
        if view.digest is not None:
            self.read[view.member] = dict(view.digest)
        if view.member in self.waiting:
            self.waiting[view.member] = view.at

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        self.waiting.pop(member, None)
        self.views.pop(member, None)

    def held_up(self, member: Address) -> None:
        self.waiting.setdefault(member, self.around.clock())

    def delivered(self, delivery: Delivery) -> None:
        origin, end = delivery.origin, delivery.first + delivery.count
        if end > self.sent.get(origin, 1):
            self.sent[origin] = end

    def consumed(self, member: Address, marks: Marks) -> None:
        read = self.read.setdefault(member, {})
        for origin, mark in marks.items():
            if mark > read.get(origin, 1):
                read[origin] = mark
                if origin in self.waiting:
                    self.waiting[origin] = self.around.clock()

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        since = self.waiting.pop(member, None) if to is None else None
        if since is None or not self._all_read(member) or not self.around.calm_since(since):
            return
        took = self.around.clock() - since
        self.judged += 1
        if took > WINDOW:
            self.broken(
                "window-in-time",
                f"the window opened {took} us after all members had read the messages in it",
                member=member,
            )

    def _all_read(self, sender: Address) -> bool:
        view, sent = self.views.get(sender), self.sent.get(sender, 1)
        members = view.members if view is not None else ()
        return all(self.read.get(member, {}).get(sender, 1) >= sent for member in members)
