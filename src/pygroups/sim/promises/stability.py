"""stability-safety: what a member is told is stable was delivered by every member of its view."""

from __future__ import annotations

from pygroups.core.address import Address

from .broken import Broken
from .facts import Check, Viewed
from .messages import Messages


class Stability(Check):
    """Members that have not installed the view yet are on their way to it with everything; they are not judged."""

    promises = ("stability-safety",)

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.last: dict[Address, Viewed] = {}
        self.told: dict[Address, int] = {}

    def viewed(self, view: Viewed) -> None:
        self.last[view.member] = view

    def reached(self, member: Address, delivered: int, stable: int) -> None:
        view = self.last.get(member)
        if view is None or stable <= self.told.get(member, 1):
            return
        self.told[member] = stable
        for other in view.members:
            there = self.last.get(other)
            if there is None or there.id != view.id:
                continue
            has = self.messages.next.get(other, {}).get(member, 1)
            if has < stable:
                detail = "its origin is told that everybody delivered it"
                raise Broken("stability-safety", detail, member=other, message=(member, has), view=view.id)
