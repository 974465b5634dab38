"""Virtual time, and what members and their network do in it beside the test's own tasks and timers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pygroups.core.limits import SECOND
from pygroups.sim.world.agenda import Agenda

WALL_CLOCK: Final = 1_700_000_000_000_000  # what people's clocks show when a test begins


class Alarm:
    """Something to be done at an instant, unless it is cancelled before."""

    __slots__ = ("args", "cancelled", "do")

    def __init__(self, do: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.do = do
        self.args = args
        self.cancelled = False

    def cancel(self) -> None:
        """It will not be done."""
        self.cancelled = True

    def ring(self) -> None:
        """Its time has come."""
        if not self.cancelled:
            self.do(*self.args)


class Background:
    """The clock of a test, in microseconds from 0, and the alarms of its members.  It is their event loop.

    The test's own timers are asyncio's: so it can be told whether the test still waits for time to pass.
    """

    def __init__(self) -> None:
        self.agenda = Agenda()  # the world's: frames on their way are entries of it too

    # -- clocks

    @property
    def time(self) -> int:
        """What the clock shows."""
        return self.agenda.now

    def now(self) -> int:
        return self.agenda.now

    def wall(self) -> int:
        return WALL_CLOCK + self.agenda.now

    # -- alarms

    def after(self, delay: int, do: Callable[..., object], *args: Any) -> Alarm:
        """Call `do(*args)` in `delay` microseconds; those of one instant in the order in which they were asked for."""
        alarm = Alarm(do, args)
        self.agenda.after(delay, alarm.ring)
        return alarm

    def call_soon(self, callback: Callable[[], object], /) -> Alarm:
        return self.after(0, callback)

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Alarm:
        return self.after(round(delay * SECOND), callback)

    def next(self) -> int | None:
        """When the first alarm is due, or would be if it were not cancelled."""
        return self.agenda.next()

    def ring(self, until: int) -> None:
        """Do what is due until then; it may make more due, which is done too."""
        self.agenda.run_until(max(until, self.agenda.now))
