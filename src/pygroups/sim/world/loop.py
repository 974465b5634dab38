"""When a simulated process has a turn: its event loop and its clock, and what makes both slow or wrong."""

from __future__ import annotations

from random import Random
from typing import Final

from pygroups.core.layer import NEVER
from pygroups.core.stack import Stack

from ..schedules.schedule import Habits
from .agenda import Agenda

MILLION: Final = 1_000_000


def local_time(now: int, drift: int) -> int:
    """What a clock that runs `drift` millionths too fast shows at `now`."""
    return now + now * drift // MILLION


def true_time(shown: int, drift: int) -> int:
    """When such a clock shows this, to the microsecond at which it does."""
    return -(-shown * MILLION // (MILLION + drift))


class ProcessLoop:
    """Calls `turn` a little after something has come, and when a timer of the stack is due; not while it is paused."""

    def __init__(self, agenda: Agenda, stack: Stack, habits: Habits, rng: Random) -> None:
        self.agenda = agenda
        self.stack = stack
        self.rng = rng
        self.drift = habits.drift
        self.ended = ""  # why, once it has
        self.paused = 0  # how many pauses lie on it
        self.delays = [habits.loop_delay]  # the longest counts; more than the first while something makes it slow
        self.turn_at = NEVER  # when there is a turn for what has come
        self.wakes_at = NEVER  # when its layers want to be called, as of the last turn; by the true clock
        self.timer_at = NEVER  # the next entry in the agenda that sees to it; never later than that

    def turn(self) -> None:
        """Play a turn."""
        raise NotImplementedError

    def changed(self) -> None:
        """It stands still from now on, or runs again."""

    def clock(self) -> int:
        """What its layers take for the time."""
        now = self.agenda.now
        return local_time(now, self.drift) if self.drift else now

    # -- turns to come

    def soon(self) -> None:
        """Something has come: have a turn when the loop gets round to it, unless there is one already."""
        if self.turn_at == NEVER and not self.paused:
            self.turn_at = self.agenda.now + int(self.rng.random() * self.delays[-1])
            self.agenda.at(self.turn_at, self._turn_due)

    def _turn_due(self) -> None:
        self.turn_at = NEVER
        if not self.ended and not self.paused:
            self.turn()

    def arm(self) -> None:
        """Have a turn when the layers want to be called next."""
        wake = self.stack.wake()
        if self.drift and wake < NEVER:
            wake = true_time(wake, self.drift)
        self.wakes_at = wake
        if wake < self.timer_at:
            self.timer_at = wake
            self.agenda.at(wake, self._timer_due, wake)

    def _timer_due(self, when: int) -> None:
        if when != self.timer_at or self.ended or self.paused:
            return  # a turn has seen to it, or the one in which it runs again will
        if self.wakes_at > when:
            self.timer_at = self.wakes_at
            self.agenda.at(self.timer_at, self._timer_due, self.timer_at)
        elif len(self.delays) == 1:
            self.turn()
        else:
            self.soon()

    # -- faults

    def pause(self) -> None:
        """It does not run any more, until as many resumes have come."""
        self.paused += 1
        self.changed()

    def resume(self) -> None:
        """It runs again, with everything that waited."""
        self.paused = max(0, self.paused - 1)
        self.changed()
        if not self.paused and not self.ended:
            self.turn()

    def slow_down(self, delay: int) -> None:
        """Until `speed_up` it is late for everything by up to `delay`, unless it is so by more."""
        self.delays = [self.delays[0], *sorted([*self.delays[1:], delay])]

    def speed_up(self, delay: int) -> None:
        """One such slowness is over."""
        if delay in self.delays[1:]:
            self.delays.remove(delay)
