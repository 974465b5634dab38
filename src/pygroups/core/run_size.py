"""The size at which a run is full: smaller while the network loses many runs.

Over UDP a full run travels in several datagrams, and one lost datagram costs the whole run.  Pure: no layer, no clock.
"""

from __future__ import annotations

from typing import Final

JUDGED: Final = 100  # sent runs between two looks: one run to three receivers counts three times
MANY: Final = 33  # more than one of so many requested again: half the size
FEW: Final = 100  # less than one of so many: twice the size


class RunSize:
    """A size between `least` and `most`: it halves while many of the sent runs are requested again, and doubles while
    few are."""

    __slots__ = ("least", "most", "now", "requested", "sent")

    def __init__(self, least: int, begin: int, most: int) -> None:
        self.least = least
        self.most = most
        self.now = begin
        self.sent = 0  # at the last look
        self.requested = 0  # the same

    def look(self, sent: int, requested: int) -> int:
        """The size now.  This member has sent `sent` runs since it began, to each receiver counted by itself, and
        `requested` of them were requested again."""
        new = sent - self.sent
        if new >= JUDGED:
            again = requested - self.requested
            self.sent, self.requested = sent, requested
            if MANY * again > new:
                self.now = max(self.least, self.now // 2)
            elif FEW * again < new:
                self.now = min(self.most, 2 * self.now)
        return self.now
