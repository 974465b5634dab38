"""What holds when all is quiet: view-accuracy, self-delivery, liveness, buffers-drain.

Merging is not built: sides that each made a view stay apart.  So each side is judged by itself: those whose last view
is the same.
"""

from __future__ import annotations

from pygroups.core.address import Address

from .broken import Broken
from .facts import Check, Rest, Viewed
from .messages import Messages


class Quiet(Check):
    """Everybody is in a view with exactly those who are in it too, has everything, and holds nothing."""

    promises = ("view-accuracy", "self-delivery", "liveness", "buffers-drain")

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.last: dict[Address, Viewed] = {}

    def viewed(self, view: Viewed) -> None:
        self.last[view.member] = view

    def settled(self, rests: list[Rest]) -> None:
        for rest in rests:
            self._in_a_view(rest)
        for rest in rests:
            self._same_view(rest, rests)
        for rest in rests:
            self._heard_all(rest, rest)
        for rest in rests:
            for other in rests:
                if self.last[rest.member].id == self.last[other.member].id:
                    self._heard_all(rest, other)
        for rest in rests:
            self._holds_nothing(rest)

    def _in_a_view(self, rest: Rest) -> None:
        if rest.leaving:
            raise Broken("liveness", "it wanted to leave and is still there", member=rest.member)
        view = self.last.get(rest.member)
        if view is None:
            raise Broken("liveness", "it waits to join", member=rest.member)
        if rest.blocked:
            raise Broken("liveness", "it is stopped for a view that does not come", member=rest.member, view=view.id)

    def _same_view(self, rest: Rest, rests: list[Rest]) -> None:
        view = self.last[rest.member]
        here = {other.member: None for other in rests if self.last[other.member].id == view.id}
        for member in view.members:
            if member not in here:
                detail = "a view still has a member that is not in it any more"
                raise Broken("view-accuracy", detail, member=rest.member, other=member, view=view.id)

    def _heard_all(self, rest: Rest, origin: Rest) -> None:
        next_number = self.messages.next.get(rest.member, {}).get(origin.member, 1)
        if next_number < origin.accepted:
            promise = "self-delivery" if rest.member == origin.member else "liveness"
            message = (origin.member, next_number)
            raise Broken(promise, "it was sent and not delivered", member=rest.member, message=message)
        if rest.unsent:
            raise Broken("liveness", f"{rest.unsent} payloads wait for the window to open", member=rest.member)

    def _holds_nothing(self, rest: Rest) -> None:
        held = {name: value for name, value in rest.gauges.items() if value}
        if held:
            detail = "it still holds " + ", ".join(f"{name}={value}" for name, value in held.items())
            raise Broken("buffers-drain", detail, member=rest.member)
