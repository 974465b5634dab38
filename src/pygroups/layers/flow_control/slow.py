"""The window of multicasts that stays full: the time since then, and the members that the policy excludes for this
reason.

Pure: this file sends nothing and reads no clock.  Note: docs/layers/flow_control.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.events import Expel
from pygroups.core.layer import NEVER
from pygroups.core.limits import LATENESS, SECOND, Config
from pygroups.core.tables import Tables

LOOK: Final = 1 * SECOND  # between two looks at a full window
GAP: Final = 5 * SECOND  # after a longer pause of the reports, a late report may be an old one


class FullWindow:
    """How long the window of multicasts has been full.

    A window is full while its free room is less than a quarter of the window, or less than a run.
    """

    __slots__ = ("after", "asked", "full_bytes", "heard_at", "look_at", "since", "steady_since")

    tables: ClassVar[Tables] = {
        "asked": "members",
    }

    def __init__(self, config: Config) -> None:
        self.after = config.slow_exclude  # NEVER: senders wait, however long
        self.full_bytes = config.window - min(config.window, max(config.run_bytes, config.window // 4))
        self.since = NEVER  # while the window is full: since when
        self.look_at = NEVER
        self.heard_at = 0  # when the coordinator reported last
        self.steady_since = 0  # since when it has reported without a long pause
        self.asked: dict[Address, None] = {}  # members of this view whose exclusion this member has asked for

    def note(self, window_bytes: int, now: int) -> bool:
        """The window now has so many bytes.  Returns whether the window has just become full."""
        if window_bytes <= self.full_bytes:
            self.since = self.look_at = NEVER
            return False
        if self.since != NEVER:
            return False
        self.since, self.look_at = now, now + LOOK
        return True

    def reported(self, slowest: Iterable[Address], idle: Iterable[int], now: int) -> list[Expel]:
        """Take a report of the coordinator.  The report may name the members that have consumed least, and the time for
        which each of these members has consumed nothing of any member.

        Returns the members to exclude if the window has been full for too long: the named members that consumed nothing
        for that long.  The other named members may first have to read messages of another sender.
        """
        self._notice_lateness(now)
        if now - self.heard_at > GAP:
            self.steady_since = now
        self.heard_at = now
        full_for = now - max(self.since, self.steady_since)
        if full_for < self.after:
            return []
        wishes = []
        for member, still in zip(slowest, idle, strict=True):
            if still >= self.after and member not in self.asked:
                seconds = min(full_for, still) // SECOND
                reason = f"read nothing for {seconds} s, while others waited to send (slow_policy='exclude')"
                wishes.append(self._asked(Expel(member, reason)))
        return wishes

    def look(self, awaited: Iterable[Address], now: int) -> list[Expel]:
        """Look at the full window, as planned.  The coordinator reports nothing while the `awaited` members do not
        answer.  If no report came for long enough, this function returns these members: each of them is excluded if
        that member is silent."""
        self._notice_lateness(now)
        self.look_at = now + LOOK
        silent_for = now - max(self.since, self.heard_at)
        if silent_for < self.after:
            return []
        seconds = silent_for // SECOND
        reason = f"answered nothing for {seconds} s, while others waited to send (slow_policy='exclude')"
        return [self._asked(Expel(member, reason, if_silent=True)) for member in awaited if member not in self.asked]

    def _notice_lateness(self, now: int) -> None:
        """If this member was late itself, reports may wait unread in its sockets.  The lateness is then subtracted from
        the wait, or the wait begins anew."""
        late = now - self.look_at
        if late >= LATENESS:
            self.since = now if late >= LOOK // 2 else min(now, self.since + 2 * late)
            self.look_at = now + LOOK

    def _asked(self, wish: Expel) -> Expel:
        self.asked[wish.member] = None
        return wish

    def installed(self) -> None:
        """A new view: this member may request an exclusion again."""
        self.asked = {}
