"""gap-announced: a member delivers each message of an origin in order, or announces that it never comes.

In a group whose views are hints a member may announce a gap at any time.
"""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import Gap

from .facts import Delivery, Viewed
from .messages import Messages


class GossipMessages(Messages):
    """The promises about multicasts, with gaps that no merge causes."""

    promises = ("run-identity", "integrity", "no-duplication", "fifo", "gap-announced")

    def __init__(self) -> None:
        super().__init__()
        self.missed = 0  # announced messages at a member
        self.gaps = 0

    def facts(self) -> dict[str, int]:
        return dict.fromkeys(self.promises, self.judged) | {"gap-announced": self.judged + self.gaps}

    def viewed(self, view: Viewed) -> None:
        if view.digest is not None:
            self.next[view.member] = dict(view.digest)

    def gap_announced(self, member: Address, gap: Gap) -> None:
        """The gap must begin with the next message: the messages before it were delivered, or were announced."""
        marks = self.next.setdefault(member, {})
        expected = marks.get(gap.origin, 1)
        self.gaps += 1
        self.missed += gap.count
        if gap.first != expected or gap.count < 1:
            detail = f"the announced gap is {gap.count} messages from {gap.first} on, and {expected} is the next one"
            self.broken("gap-announced", detail, member=member, message=(gap.origin, gap.first))
        sent = len(self.sent.get(gap.origin, ()))
        if gap.next > sent + 1:
            detail = f"the announced gap ends with message {gap.next - 1}, and the origin sent {sent}"
            self.broken("gap-announced", detail, member=member, message=(gap.origin, gap.first))
        marks[gap.origin] = max(expected, gap.next)

    def _out_of_turn(self, delivery: Delivery, expected: int) -> None:
        if delivery.first > expected:
            detail = f"message {delivery.first} is delivered, and no gap was announced from {expected} on"
            message = (delivery.origin, delivery.first)
            self.broken("gap-announced", detail, member=delivery.member, message=message, view=delivery.view)
        super()._out_of_turn(delivery, expected)

    def ended(self, member: Address, reason: str, unknown: range | None) -> None:
        """A gossip reports nothing about the messages of a member that leaves."""
