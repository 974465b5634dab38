"""Virtual time, and the timers of members and of their network, apart from the test's own tasks and timers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pygroups.core.limits import SECOND
from pygroups.sim.world.agenda import Agenda

WALL_CLOCK: Final = 1_700_000_000_000_000  # the wall clock at the beginning of a test, in microseconds since 1970


class Alarm:
    """A call at an instant, unless the call is cancelled before."""

    __slots__ = ("args", "cancelled", "do")

    def __init__(self, do: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.do = do
        self.args = args
        self.cancelled = False

    def cancel(self) -> None:
        """Prevent the call."""
        self.cancelled = True

    def ring(self) -> None:
        """Call `do`, unless the alarm is cancelled."""
        if not self.cancelled:
            self.do(*self.args)


class Background:
    """The clock of a test, in microseconds from 0, and the alarms of its members: the event loop of the members.

    The test's own timers are asyncio's.  The loop can therefore see whether the test still waits for time to pass.
    """

    def __init__(self) -> None:
        self.agenda = Agenda()  # the agenda of the world, which also holds frames under way

    # -- clocks

    @property
    def time(self) -> int:
        """The virtual time, in microseconds from the beginning of the test."""
        return self.agenda.now

    def now(self) -> int:
        return self.agenda.now

    def wall(self) -> int:
        return WALL_CLOCK + self.agenda.now

    # -- alarms

    def after(self, delay: int, do: Callable[..., object], *args: Any) -> Alarm:
        """Call `do(*args)` in `delay` microseconds.  Calls at one instant run in the order of the requests."""
        alarm = Alarm(do, args)
        self.agenda.after(delay, alarm.ring)
        return alarm

    def call_soon(self, callback: Callable[[], object], /) -> Alarm:
        return self.after(0, callback)

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Alarm:
        return self.after(round(delay * SECOND), callback)

    def next(self) -> int | None:
        """The time of the first alarm, cancelled alarms included, or None."""
        return self.agenda.next()

    def ring(self, until: int) -> None:
        """Run every call that is due up to the time `until`, including calls that these calls add."""
        self.agenda.run_until(max(until, self.agenda.now))
