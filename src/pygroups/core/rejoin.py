"""The pauses before an excluded process joins again: a process that is excluded again and again joins less often."""

from __future__ import annotations

from .limits import Config


class Exclusions:
    """Counts the exclusions of one process that follow each other within a minute."""

    def __init__(self) -> None:
        self.in_a_row = 0

    def pause(self, member_for: int, config: Config) -> int:
        """The microseconds to wait before the next join.  `member_for`: the time from the join to the exclusion.

        The first exclusion costs no pause, the second within a minute `rejoin_pause`, and each further one twice the
        pause before, at most `rejoin_pause_max`.
        """
        self.in_a_row = self.in_a_row + 1 if member_for < config.rejoin_window else 1
        if self.in_a_row == 1:
            return 0
        pause = config.rejoin_pause
        for _ in range(self.in_a_row - 2):
            pause = min(2 * pause, config.rejoin_pause_max)
        return pause
