"""The pauses before an excluded process joins again: a process that is excluded again and again joins less often."""

from __future__ import annotations

from .limits import REJOIN_PAUSE, REJOIN_PAUSE_MAX, REJOIN_WINDOW


class Exclusions:
    """Counts the exclusions of one process that follow each other within a minute."""

    def __init__(self) -> None:
        self.in_a_row = 0

    def pause(self, member_for: int) -> int:
        """The microseconds to wait before the next join.  `member_for`: the time from the join to the exclusion.

        The first exclusion costs no pause, the second within a minute `REJOIN_PAUSE`, and each further one twice the
        pause before, at most `REJOIN_PAUSE_MAX`.
        """
        self.in_a_row = self.in_a_row + 1 if member_for < REJOIN_WINDOW else 1
        if self.in_a_row == 1:
            return 0
        pause = REJOIN_PAUSE
        for _ in range(self.in_a_row - 2):
            pause = min(2 * pause, REJOIN_PAUSE_MAX)
        return pause
