"""The members for which the sends of this channel wait, although no message was read, delivered or acknowledged since
the last check."""

from __future__ import annotations

from collections.abc import Sequence

from pygroups.core.address import Address

from .inbox import Inbox
from .outbox import Outbox


class Standstill:
    """Compares the windows and the program's reading with those of the last call."""

    def __init__(self, sending: Outbox, reading: Inbox, me: Address) -> None:
        self.sending = sending
        self.reading = reading
        self.me = me
        self.progress = (0, 0)  # of the program's reading
        self.left_window = -1  # bytes that have left the window
        self.alone: dict[Address, int] = {}  # receivers of waiting unicasts, with the free bytes of their windows

    def holders(self) -> Sequence[Address]:
        """The members that keep this member's windows full, and have read nothing since the last call."""
        sending = self.sending
        left = sending.room() + sending.top.sent_bytes()
        moved, self.left_window = left != self.left_window, left
        reads, self.progress = self.reading.progress != self.progress, self.reading.progress
        before, self.alone = self.alone, sending.waited_for()
        alone = [member for member, room in self.alone.items() if before.get(member) == room]
        holders = dict.fromkeys([*(() if moved else sending.holders()), *alone])
        if reads:
            holders.pop(self.me, None)  # the program reads; it has only not reached its own messages yet
        return tuple(holders)
