"""What each message promises: run-identity, integrity, no-duplication, fifo, multicast-reported."""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import Marks
from pygroups.core.run import unpack

from .broken import Broken
from .facts import Check, Delivery, Viewed


class Messages(Check):
    """What is delivered was sent so, once, in the order sent and without holes."""

    promises = ("run-identity", "integrity", "no-duplication", "fifo", "multicast-reported")

    def __init__(self) -> None:
        self.sent: dict[Address, list[bytes]] = {}  # what each origin's application handed in, from number 1
        self.runs: dict[tuple[Address, int], bytes] = {}  # the body that stands for a run everywhere
        self.next: dict[Address, Marks] = {}  # per member and origin, the number of the first message not had

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        if to is None:
            payloads = self.sent.setdefault(member, [])
            payloads.append(payload)
            if number != len(payloads):
                detail = f"message number {len(payloads)} was given the number {number}"
                raise Broken("integrity", detail, member=member, message=(member, number))

    def viewed(self, view: Viewed) -> None:
        if view.digest is not None:
            self.next[view.member] = dict(view.digest)

    def delivered(self, delivery: Delivery) -> None:
        key = (delivery.origin, delivery.first)
        body = self.runs.get(key)
        if body is None:
            self._learn(delivery)
        elif body != delivery.body:
            raise Broken("run-identity", "one run, two bodies", member=delivery.member, message=key, view=delivery.view)
        marks = self.next.get(delivery.member)
        if marks is None:
            marks = self.next[delivery.member] = {}
        expected = marks.get(delivery.origin, 1)
        if delivery.first != expected:
            promise = "no-duplication" if delivery.first < expected else "fifo"
            detail = f"number {delivery.first} is delivered, {expected} is the next one"
            raise Broken(promise, detail, member=delivery.member, message=key, view=delivery.view)
        marks[delivery.origin] = delivery.first + delivery.count

    def _learn(self, delivery: Delivery) -> None:
        """A run that is seen for the first time must be what its origin's application sent."""
        low, key = delivery.first, (delivery.origin, delivery.first)
        payloads = unpack(delivery.body)
        if len(payloads) != delivery.count or low < 1:
            detail = f"{len(payloads)} payloads in a run of {delivery.count}"
            raise Broken("integrity", detail, member=delivery.member, message=key, view=delivery.view)
        if payloads != self.sent.get(delivery.origin, [])[low - 1 : low - 1 + delivery.count]:
            raise Broken(
                "integrity", "its origin did not send that", member=delivery.member, message=key, view=delivery.view
            )
        self.runs[key] = delivery.body

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        if unknown is None:
            return
        delivered = self.next.get(member, {}).get(member, 1)
        for number in range(delivered, len(self.sent.get(member, [])) + 1):
            if number not in unknown:
                detail = f"not delivered to its sender, nor among what it was told is unknown: {unknown}"
                raise Broken("multicast-reported", detail, member=member, message=(member, number))
