"""Promises about each multicast: run-identity, integrity, no-duplication, fifo, multicast-reported."""

from __future__ import annotations

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Gap, Marks
from pygroups.core.run import unpack
from pygroups.core.view import ViewId

from .facts import Check, Delivery, Viewed

Key = tuple[Address, int]  # origin and first number: which run


def unpacked(body: bytes) -> list[bytes]:
    """The payloads of a body; none for a damaged body."""
    try:
        return unpack(body)
    except (msgspec.DecodeError, ValueError):
        return []


class Messages(Check):
    """Each delivered multicast was sent, is delivered once, in the order of its origin, without gaps, and at its
    stated position in the view."""

    promises = ("run-identity", "integrity", "no-duplication", "fifo", "multicast-reported")

    def __init__(self) -> None:
        self.sent: dict[Address, list[bytes]] = {}  # the payloads of each origin's application, from number 1
        self.runs: dict[Key, bytes] = {}  # the body of each run, which is the same at all members
        self.first: dict[Key, Address] = {}  # the first member that delivered each run
        self.next: dict[Address, Marks] = {}  # per member and origin, the number after the highest one
        self.holes: dict[tuple[Address, Address], list[range]] = {}  # per member and origin, the skipped numbers
        self.places: dict[Address, tuple[ViewId | None, int]] = {}  # per member, its view and deliveries in it
        self.judged = 0
        self.reports = 0

    def facts(self) -> dict[str, int]:
        runs = dict.fromkeys(("run-identity", "integrity", "no-duplication", "fifo"), self.judged)
        return {**runs, "multicast-reported": self.reports}

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        if to is not None:
            return
        payloads = self.sent.setdefault(member, [])
        payloads.append(payload)
        if number != len(payloads):
            detail = f"multicast {len(payloads)} of this member got the number {number}"
            self.broken("integrity", detail, member=member, message=(member, number))
            payloads[-1:] = [b""] * (number - len(payloads)) + [payload]

    def viewed(self, view: Viewed) -> None:
        if view.digest is not None:
            self.next[view.member] = dict(view.digest)
            for pair in [pair for pair in self.holes if pair[0] == view.member]:
                del self.holes[pair]
        for gap in view.gaps:
            self._announced(view, gap)

    def _announced(self, view: Viewed, gap: Gap) -> None:
        """The member announces messages that it never delivers: they begin right after those that it has, and only a
        merge leaves out messages."""
        marks = self.next.setdefault(view.member, {})
        expected = marks.get(gap.origin, 1)
        message = (gap.origin, gap.first)
        if not view.subgroups:
            for promise in ("self-delivery", "fifo") if gap.origin == view.member else ("fifo",):
                detail = "the member announces a gap in a view that is no merge"
                self.broken(promise, detail, member=view.member, message=message, view=view.id)
        if gap.first != expected or gap.count < 1:
            detail = f"the announced gap is {gap.count} messages from {gap.first} on, and {expected} is the next one"
            promise = "fifo" if gap.first > expected else "merge-announced"
            self.broken(promise, detail, member=view.member, message=message, view=view.id)
        marks[gap.origin] = max(expected, gap.next)

    def delivered(self, delivery: Delivery) -> None:
        self.judged += 1
        view, place = self.places.get(delivery.member, (None, 0))
        if view != delivery.view:
            place = 0
        self.places[delivery.member] = (delivery.view, place + delivery.count)
        if delivery.position != place:
            self._misplaced(delivery, place)
        if self.runs.get((delivery.origin, delivery.first)) != delivery.body:
            self._look_into(delivery)
        marks = self.next.get(delivery.member)
        if marks is None:
            marks = self.next[delivery.member] = {}
        expected, high = marks.get(delivery.origin, 1), delivery.first + delivery.count
        if delivery.first == expected:
            marks[delivery.origin] = high
        else:
            self._out_of_turn(delivery, expected)
            marks[delivery.origin] = max(expected, high)

    def _misplaced(self, delivery: Delivery, place: int) -> None:
        detail = (
            f"the message was delivered with position {delivery.position} in its view; the next position is {place}"
        )
        message = (delivery.origin, delivery.first)
        self.broken("integrity", detail, member=delivery.member, message=message, view=delivery.view)

    def _look_into(self, delivery: Delivery) -> None:
        """Check the body of a run: at its first delivery against the payloads that its origin sent, later against
        the first body."""
        low, key, member = delivery.first, (delivery.origin, delivery.first), delivery.member
        known = self.runs.setdefault(key, delivery.body)
        first = self.first.setdefault(key, member)
        if known != delivery.body:
            self.broken("run-identity", "one run has two bodies", member=member, other=first, message=key)
        payloads = unpacked(delivery.body)
        sent = self.sent.get(delivery.origin, [])[max(low, 1) - 1 : low - 1 + delivery.count]
        if len(payloads) != delivery.count or low < 1:
            detail = f"a run of {delivery.count} messages has {len(payloads)} payloads"
            self.broken("integrity", detail, member=member, message=key, view=delivery.view)
        elif payloads != sent:
            self.broken(
                "integrity", "the origin did not send this payload", member=member, message=key, view=delivery.view
            )
            if len(sent) == delivery.count and known == delivery.body:
                detail = "one run has two bodies: its origin sent another one"
                self.broken("run-identity", detail, member=member, other=delivery.origin, message=key)

    def _out_of_turn(self, delivery: Delivery, expected: int) -> None:
        """Judge a run that is not the next one of its origin: numbers were skipped, or the run is late, or it is
        repeated."""
        low, high, pair = delivery.first, delivery.first + delivery.count, (delivery.member, delivery.origin)
        holes = self.holes.setdefault(pair, [])
        late = sum(len(range(max(hole.start, low), min(hole.stop, high))) for hole in holes)
        detail = f"message {low} of the origin is delivered; the next one is {expected}"
        again = low < expected and late < min(high, expected) - low
        for promise in ("no-duplication", "fifo") if again else ("fifo",):
            self.broken(promise, detail, member=pair[0], message=(pair[1], low), view=delivery.view)
        outside = [(range(hole.start, min(hole.stop, low)), range(max(hole.start, high), hole.stop)) for hole in holes]
        self.holes[pair] = [hole for parts in [*outside, (range(expected, low),)] for hole in parts if hole]

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        if unknown is None:
            return
        accepted = len(self.sent.get(member, []))
        self.reports += accepted
        unheard = [*self.holes.get((member, member), []), range(self.next.get(member, {}).get(member, 1), accepted + 1)]
        for number in (number for numbers in unheard for number in numbers):
            if number not in unknown:
                detail = (
                    f"the sender did not deliver the message, and the report of unknown messages lacks it: {unknown}"
                )
                self.broken("multicast-reported", detail, member=member, message=(member, number))
                return
