"""A promise about journals: journal-first."""

from __future__ import annotations

from collections.abc import Sequence

from pygroups.core.address import Address
from pygroups.core.events import Marks

from .facts import Check, Delivery, Written


class JournalFirst(Check):
    """When a message is delivered, its sender's journal already contains the sending, and its receiver's journal the
    delivery.  A process that crashes has therefore recorded everything that other processes can know of it."""

    promises = ("journal-first",)

    def __init__(self) -> None:
        self.sent: Marks = {}  # per origin, the number after the last recorded sending
        self.had: dict[Address, Marks] = {}  # per member and origin, the number after the last recorded delivery
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"journal-first": self.judged}

    def written(self, member: Address, records: Sequence[Written]) -> None:
        for kind, _, fields in records:
            if kind == "send":
                self.sent[member] = fields["first"] + fields["count"]
            elif kind == "deliver":
                origin = Address(fields["origin"], fields["origin_incarnation"])
                self.had.setdefault(member, {})[origin] = fields["first"] + fields["count"]

    def delivered(self, delivery: Delivery) -> None:
        if not self.around.journals:
            return
        self.judged += 1
        member, origin, following = delivery.member, delivery.origin, delivery.first + delivery.count
        if following > (sent := self.sent.get(origin, 1)):
            detail = "it is delivered, and the journal of its sender does not say that it was sent"
            self.broken("journal-first", detail, member=member, other=origin, message=(origin, sent))
        if following > (had := self.had.get(member, {}).get(origin, delivery.first)):
            detail = "it is delivered, and the journal of its receiver does not say so"
            self.broken("journal-first", detail, member=member, message=(origin, had))
