"""causal: a message that its sender delivered before sending another is delivered before the other at every member that
shares the view.

This promise follows from total-order, gap-free-prefix and virtual-synchrony, and is not judged where one of these is
broken.
"""

from __future__ import annotations

from typing import Final

from pygroups.core.address import Address
from pygroups.core.events import Marks
from pygroups.core.view import ViewId

from .facts import Check, Delivery, Viewed
from .messages import Messages
from .states import forgotten

FOLLOWS_FROM: Final = ("total-order", "gap-free-prefix", "virtual-synchrony", "fifo", "initial-view", "merge-announced")


class Causal(Check):
    """Each message has a vector: per origin, the mark of its sender's deliveries at the time of sending."""

    promises = ("causal",)

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.before: dict[Address, list[Marks]] = {}  # vectors, per origin and number
        self.views: dict[Address, dict[ViewId, None]] = {}  # all views of each member
        self.members: dict[ViewId, tuple[Address, ...]] = {}
        self.met: dict[Address, dict[Address, None]] = {}  # per member, all processes that were in a view with it
        self.founders: dict[Address, None] = {}  # members that began without a given state
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"causal": self.judged}

    def viewed(self, view: Viewed) -> None:
        if view.member not in self.views and view.digest is None:
            self.founders[view.member] = None
        self.views.setdefault(view.member, {})[view.id] = None
        self.members[view.id] = view.members
        self.met.setdefault(view.member, {}).update(dict.fromkeys(view.members))

    def accepted(self, member: Address, to: Address | None, number: int, payload: bytes) -> None:
        if to is None:
            vectors = self.before.setdefault(member, [])
            vector = dict(self.messages.next.get(member, {}))
            vectors += [vector] * (number - len(vectors))

    def delivered(self, delivery: Delivery) -> None:
        origin, member, last = delivery.origin, delivery.member, delivery.first + delivery.count - 1
        vectors = self.before.get(origin)
        if vectors is None or not 0 < last <= len(vectors):
            return  # never sent: integrity reports this
        self.judged += 1
        had = self.messages.next[member]
        for cause, mark in vectors[last - 1].items():
            if mark > had.get(cause, 1) and cause != origin and self._counts(delivery, cause):
                detail = (
                    f"the sender had delivered {cause}#{mark - 1} before it sent this message, and this member has not"
                )
                message = (origin, delivery.first)
                self.broken("causal", detail, member=member, other=cause, message=message, view=delivery.view)

    def _counts(self, delivery: Delivery, cause: Address) -> bool:
        """Whether `cause` must be delivered before.  The sender must be in this view.  A given state may omit an
        origin that left long ago, and any origin outside the view if its provider knows `marks_max` of these."""
        view, member = delivery.view, delivery.member
        if view is None or view not in self.views.get(delivery.origin, {}):
            return False
        if forgotten(cause, self.messages.next[member], self.members[view], self.around.config.marks_max):
            return False
        return cause in self.messages.next[member] or cause in self.met[member] or member in self.founders
