"""When a vote leaves: the reasons for a vote, and how long after each of them the vote waits.

Pure: this file knows no layer, no run and no chance; times are in microseconds.  REASONS is the table of the note,
docs/layers/stable.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, NamedTuple

from pygroups.core.layer import NEVER
from pygroups.core.limits import Config
from pygroups.core.tables import Tables


class VoteDelay(NamedTuple):
    """A time that a vote waits.  VoteClock.lengths has its length at `place`."""

    place: int
    text: str  # the words of the note


NONE: Final = VoteDelay(0, "-")
INSTANT: Final = VoteDelay(1, "1 us")
PAUSE: Final = VoteDelay(2, "`stable_pause`")
PERIOD: Final = VoteDelay(3, "`stable_period`")
CHANCE_LATE: Final = VoteDelay(4, "half a `stable_period`, and up to another half by chance")
CHANCE_SOON: Final = VoteDelay(5, "up to a tenth of a `stable_period`, by the same chance")
BACK_OFF: Final = VoteDelay(6, "`stable_period`, doubled by each repetition up to `stable_backoff_max`")


class Reason(NamedTuple):
    """Why a member votes: a row of the table.  The vote leaves at the end of the first turn in which both pauses are
    over."""

    text: str  # the event
    after_vote: VoteDelay  # since this member's last vote
    after_now: VoteDelay  # since the reason arose
    urgent: bool  # a sender may wait for it: the coordinator hurries
    always: bool  # else only if something is new, or not known to be stable and consumed everywhere


VIEW: Final = Reason(
    "a view begins: windows of origins wait for the votes of its members", NONE, NONE, urgent=False, always=True
)
BYTES: Final = Reason(
    "`stable_bytes` of one origin, a quarter of the window at most, were consumed since the last vote",
    NONE,
    NONE,
    urgent=True,
    always=True,
)
WANTED: Final = Reason(
    "messages that their sender waits for (`Wanted`) were delivered", NONE, NONE, urgent=True, always=True
)
RUNS: Final = Reason(
    "`stable_runs` runs of one origin were delivered since the last vote", PAUSE, NONE, urgent=True, always=True
)
NEWS: Final = Reason(
    "anything was delivered or consumed, the first time since the last vote",
    CHANCE_LATE,
    CHANCE_SOON,
    urgent=False,
    always=True,
)
SEEN: Final = Reason(
    "at the coordinator: runs are known to exist that some member lacks", NONE, PERIOD, urgent=False, always=True
)
REPEAT: Final = Reason("a vote has left", BACK_OFF, NONE, urgent=False, always=False)
RESUMED: Final = Reason("a suspension is over", NONE, INSTANT, urgent=False, always=False)

REASONS: Final = (VIEW, BYTES, WANTED, RUNS, NEWS, SEEN, REPEAT, RESUMED)


class VoteClock:
    """The next vote of one member: whether it is due, when it becomes due, and whether a sender may wait for it."""

    __slots__ = ("at", "config", "due", "lengths", "news", "urgent", "voted_at")

    tables: ClassVar[Tables] = {
        "lengths": "fixed",
    }

    def __init__(self, config: Config) -> None:
        self.config = config
        self.news = False  # the next vote has news
        self.due = False  # the vote leaves at the end of this turn
        self.urgent = False  # a sender may wait for the content of the next vote
        self.at = NEVER  # when to check whether a vote is due
        self.voted_at = 0
        self.lengths = [0, 1, config.stable_pause, config.stable_period, 0, 0, 0]  # of each VoteDelay, in microseconds

    def begin(self, now: int) -> None:
        """A view begins: this member has not voted in it."""
        self.stop()
        self.lengths[BACK_OFF.place] = self.config.stable_period
        self.arises(VIEW, now)
        self.news = False

    def chances(self) -> int:
        """The upper end, exclusive, of the chance that first_news() takes."""
        return self.config.stable_period // 2 + 1

    def first_news(self, now: int, chance: int) -> None:
        """Something is new, the first time since the last vote.  `chance` is in [0, chances()): it keeps members from
        voting all at once."""
        lengths, period = self.lengths, self.config.stable_period
        lengths[CHANCE_LATE.place], lengths[CHANCE_SOON.place] = period // 2 + chance, chance // 5
        lengths[BACK_OFF.place] = period
        self.arises(NEWS, now)

    def arises(self, reason: Reason, now: int) -> None:
        """There is one more reason to vote.  The reason that is ready first decides when the vote leaves."""
        if reason.always:
            self.news = True
        if reason.urgent:
            self.urgent = True
        lengths = self.lengths
        when = max(self.voted_at + lengths[reason.after_vote.place], now + lengths[reason.after_now.place])
        if when <= now:
            self.due = True
        elif when < self.at:
            self.at = when

    def look(self, now: int, settled: Callable[[], bool]) -> None:
        """If the time has come, the vote is due, unless it has no news and all is `settled`."""
        if self.at <= now:
            self.at = NEVER
            self.due = self.due or self.news or not settled()

    def voted(self, now: int) -> None:
        """The vote leaves; while not all is settled it is repeated."""
        self.news = self.urgent = False
        self.voted_at, self.at = now, NEVER
        self.arises(REPEAT, now)
        self.lengths[BACK_OFF.place] = min(2 * self.lengths[BACK_OFF.place], self.config.stable_backoff_max)

    def stop(self) -> None:
        """No vote leaves until there is another reason."""
        self.due = self.news = self.urgent = False
        self.at = NEVER
