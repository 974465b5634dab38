"""The things that a join waits for, for the log of a program whose join takes long."""

from __future__ import annotations

from typing import Final

from pygroups.core.address import Address
from pygroups.core.driver_events import Found, Replied
from pygroups.core.events import Blocked, NewView, Unblocked

from .log import join_waits

FOUND_MAX: Final = 16  # members that are named


class JoinWait:
    """The members that were found, and the reason why no group can begin.  `expect` and `min_members`: the options of
    the channel."""

    def __init__(self, expect: int | None, min_members: int | None = None) -> None:
        self.expect = expect
        self.min_members = min_members
        self.members = 0  # of the view
        self.found: tuple[Address, ...] = ()
        self.blocked = ""

    def on_event(self, event: object) -> None:
        """Discovery, or the stack, reports something."""
        if isinstance(event, Found):
            self.found = tuple(event.members)
        elif isinstance(event, Replied) and event.presence.member:
            self.found = tuple(dict.fromkeys([*self.found, event.presence.process]))[-FOUND_MAX:]
        elif isinstance(event, NewView):
            self.members = len(event.view.members)
        elif isinstance(event, Blocked | Unblocked):
            self.blocked = event.reason if isinstance(event, Blocked) else ""

    def text(self, announced: str | None, *, chosen: bool) -> str:
        """The log line.  `announced`: the address for the other members, if it is not that of bind=.  `chosen`: this
        process chose it for itself."""
        if self.blocked:
            return f"the join waits: {self.blocked}"
        if self.members and self.min_members:
            return f"the join waits for {self.min_members} members (min_members=), and the view has {self.members}"
        if self.expect and not self.found:
            return f"the join waits: the first view needs more than half of the {self.expect} processes of expect="
        return join_waits(self.found, announced, chosen=chosen)
