"""The members for which the sends of this channel wait, although no message was read, delivered or acknowledged since
the last check."""

from __future__ import annotations

from collections.abc import Sequence

from pygroups.core.address import Address
from pygroups.core.events import SlowestWanted

from .reading.inbox import Inbox
from .sending.outbox import Outbox


class Standstill:
    """Compares the windows and the program's reading with those of the last call."""

    def __init__(self, sending: Outbox, reading: Inbox, me: Address) -> None:
        self.sending = sending
        self.reading = reading
        self.me = me
        self.progress = (0, 0)  # of the program's reading
        self.left_window = -1  # bytes that have left the window
        self.slow: tuple[Address, ...] = ()  # that kept the window full at the last call of slow_readers()
        self.alone: dict[Address, int] = {}  # receivers of waiting unicasts, with the free bytes of their windows

    def holders(self) -> Sequence[Address]:
        """The members that keep this member's windows full, and have read nothing since the last call."""
        sending = self.sending
        left = sending.room() + sending.top.sent_bytes()
        moved, self.left_window = left != self.left_window, left
        reads, self.progress = self.reading.progress != self.progress, self.reading.progress
        before, self.alone = self.alone, sending.waited_for()
        alone = [member for member, room in self.alone.items() if before.get(member) == room]
        full = sending.holders()
        if sending.is_full and not full:
            sending.ask(SlowestWanted())  # a coordinator tells itself the names only now and then
        holders = dict.fromkeys([*(() if moved else full), *alone])
        if reads:
            holders.pop(self.me, None)  # the program reads; it has only not reached its own messages yet
        return tuple(holders)

    def slow_readers(self) -> Sequence[Address]:
        """The members that keep this member's window full, if most of the messages in it were delivered: these members
        read slowly, and not the network."""
        if not self.sending.is_full or self.sending.is_undelivered:
            self.slow = ()
        else:  # for a moment after a vote it is not known which members have read least
            self.slow = self.sending.holders() or self.slow
        return self.slow

    def lacks_messages(self, member: Address) -> bool:
        """Whether `member` keeps the window of multicasts full because it has not received the messages in it."""
        return self.sending.is_undelivered and member in self.sending.holders()
