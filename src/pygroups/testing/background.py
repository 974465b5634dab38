"""Virtual time, and what members and their network do in it beside the test's own tasks and timers."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Final

from pygroups.core.limits import SECOND

WALL_CLOCK: Final = 1_700_000_000_000_000  # what people's clocks show when a test begins


class Alarm:
    """Something to be done at an instant, unless it is cancelled before."""

    __slots__ = ("args", "cancelled", "do", "number", "when")

    def __init__(self, when: int, number: int, do: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.when = when
        self.number = number
        self.do = do
        self.args = args
        self.cancelled = False

    def cancel(self) -> None:
        """It will not be done."""
        self.cancelled = True

    def __lt__(self, other: Alarm) -> bool:
        return (self.when, self.number) < (other.when, other.number)


class Background:
    """The clock of a test, in microseconds from 0, and the alarms of its members.  It is their event loop.

    The test's own timers are asyncio's: so it can be told whether the test still waits for time to pass.
    """

    def __init__(self) -> None:
        self.time = 0
        self._alarms: list[Alarm] = []
        self._noted = 0

    # -- clocks

    def now(self) -> int:
        return self.time

    def wall(self) -> int:
        return WALL_CLOCK + self.time

    # -- alarms

    def after(self, delay: int, do: Callable[..., object], *args: Any) -> Alarm:
        """Call `do(*args)` in `delay` microseconds; those of one instant in the order in which they were asked for."""
        self._noted += 1
        alarm = Alarm(self.time + delay, self._noted, do, args)
        heapq.heappush(self._alarms, alarm)
        return alarm

    def call_soon(self, callback: Callable[[], object], /) -> Alarm:
        return self.after(0, callback)

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Alarm:
        return self.after(round(delay * SECOND), callback)

    def next(self) -> int | None:
        """When the first alarm is due."""
        alarms = self._alarms
        while alarms and alarms[0].cancelled:
            heapq.heappop(alarms)
        return alarms[0].when if alarms else None

    def ring(self, until: int) -> None:
        """Do what is due until then; it may make more due, which is done too."""
        while (when := self.next()) is not None and when <= until:
            alarm = heapq.heappop(self._alarms)
            self.time = max(self.time, alarm.when)
            alarm.do(*alarm.args)
        self.time = max(self.time, until)
