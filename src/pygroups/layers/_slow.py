"""The window of multicasts that stays full: since when, and the members to exclude for it, by policy.

Pure: this file sends nothing and reads no clock.  Note: docs/layers/flow_control.md.
"""

from __future__ import annotations

from typing import Final

from pygroups.core.address import Address
from pygroups.core.events import Expel
from pygroups.core.layer import NEVER
from pygroups.core.limits import SECOND, Config

LOOK: Final = 1 * SECOND  # between two looks at a full window
GAP: Final = 5 * SECOND  # after a longer pause of the reports, a late report may be an old one


class FullWindow:
    """How long the window of multicasts has been full without any progress.

    A window is full while it has less room than a quarter, or than a run.  Progress is a message that every other
    member has consumed.
    """

    __slots__ = ("after", "asked", "consumed", "full_bytes", "heard_at", "lateness", "look_at", "since", "steady_since")

    def __init__(self, config: Config) -> None:
        self.after = config.slow_exclude  # NEVER: senders wait, however long
        self.full_bytes = config.window - min(config.window, max(config.run_bytes, config.window // 4))
        self.lateness = config.lateness
        self.since = NEVER  # while the window is full: the time of the last progress
        self.look_at = NEVER
        self.consumed = 0  # every other member has consumed the multicasts below this
        self.heard_at = 0  # when the coordinator reported last
        self.steady_since = 0  # since when it has reported without a long pause
        self.asked: dict[Address, None] = {}  # members of this view whose exclusion this member has asked for

    def holds(self, window_bytes: int, now: int) -> bool:
        """The window now has so many bytes.  Returns whether this begins a wait."""
        if window_bytes <= self.full_bytes:
            self.since = self.look_at = NEVER
            return False
        if self.since != NEVER:
            return False
        self.since, self.look_at = now, now + LOOK
        return True

    def reported(self, consumed: int, slowest: tuple[Address, ...], now: int) -> list[Expel]:
        """The coordinator reported the consumed positions, and perhaps the members that have consumed least.

        Returns the members to exclude: those that have consumed least, if the window has been full for too long.
        """
        self._notice_lateness(now)
        if now - self.heard_at > GAP:
            self.steady_since = now
        self.heard_at = now
        if consumed > self.consumed:
            self.consumed = consumed
            if self.since != NEVER:
                self.since = now
        full_for = now - max(self.since, self.steady_since)
        if full_for < self.after:
            return []
        seconds = full_for // SECOND
        reason = f"read nothing for {seconds} s, while others waited to send (slow_policy='exclude')"
        return [self._asked(Expel(member, reason)) for member in slowest if member not in self.asked]

    def look(self, coordinator: Address, now: int) -> Expel | None:
        """Look at the full window, as planned.  Returns the coordinator, to be excluded if it is silent, when it has
        reported nothing for long enough."""
        self._notice_lateness(now)
        self.look_at = now + LOOK
        silent_for = now - max(self.since, self.heard_at)
        if silent_for < self.after or coordinator in self.asked:
            return None
        seconds = silent_for // SECOND
        reason = f"answered nothing for {seconds} s, while others waited to send (slow_policy='exclude')"
        return self._asked(Expel(coordinator, reason, if_silent=True))

    def _notice_lateness(self, now: int) -> None:
        """If this member was late itself, news may wait unread in its sockets: the wait counts for less, or anew."""
        late = now - self.look_at
        if late >= self.lateness:
            self.since = now if late >= LOOK // 2 else min(now, self.since + 2 * late)
            self.look_at = now + LOOK

    def _asked(self, wish: Expel) -> Expel:
        self.asked[wish.member] = None
        return wish

    def installed(self) -> None:
        """A new view: this member may request an exclusion again."""
        self.asked = {}
