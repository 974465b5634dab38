"""stability-safety: every member of a view delivered the messages that votes let its members purge.

Members write their journals before they vote, so a crashed member that voted has delivered these messages too.
"""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import Positions
from pygroups.core.view import ViewId

from .facts import Check, Delivery, Viewed
from .messages import Messages


class DeliveredUpTo:
    """The position up to which one member delivered the streams of one view."""

    __slots__ = ("next", "skipped")

    def __init__(self) -> None:
        self.next: dict[Address | None, int] = {}  # the number after the last delivered one
        self.skipped: dict[tuple[Address | None, int], None] = {}

    def has_all(self, stream: Address, below: int) -> bool:
        return self.next.get(stream, 0) >= below and not self.skipped

    def has(self, stream: Address, number: int) -> bool:
        return number < self.next.get(stream, 0) and (stream, number) not in self.skipped


class StableMessages(Check):
    """Checks the purged messages, and the reports to applications that all members have a message."""

    promises = ("stability-safety",)

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.members: dict[ViewId, tuple[Address, ...]] = {}
        self.last: dict[Address, ViewId] = {}
        self.here: dict[Address, DeliveredUpTo] = {}  # deliveries of each member in its present view
        self.heard: dict[ViewId, dict[Address, DeliveredUpTo]] = {}  # per view, also of crashed members
        self.told: dict[Address, int] = {}
        self.known: dict[ViewId, Positions] = {}  # per view and stream, the position below which all members have it
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"stability-safety": self.judged}

    def viewed(self, view: Viewed) -> None:
        self.members.setdefault(view.id, view.members)
        self.last[view.member] = view.id
        self.here[view.member] = self.heard.setdefault(view.id, {})[view.member] = DeliveredUpTo()

    def delivered(self, delivery: Delivery) -> None:
        here, stream, seq = self.here.get(delivery.member), delivery.stream, delivery.seq
        if here is None:
            return  # initial-view reports this
        expected = here.next.get(stream, 0)
        if seq > expected:
            here.skipped.update(dict.fromkeys((stream, number) for number in range(expected, seq)))
        here.next[stream] = seq + 1

    def purged(self, member: Address, view: ViewId, below: Positions) -> None:
        all_have = self.known.setdefault(view, {})
        for stream, position in below.items():
            known = all_have.get(stream, 0)
            if position > known:
                self._look_at(view, stream, range(known, position))
                all_have[stream] = position

    def _look_at(self, view: ViewId, stream: Address, numbers: range) -> None:
        """Judge the runs with these numbers.  A number that no member delivered has no message."""
        members, heard = self.members.get(view, ()), self.heard.get(view, {})
        for member in members:
            if member not in heard or not heard[member].has_all(stream, numbers.stop):
                break
        else:
            self.judged += len(members) * len(numbers)
            return
        delivered = [number for number in numbers if any(one.has(stream, number) for one in heard.values())]
        self.judged += len(members) * len(delivered)
        for member in members:
            one = heard.get(member) or DeliveredUpTo()
            lacking = [number for number in delivered if not one.has(stream, number)]
            if lacking:
                run = f"run {lacking[0]}, counted from 0, of the stream of {stream}"
                detail = f"{run} was purged, and this member never delivered it"
                self.broken("stability-safety", detail, member=member, view=view)

    def reached(self, member: Address, delivered: int, stable: int) -> None:
        """Judge a report to an origin.  Members that have not installed the view yet are not judged, because they
        get all messages before it."""
        has = self.messages.next.get(member, {}).get(member, 1)
        if delivered > has:
            detail = "the origin learned of its own delivery of the message, and has not delivered the message"
            self.broken("stability-safety", detail, member=member, message=(member, has))
        view = self.last.get(member)
        if view is None or stable <= self.told.get(member, 1):
            return
        self.told[member] = stable
        for other in self.members[view]:
            if self.last.get(other) != view:
                continue
            self.judged += 1
            has = self.messages.next.get(other, {}).get(member, 1)
            if has < stable:
                detail = "the origin learned that all members had delivered the message, and this member had not"
                self.broken("stability-safety", detail, member=other, message=(member, has), view=view)
