"""A promise about journals: journal-first."""

from __future__ import annotations

from collections.abc import Sequence

from pygroups.core.address import Address
from pygroups.core.events import Marks

from .facts import Check, Delivery, UnicastDelivery, Written


class JournalFirst(Check):
    """When a message is delivered, its sender's journal already contains the sending, and its receiver's journal the
    delivery.  A process that crashes has therefore recorded everything that other processes can know of it.

    The check excuses a member after the report that the member's journal cannot be written."""

    promises = ("journal-first",)

    def __init__(self) -> None:
        self.sent: Marks = {}  # per origin, the number after the last recorded sending
        self.alone: dict[tuple[str, Address, str], int] = {}  # the same of unicasts, by kind, origin and receiver
        self.had: dict[Address, Marks] = {}  # per member and origin, the number after the last recorded delivery
        self.lost: dict[Address, None] = {}  # members that know that their journals lack records
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
            elif kind in ("unicast_send", "unicast_deliver"):
                origin = Address(fields["origin"], fields["origin_incarnation"])
                self.alone[kind, origin, str(fields["peer"])] = fields["first"] + fields["count"]

    def received(self, delivery: UnicastDelivery) -> None:
        if not self.around.journals:
            return
        self.judged += 1
        following = delivery.first + delivery.count
        ends = (("unicast_send", "sender", delivery.origin), ("unicast_deliver", "receiver", delivery.to))
        for kind, whose, writer in ends:
            had = self.alone.get((kind, delivery.origin, str(delivery.to)), 1)
            if writer not in self.lost and following > had:
                detail = f"the message to one member is delivered before the journal of its {whose} has it"
                message = (delivery.origin, delivery.first)
                self.broken("journal-first", detail, member=delivery.member, other=delivery.origin, message=message)

    def journal_lost(self, member: Address) -> None:
        self.lost[member] = None

    def delivered(self, delivery: Delivery) -> None:
        if not self.around.journals:
            return
        self.judged += 1
        member, origin, following = delivery.member, delivery.origin, delivery.first + delivery.count
        if origin not in self.lost and following > (sent := self.sent.get(origin, 1)):
            detail = "the message is delivered before the journal of its sender has the record of its sending"
            self.broken("journal-first", detail, member=member, other=origin, message=(origin, sent))
        if member not in self.lost and following > (had := self.had.get(member, {}).get(origin, delivery.first)):
            detail = "the message is delivered before the journal of its receiver has the record of its delivery"
            self.broken("journal-first", detail, member=member, message=(origin, had))
