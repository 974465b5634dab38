"""The times of a simulated process's turns: its event loop, its clock, and the faults of both."""

from __future__ import annotations

from random import Random
from typing import Final

from pygroups.core.layer import NEVER
from pygroups.core.stack import Stack

from ..schedules.schedule import Habits
from .agenda import Agenda

MILLION: Final = 1_000_000


def local_time(now: int, drift: int) -> int:
    """The time on a clock that runs `drift` millionths too fast, at the true time `now`."""
    return now + now * drift // MILLION


def true_time(shown: int, drift: int) -> int:
    """The first true time, in whole microseconds, at which a clock with this drift shows `shown`."""
    return -(-shown * MILLION // (MILLION + drift))


class ProcessLoop:
    """Calls `turn` shortly after an arrival, and when a timer of the stack is due, but not during a pause."""

    def __init__(self, agenda: Agenda, stack: Stack, habits: Habits, rng: Random) -> None:
        self.agenda = agenda
        self.stack = stack
        self.rng = rng
        self.drift = habits.drift
        self.ended = ""  # the reason, after the process has ended
        self.paused = 0  # number of active pauses
        self.delays = [habits.loop_delay]  # the longest counts; a slow process has more than the first
        self.turn_at = NEVER  # time of the turn for the queued items
        self.wakes_at = NEVER  # the next timer of the layers after the last turn, in true time
        self.timer_at = NEVER  # the agenda entry for that timer; it is never later than the timer

    def turn(self) -> None:
        """Play a turn."""
        raise NotImplementedError

    def changed(self) -> None:
        """Called when a pause or a slow time begins or ends."""

    def clock(self) -> int:
        """The time on the clock of this process, which its layers read."""
        now = self.agenda.now
        return local_time(now, self.drift) if self.drift else now

    # -- planning turns

    def soon(self) -> None:
        """Plan a turn after the delay of the event loop, unless one is planned."""
        if self.turn_at == NEVER and not self.paused:
            self.turn_at = self.agenda.now + int(self.rng.random() * self.delays[-1])
            self.agenda.at(self.turn_at, self._turn_due)

    def _turn_due(self) -> None:
        self.turn_at = NEVER
        if not self.ended and not self.paused:
            self.turn()

    def arm(self) -> None:
        """Plan a turn for the next timer of the layers."""
        wake = self.stack.wake()
        if self.drift and wake < NEVER:
            wake = true_time(wake, self.drift)
        self.wakes_at = wake
        if wake < self.timer_at:
            self.timer_at = wake
            self.agenda.at(wake, self._timer_due, wake)

    def _timer_due(self, when: int) -> None:
        if when != self.timer_at or self.ended or self.paused:
            return  # another turn has run the timer, or the turn after the pause will
        if self.wakes_at > when:
            self.timer_at = self.wakes_at
            self.agenda.at(self.timer_at, self._timer_due, self.timer_at)
        elif len(self.delays) == 1:
            self.turn()
        else:
            self.soon()

    # -- faults

    def pause(self) -> None:
        """Stop the process until each `pause` has had its `resume`."""
        self.paused += 1
        self.changed()

    def resume(self) -> None:
        """End one pause; after the last one the process runs again, with all queued items."""
        self.paused = max(0, self.paused - 1)
        self.changed()
        if not self.paused and not self.ended:
            self.turn()

    def slow_down(self, delay: int) -> None:
        """Handle everything late by up to `delay`, until `speed_up`; the largest of several delays counts."""
        self.delays = [self.delays[0], *sorted([*self.delays[1:], delay])]
        self.changed()

    def speed_up(self, delay: int) -> None:
        """End one `slow_down` with this delay."""
        if delay in self.delays[1:]:
            self.delays.remove(delay)
            self.changed()
