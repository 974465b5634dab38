"""The replies to one request, and the rule when there are enough of them.  Nothing here waits or sends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from pygroups.core.address import Address

Wants = Literal["all", "majority", "first"]


class Reply(msgspec.Struct, frozen=True):
    """The reply of `member`: `value`, or the reason in `error` why there is none.  `left`: the member left the group
    before it replied, so nobody knows whether its handler ran."""

    member: Address
    value: Any = None
    error: str | None = None
    left: bool = False


class Gathering:
    """The replies so far.  `callees` are None until it is known which members get the request."""

    def __init__(self, wants: Wants, callees: Iterable[Address] | None) -> None:
        self.wants = wants
        self.callees = None if callees is None else tuple(callees)
        self.replies: dict[Address, Reply] = {}

    def put(self, reply: Reply) -> None:
        """The first reply of a member counts."""
        if self.callees is None or reply.member in self.callees:
            self.replies.setdefault(reply.member, reply)

    def know(self, callees: Iterable[Address]) -> None:
        """The request goes to these members."""
        self.callees = tuple(callees)
        self.replies = {member: reply for member, reply in self.replies.items() if member in self.callees}

    def on_view(self, members: Iterable[Address]) -> None:
        """A member that is not in the view will not reply any more."""
        present = frozenset(members)
        if not present and self.callees is None:
            self.know(())  # this member has left, and the request was never read here
        for member in self.callees or ():
            if member not in present:
                self.put(Reply(member, error="it left the group before it replied", left=True))

    @property
    def good(self) -> int:
        """The number of replies with a value."""
        return sum(1 for reply in self.replies.values() if reply.error is None)

    @property
    def is_met(self) -> bool:
        """Whether there are the replies that the caller wants."""
        if self.wants == "first":
            return self.good > 0
        if self.callees is None:
            return False
        if self.wants == "majority":
            return 2 * self.good > len(self.callees)
        return len(self.replies) == len(self.callees)

    @property
    def is_over(self) -> bool:
        """Whether no further reply can come or is needed."""
        return self.is_met or (self.callees is not None and self._cannot_be_met)

    @property
    def _cannot_be_met(self) -> bool:
        assert self.callees is not None
        open_replies = len(self.callees) - len(self.replies)
        possible = self.good + open_replies
        return open_replies == 0 or (self.wants == "majority" and 2 * possible <= len(self.callees))
