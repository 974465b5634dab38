"""One numbered stream at one member: the runs held, the runs missing, and when to ask for the missing ones.

Pure: this file knows no layer and sends nothing.  Note: docs/layers/streams.md.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pygroups.core.events import Fetch
from pygroups.core.layer import NEVER
from pygroups.core.limits import XMIT_RANGES_MAX, Config
from pygroups.core.tables import Tables
from pygroups.core.window import Window

UNLIMITED: Final = 1 << 62  # above every seq


class Stream(Window):
    """The window of one stream, and the requests of this member for its runs."""

    __slots__ = ("again_at", "asked", "check_at", "fetch", "horizon", "limit", "pause", "progressed", "ripe", "tries")

    tables: ClassVar[Tables] = {
        "runs": "stream_runs",
    }

    def __init__(self) -> None:
        super().__init__()
        self.limit = UNLIMITED  # runs from here on are not taken: the view is about to end
        self.fetch: Fetch | None = None  # the runs that the flush wants of this stream
        self.ripe = 0  # holes below are older than a period: the runs missing there were lost
        self.horizon = 0  # holes below existed at the last check
        self.asked = 0  # holes below were asked for
        self.again_at = 0  # when the lowest hole may be asked for again
        self.pause = 0  # from one request for the lowest hole to the next; doubles while no run arrives
        self.tries = 0  # requests for the lowest hole since a run arrived
        self.progressed = False  # a run arrived since the last check
        self.check_at = NEVER  # when to look at the holes; NEVER while there are none

    @property
    def lacks(self) -> bool:
        """Whether runs are missing that this member wants."""
        return self.next < min(self.seen if self.fetch is None else self.fetch.high, self.limit)

    def anew(self, period: int) -> None:
        """A run arrived, or the flush wants other runs: the pause begins again at one period."""
        self.pause, self.tries, self.again_at = period, 0, 0

    def stop(self) -> None:
        """From now on take only fetched runs, and request no run."""
        self.limit, self.fetch, self.check_at = self.next, None, NEVER

    def begin_fetch(self, fetch: Fetch, *, stopped: bool, period: int) -> None:
        """Want the runs below `fetch.high`, in place of the runs that the flush wanted before."""
        self.fetch, self.asked = fetch, 0
        self.anew(period)
        self.hear_of(fetch.high)
        if stopped:
            self.limit = max(self.next, fetch.high)

    def announced(self, upper: int) -> None:
        """Every run below `upper` was sent at least a period ago: the missing runs were lost."""
        self.hear_of(upper)
        self.ripe = self.horizon = upper

    def ripen(self) -> None:
        """A period has passed since the last check: the holes of that check may now be asked for."""
        self.ripe, self.horizon = self.horizon, self.seen

    def ask_from(self, now: int) -> int | None:
        """The number from which a check at `now` requests missing runs; None if this check requests none.

        A fetch whose runs arrive, or whose last request is younger than its pause, is not repeated.
        """
        if self.fetch is not None:
            return self.next if now >= self.again_at and not self.progressed else None
        return self.next if now >= self.again_at else self.asked

    def to_ask_for(self, low: int, config: Config) -> list[tuple[int, int]]:
        """The missing ranges from `low` on, as many as one request may name: all of a fetch, else only old holes."""
        if self.fetch is not None:
            return self.missing(low, self.fetch.high, UNLIMITED, XMIT_RANGES_MAX)
        high = min(self.ripe, self.limit, self.next + config.nakack_early_max)
        return self.missing(low, high, config.nakack_request_runs, XMIT_RANGES_MAX)

    def note_asked(self, low: int, high: int, now: int, config: Config, chance: float) -> None:
        """A request for the holes from `low` to `high` is sent at `now`.  `chance`, in [0, 1), shortens the pause by
        up to a quarter: members that lost the same run do not repeat their requests at the same time."""
        if low <= self.next:
            pause = max(self.pause, config.nakack_period)
            self.again_at = now + pause - int(chance * (pause // 4))
            self.pause = min(2 * pause, config.nakack_backoff_max)
            self.tries += 1
        self.asked = high
