"""The application at one member, which sends the payloads of the schedule as far as its window has room, and reads
its messages at once or slowly."""

from __future__ import annotations

from collections import deque
from random import Random

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Consumed, Marks
from pygroups.core.limits import ENTRY_BYTES
from pygroups.core.top import Delivered, Top


class PayloadsToSend(msgspec.Struct):
    """Payloads that the schedule has requested and the application could not send yet."""

    count: int
    size: int
    to: Address | None


class SimulatedApplication:
    """Sends and reads for one incarnation."""

    __slots__ = ("_rng", "made", "me", "orders", "reads_after", "top", "unread", "unread_unicasts")

    def __init__(self, me: Address, top: Top, reads_after: int, rng: Random) -> None:
        self.me = me
        self.top = top
        self.reads_after = reads_after
        self.orders: deque[PayloadsToSend] = deque()
        self.made = 0  # number of payloads made
        self.unread: Marks = {}  # per origin, the number after the last multicast that is not consumed yet
        self.unread_unicasts: Marks = {}  # the same for unicasts of each origin to this member
        self._rng = rng

    # -- sending

    def may_send(self) -> bool:
        """Whether a payload is queued and there is room for it."""
        return bool(self.orders) and self._fits(self.orders[0])

    def is_held_up(self) -> bool:
        """Whether a multicast waits for room in the window."""
        return bool(self.orders) and self.orders[0].to is None and not self._fits(self.orders[0])

    def _fits(self, order: PayloadsToSend) -> bool:
        size = max(order.size, len(self._prefix(self.made + 1))) + ENTRY_BYTES
        return self.top.room(order.to) >= min(size, self.top.env.config.window)  # as large as the window it goes alone

    def _prefix(self, number: int) -> bytes:
        return f"{self.me}#{number}|".encode()

    def payload(self, size: int) -> bytes:
        """A unique payload of `size` bytes, or more if its prefix is longer."""
        self.made += 1
        return self._prefix(self.made).ljust(size, b".")

    def send(self) -> list[tuple[int, bytes, Address | None]]:
        """Hand the payloads that fit to the top; return their numbers, payloads and receivers."""
        sent: list[tuple[int, bytes, Address | None]] = []
        while self.orders and self._fits(self.orders[0]):
            order = self.orders[0]
            payload = self.payload(order.size)
            sent.append((self.top.accept(payload, order.to), payload, order.to))
            order.count -= 1
            if not order.count:
                self.orders.popleft()
        self.top.env.sender_waits = self.is_held_up()
        return sent

    # -- reading

    def given(self, delivered: Delivered) -> None:
        """Queue a run."""
        run = delivered.run
        assert run.origin is not None
        (self.unread if delivered.position >= 0 else self.unread_unicasts)[run.origin] = run.next

    def reading_time(self) -> int | None:
        """The time until the application reads, in microseconds; None if it does not read."""
        return int(self._rng.random() * (self.reads_after + 1))

    def read(self) -> Consumed:
        """Consume all queued messages."""
        consumed = Consumed(self.unread, self.unread_unicasts)
        self.unread, self.unread_unicasts = {}, {}
        return consumed

    def has_unread(self) -> bool:
        """Whether any message is queued."""
        return bool(self.unread or self.unread_unicasts)
