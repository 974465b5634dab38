"""A numbered stream of NAKACK at one member: what is there, what is missing, and when to ask whom for it.

Nothing here knows a layer.  Note: docs/layers/nakack.md.
"""

from __future__ import annotations

from typing import Final

from pygroups.core.address import Address
from pygroups.core.events import Fetch
from pygroups.core.layer import NEVER
from pygroups.core.window import Window

UNLIMITED: Final = 1 << 62  # above every seq
FETCH_TRIES: Final = 2  # of the holder that the flush names; then anybody else may have it


class Stream(Window):
    """One member's stream, and what this member does to get what it misses of it."""

    __slots__ = ("again_at", "asked", "check_at", "fetch", "horizon", "limit", "pause", "progressed", "ripe", "tries")

    def __init__(self) -> None:
        super().__init__()
        self.limit = UNLIMITED  # runs from here on are not taken: the view is on its way out
        self.fetch: Fetch | None = None  # what the flush wants
        self.ripe = 0  # holes below are older than a period: what is missing there was lost
        self.horizon = 0  # holes below were there at the last check
        self.asked = 0  # holes below were asked for
        self.again_at = 0  # when they may be asked for again
        self.pause = 0  # and how long to wait after that; it grows while nothing comes
        self.tries = 0  # how often they were asked for since something came
        self.progressed = False  # something came since the last check
        self.check_at = NEVER  # when to look at the holes; NEVER while there are none

    def anew(self, period: int) -> None:
        """Something came, or something else is wanted: nothing was asked for in vain."""
        self.pause, self.tries, self.again_at = period, 0, 0

    def asked_at(self, now: int, period: int, pause_max: int) -> None:
        """What is missing was asked for, from the first hole on: wait longer before the next time."""
        self.again_at = now + max(self.pause, period)
        self.pause = min(2 * max(self.pause, period), pause_max)
        self.tries += 1

    @property
    def wanted(self) -> int:
        """Where this member's wish to have runs ends."""
        return self.seen if self.fetch is None else self.fetch.high


class Answers:
    """Which runs were sent again to whom, within the last period."""

    __slots__ = ("at", "period", "swept_at")

    def __init__(self, period: int) -> None:
        self.period = period
        self.at: dict[tuple[Address, Address, int], int] = {}  # asker, stream and number; when
        self.swept_at = 0

    def may(self, asker: Address, stream: Address, seq: int, now: int) -> bool:
        """Whether it is sent now: what was sent within a period is on its way, and asked for by an older request."""
        if now >= self.swept_at + self.period:
            self.at = {key: at for key, at in self.at.items() if now < at + self.period}
            self.swept_at = now
        key = (asker, stream, seq)
        if now < self.at.get(key, -self.period) + self.period:
            return False
        self.at[key] = now
        return True
