"""Own messages that only the other side of a network split delivered, and the senders that wait for them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from pygroups.core.errors import DeliveredElsewhere
from pygroups.core.limits import GAPS_MAX

Waiting = deque[tuple[int, "asyncio.Future[None]"]]  # the numbers of messages, and their waiting senders


class Missing:
    """The gaps of this member's own messages."""

    def __init__(self) -> None:
        self.gaps: list[range] = []

    def add(self, gap: range, lines: Iterable[Waiting]) -> None:
        """Raise DeliveredElsewhere in the senders that wait for a message of `gap`, and in later ones."""
        self.gaps = [*self.gaps[1 - GAPS_MAX :], gap]
        for line in lines:
            for number, arrived in [waiting for waiting in line if waiting[0] in gap]:
                line.remove((number, arrived))
                if not arrived.done():
                    arrived.set_exception(DeliveredElsewhere(number))

    def check(self, number: int) -> None:
        """Raise DeliveredElsewhere if message `number` never comes here."""
        if any(number in gap for gap in self.gaps):
            raise DeliveredElsewhere(number)
