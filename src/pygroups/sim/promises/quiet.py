"""Promises at the end, when no fault is active: view-accuracy, self-delivery, liveness, buffers-drain.

Sides that made separate views merge in a stack with MERGE2, and stay apart in another one.  Each side, namely the
members with the same last view, is judged separately.  Where a majority decides each view, there is only one side.
"""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.services import MERGING, PRIMARY

from .facts import Check, Rest, Viewed
from .messages import Messages


class Quiet(Check):
    """Each member is in a view that lists exactly the members that have installed this view.  Each member has all
    messages, and empty buffers."""

    promises = ("view-accuracy", "self-delivery", "liveness", "buffers-drain")

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.last: dict[Address, Viewed] = {}
        self.deadline: int | None = None
        self.rests: list[Rest] = []

    def facts(self) -> dict[str, int]:
        members, own = len(self.rests), sum(rest.accepted - 1 for rest in self.rests)
        return {"view-accuracy": members, "self-delivery": own, "liveness": members, "buffers-drain": members}

    def viewed(self, view: Viewed) -> None:
        self.last[view.member] = view

    def healed(self, deadline: int) -> None:
        self.deadline = deadline

    def settled(self, rests: list[Rest]) -> None:
        self.rests = rests
        for rest in rests:
            self._in_a_view(rest)
        inside = [rest for rest in rests if rest.member in self.last]
        for rest in inside:
            self._same_view(rest, inside)
        if MERGING in self.around.services or PRIMARY in self.around.services:
            self._one_view(inside)
        for rest in inside:
            self._heard_all(rest, rest)
        for rest in inside:
            for other in inside:
                if self.last[rest.member].id == self.last[other.member].id:
                    self._heard_all(rest, other)
        for rest in rests:
            self._holds_nothing(rest)

    def _in_a_view(self, rest: Rest) -> None:
        member = rest.member
        if rest.leaving:
            self.broken("liveness", "the member asked to leave and is still in the group", member=member)
        view = self.last.get(member)
        if view is None:
            self.broken("liveness", "the process still waits to join", member=member)
            self.broken("view-accuracy", "no fault is left, and the process is in no view", member=member)
            return
        if rest.blocked:
            self.broken(
                "liveness", "the member is blocked for a view change that does not end", member=member, view=view.id
            )
        if self.deadline is not None and view.at > self.deadline:
            detail = f"the view was installed {view.at - self.deadline} us after the bound"
            self.broken("liveness", detail, member=member, view=view.id)
        if rest.unsent:
            self.broken("liveness", f"{rest.unsent} payloads still wait for room in the window", member=member)

    def _same_view(self, rest: Rest, rests: list[Rest]) -> None:
        view = self.last[rest.member]
        ids = {other.member: self.last[other.member].id for other in rests}
        for member in view.members:
            if ids.get(member) != view.id:
                detail = "the view still has a member that is not in this view any more"
                self.broken("view-accuracy", detail, member=rest.member, other=member, view=view.id)
                if member in ids:
                    detail = f"a member of the view is in view {ids[member]}"
                    self.broken("liveness", detail, member=rest.member, other=member, view=view.id)

    def _one_view(self, rests: list[Rest]) -> None:
        """Sides that a fault separated have merged, or there was only one."""
        for rest in rests[1:]:
            first, view = self.last[rests[0].member], self.last[rest.member]
            if view.id != first.id:
                detail = f"the member is in another view than {first.member}, which is in {first.id}"
                self.broken("liveness", detail, member=rest.member, other=first.member, view=view.id)

    def _heard_all(self, rest: Rest, origin: Rest) -> None:
        next_number = self.messages.next.get(rest.member, {}).get(origin.member, 1)
        last = max(origin.accepted - 1, len(self.messages.sent.get(origin.member, ())))
        if next_number <= last:
            promise = "self-delivery" if rest is origin else "liveness"
            message = (origin.member, next_number)
            self.broken(promise, "the message was sent and not delivered", member=rest.member, message=message)

    def _holds_nothing(self, rest: Rest) -> None:
        held = {name: value for name, value in rest.gauges.items() if value}
        if held:
            detail = "the member still holds " + ", ".join(f"{name}={value}" for name, value in held.items())
            self.broken("buffers-drain", detail, member=rest.member)
