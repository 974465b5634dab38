"""state-cut: the state given is exactly what was delivered before the view it belongs to."""

from __future__ import annotations

from pygroups.core.address import Address
from pygroups.core.events import Marks
from pygroups.core.view import ViewId

from .broken import Broken
from .facts import Check, Viewed
from .messages import Messages


class States(Check):
    """The provider's state holds what it delivered before the view; the joiner goes on exactly behind it."""

    promises = ("state-cut",)

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.given: dict[tuple[Address, ViewId], Marks] = {}
        self.begun: dict[tuple[Address, ViewId], Marks] = {}  # what a member's view says that it begins with

    def viewed(self, view: Viewed) -> None:
        if view.digest is not None:
            self.begun[view.member, view.id] = _without_ones(view.digest)

    def state_given(self, member: Address, view: ViewId, digest: Marks) -> None:
        marks, held = _without_ones(digest), _without_ones(self.messages.next.get(member, {}))
        if marks != held:
            detail = f"the state holds {_text(marks)}, its provider had delivered {_text(held)}"
            raise Broken("state-cut", detail, member=member, view=view)
        self.given[member, view] = marks

    def state_set(self, member: Address, view: ViewId, provider: Address, digest: Marks) -> None:
        marks = _without_ones(digest)
        if self.given.get((provider, view)) != marks:
            raise Broken("state-cut", "this state was never given", member=member, other=provider, view=view)
        begun = self.begun.get((member, view))
        if begun is None or begun != marks:
            detail = f"its view begins with {_text(begun or {})}, the state holds {_text(marks)}"
            raise Broken("state-cut", detail, member=member, other=provider, view=view)


def _without_ones(marks: Marks) -> Marks:
    return {origin: mark for origin, mark in sorted(marks.items()) if mark > 1}


def _text(marks: Marks) -> str:
    return "{" + ", ".join(f"{origin}: {mark}" for origin, mark in marks.items()) + "}"
