"""Own messages that only the other side of a network split delivered, and the senders that wait for them."""

from __future__ import annotations

from collections.abc import Iterable

from pygroups.core.errors import DeliveredElsewhere
from pygroups.core.limits import GAPS_MAX

from .line import WaitingLine


class Missing:
    """The gaps of this member's own messages."""

    def __init__(self) -> None:
        self.gaps: list[range] = []

    def add(self, gap: range, lines: Iterable[WaitingLine]) -> None:
        """Raise DeliveredElsewhere in the senders that wait for a message of `gap`, and in later ones."""
        if self.gaps and self.gaps[-1].stop == gap.start:  # of the same merge, with other members that have them
            gap = range(self.gaps.pop().start, gap.stop)
        self.gaps = [*self.gaps[1 - GAPS_MAX :], gap]
        for line in lines:
            line.fail(DeliveredElsewhere, gap)

    def check(self, number: int) -> None:
        """Raise DeliveredElsewhere if message `number` never comes here."""
        if any(number in gap for gap in self.gaps):
            raise DeliveredElsewhere(number)
