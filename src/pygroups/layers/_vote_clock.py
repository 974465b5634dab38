"""When a vote leaves: the reasons for a vote, and how long after each of them the vote waits.

Pure: this file knows no layer, no run and no chance; times are in microseconds.  RULES is the table of the note,
docs/layers/stable.md.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from pygroups.core.layer import NEVER
from pygroups.core.limits import Config


class Reason(Enum):
    """Why a member votes; the text is what has happened."""

    VIEW = "a view begins: windows of origins wait for the votes of its members"
    BYTES = "`stable_bytes` of one origin, a quarter of the window at most, were consumed since the last vote"
    WANTED = "messages that their sender waits for (`Wanted`) were delivered"
    RUNS = "`stable_runs` runs of one origin were delivered since the last vote"
    NEWS = "anything was delivered or consumed, the first time since the last vote"
    SEEN = "at the coordinator: runs are known to exist that some member lacks"
    REPEAT = "a vote has left"
    RESUMED = "a suspension is over"


class Pause(Enum):
    """How long a vote waits; the text is what the note says."""

    NONE = "-"
    INSTANT = "1 us"
    PAUSE = "`stable_pause`"
    CHANCE_LATE = "half a `stable_period`, and up to another half by chance"
    CHANCE_SOON = "up to a tenth of a `stable_period`, by the same chance"
    PERIOD = "`stable_period`"
    BACK_OFF = "`stable_period`, doubled by each repetition up to `stable_backoff_max`"


class Rule(NamedTuple):
    """A row of the table: the vote leaves at the end of the first turn in which both pauses are over."""

    after_vote: Pause  # since this member's last vote
    after_now: Pause  # since the reason arose
    urgent: bool  # a sender may wait for it: the coordinator hurries
    always: bool  # else only if something is new, or not known to be stable and consumed everywhere


RULES: Final = {
    Reason.VIEW: Rule(Pause.NONE, Pause.NONE, urgent=False, always=True),
    Reason.BYTES: Rule(Pause.NONE, Pause.NONE, urgent=True, always=True),
    Reason.WANTED: Rule(Pause.NONE, Pause.NONE, urgent=True, always=True),
    Reason.RUNS: Rule(Pause.PAUSE, Pause.NONE, urgent=True, always=True),
    Reason.NEWS: Rule(Pause.CHANCE_LATE, Pause.CHANCE_SOON, urgent=False, always=True),
    Reason.SEEN: Rule(Pause.NONE, Pause.PERIOD, urgent=False, always=True),
    Reason.REPEAT: Rule(Pause.BACK_OFF, Pause.NONE, urgent=False, always=False),
    Reason.RESUMED: Rule(Pause.NONE, Pause.INSTANT, urgent=False, always=False),
}


class VoteClock:
    """The next vote of one member: whether it is due, when it becomes due, and whether a sender may wait for it."""

    __slots__ = ("at", "chance", "config", "due", "news", "repeat_pause", "urgent", "voted_at")

    def __init__(self, config: Config) -> None:
        self.config = config
        self.news = False  # the next vote says something new
        self.due = False  # the vote leaves at the end of this turn
        self.urgent = False  # a sender may wait for what the next vote says
        self.at = NEVER  # when to look whether there is anything to say
        self.voted_at = 0
        self.chance = 0  # drawn for the first news since the last vote, so that not all members vote at once
        self.repeat_pause = 0  # from the next vote to its repetition

    def chances(self) -> int:
        """The upper end, exclusive, of what first_news() takes as its chance."""
        return self.config.stable_period // 2 + 1

    def first_news(self, now: int, chance: int) -> None:
        """Something is new, the first time since the last vote; `chance` is in [0, chances())."""
        self.chance, self.repeat_pause = chance, self.config.stable_period
        self.arises(Reason.NEWS, now)

    def arises(self, reason: Reason, now: int) -> None:
        """There is one more reason to vote.  The reason whose moment comes first decides when the vote leaves."""
        rule = RULES[reason]
        if reason is Reason.VIEW:
            self.repeat_pause = self.config.stable_period
        elif rule.always:
            self.news = True
        self.urgent = self.urgent or rule.urgent
        when = max(self.voted_at + self.lasts(rule.after_vote), now + self.lasts(rule.after_now))
        if when <= now:
            self.due = True
        else:
            self.at = min(self.at, when)

    def lasts(self, pause: Pause) -> int:
        """The length of `pause` now."""
        config = self.config
        if pause is Pause.PAUSE:
            return config.stable_pause
        if pause is Pause.CHANCE_LATE:
            return config.stable_period // 2 + self.chance
        if pause is Pause.CHANCE_SOON:
            return self.chance // 5
        if pause is Pause.PERIOD:
            return config.stable_period
        if pause is Pause.BACK_OFF:
            return self.repeat_pause
        return 1 if pause is Pause.INSTANT else 0

    def look(self, now: int, settled: Callable[[], bool]) -> None:
        """If the time has come, the vote is due, unless it would say nothing new and all is `settled`."""
        if self.at <= now:
            self.at = NEVER
            self.due = self.due or self.news or not settled()

    def voted(self, now: int) -> None:
        """The vote leaves; while not all is settled it is repeated."""
        self.news = self.urgent = False
        self.voted_at, self.at = now, NEVER
        self.arises(Reason.REPEAT, now)
        self.repeat_pause = min(2 * self.repeat_pause, self.config.stable_backoff_max)

    def stop(self) -> None:
        """No vote leaves until there is another reason."""
        self.due = self.news = self.urgent = False
        self.at = NEVER
