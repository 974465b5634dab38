"""state-cut: the state given is exactly what was delivered before the view it belongs to."""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import Marks
from pygroups.core.view import ViewId

from .facts import Check, Viewed
from .messages import Messages


class States(Check):
    """The provider's state holds what it delivered before the view; the joiner goes on exactly behind it."""

    promises = ("state-cut",)

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.given: dict[tuple[Address, ViewId], tuple[Marks, bytes]] = {}
        self.begun: dict[tuple[Address, ViewId], Marks] = {}  # what a member's view says that it begins with
        self.judged = 0

    def facts(self) -> dict[str, int]:
        return {"state-cut": self.judged}

    def viewed(self, view: Viewed) -> None:
        if view.digest is not None:
            self.begun[view.member, view.id] = _without_ones(view.digest)

    def state_given(self, member: Address, view: ViewId, digest: Marks, data: bytes) -> None:
        self.judged += 1
        marks, held = _without_ones(digest), _without_ones(self.messages.next.get(member, {}))
        if marks != held:
            detail = f"the state holds {_text(marks)}, its provider had delivered {_text(held)}"
            self.broken("state-cut", detail, member=member, view=view)
        self.given[member, view] = (marks, data)

    def state_set(self, member: Address, view: ViewId, provider: Address, digest: Marks, data: bytes) -> None:
        self.judged += 1
        marks = _without_ones(digest)
        given = self.given.get((provider, view))
        if given is None or given[0] != marks:
            self.broken("state-cut", "this state was never given", member=member, other=provider, view=view)
        elif given[1] != data:
            self.broken("state-cut", "its bytes are not those given", member=member, other=provider, view=view)
        begun = self.begun.get((member, view))
        if begun is None or begun != marks:
            detail = f"its view begins with {_text(begun or {})}, the state holds {_text(marks)}"
            self.broken("state-cut", detail, member=member, other=provider, view=view)


def _without_ones(marks: Marks) -> Marks:
    return {origin: mark for origin, mark in sorted(marks.items()) if mark > 1}


def _text(marks: Marks) -> str:
    return "{" + ", ".join(f"{origin}: {mark}" for origin, mark in marks.items()) + "}"
