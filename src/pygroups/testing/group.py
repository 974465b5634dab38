"""The group in memory of one test: its channels, the network between them, and the faults that the test makes."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Iterable
from contextvars import copy_context
from itertools import combinations
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from pygroups.channel import Channel
from pygroups.core.address import Address, checked_name
from pygroups.core.errors import UsageError
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.drivers.member import liveness_bound
from pygroups.sim.promises.broken import Broken
from pygroups.sim.schedules.schedule import Weather
from pygroups.sim.world.network import CALM

from .errors import Crashed, Unsettled
from .loop import PROCESS
from .platform import MemoryPlatform
from .running import RunningTest
from .watch import SessionWatch

SHARES: Final = ("loss", "repeat", "reorder", "tail", "late", "corrupt")
LIMIT: Final = 7_200.0  # seconds of virtual time
POLL: Final = 100 * MILLISECOND  # between two checks whether the group is settled
CALM_FOR: Final = 1 * SECOND  # the group must stay settled for this time

Args = ParamSpec("Args")
Result = TypeVar("Result")


class Group:
    """All processes of one test, in one event loop and in virtual time.  Guide: docs/guides/testing.md.

    `seed`: the seed of all random decisions; the same seed gives the same bytes.  `limit`: the longest duration of a
    test, in seconds of virtual time, 7,200 by default.
    """

    def __init__(self, *, seed: int = 0, limit: float = LIMIT) -> None:
        self.seed = seed
        self.limit = limit
        self.broken: Broken | None = None  # the first violation of a promise
        self._platform = MemoryPlatform(seed, self._failed)
        self._test: RunningTest | None = None

    # -- running a test

    def run(
        self, program: Callable[Args, Coroutine[Any, Any, Result]], *args: Args.args, **kwargs: Args.kwargs
    ) -> Result:
        """Run `program(*args, **kwargs)` in virtual time to its end, and return its result.

        Every Channel that the program opens is a member in memory.  Raises the exception of the program, or of one of
        its tasks that no other task awaited (an ExceptionGroup for several tasks); Broken if a promise was broken; Hang
        if the test does not end; UsageError if this Group has run a test already.  Tasks and channels that are open at
        the end are closed, with a warning for each.
        """
        __tracebackhide__ = True  # pytest shows the lines of the test
        test = self._prepared()
        if test.begun:
            raise UsageError("this group has run a test already: make a new Group for each test")
        try:
            result = test.play(program(*args, **kwargs))
        except BaseException as error:
            error.add_note(f"pygroups.testing: seed {self.seed}, {self.now:.6f} s of virtual time")
            raise
        finally:
            for left in test.left_open:
                warnings.warn(left, stacklevel=2)
        self.check()
        return result

    @property
    def now(self) -> float:
        """Seconds of virtual time since the test began."""
        return self._platform.background.time / SECOND

    # -- members

    def channel(self, group: str, **options: Any) -> Channel:
        """A channel that has not joined; the same as pygroups.Channel(group, ...)."""
        return Channel(group, **options)

    def start(self, name: str, program: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Start `program` as a process with this name.  Channels of the process without a name get the same name.

        Returns the task that runs `program`.  In a fixture the process is queued, and starts when the test begins.
        `crash(name)` ends all tasks of the process.  Tasks of the process that still run at the end of the test are
        canceled without a warning.  Raises UsageError for an invalid name, and after the end of the test.
        """
        checked_name(name, "process")
        context = copy_context()
        context.run(PROCESS.set, name)
        test = self._prepared()
        if test.begun and not test.running:
            program.close()
            raise UsageError(f"the test is over: process {name!r} was not started; start processes during the test")
        test.processes.setdefault(name)
        return test.loop.create_task(program, name=name, context=context)

    # -- faults

    def crash(self, *names: str) -> None:
        """End processes, as `kill -9` does: their tasks are canceled.

        A task outside the process that still reads one of its channels gets Crashed; a task that sends gets
        ChannelClosed.  Each name is the name of a process or of a member.  Raises UsageError for another name.
        """
        test = self._running()
        for name in names:
            victims = [watch for watch in self._platform.living() if name in (watch.me.name, watch.process)]
            processes = dict.fromkeys([watch.process for watch in victims if watch.process])
            if name in test.processes:
                processes.setdefault(name)
            if not victims and not processes:
                raise UsageError(f"there is no process and no member {name!r} to crash: {self._living_names()}")
            for watch in self._platform.living():
                if watch in victims or watch.process in processes:
                    self._crash(watch)
            test.cancel_tasks_of(processes)

    def _crash(self, watch: SessionWatch) -> None:
        session = watch.session
        session.reading.queue.clear()  # a crashed process reads no further events
        session.states.stop()
        session.member.crash(Crashed(f"the test crashed {watch.me.name}, the process of this channel"))
        session.crash = None  # `async with` ends without an error, because the test asked for the crash
        self._mark("fault", reason="crash", members=(watch.me,))

    def partition(self, *sides: Iterable[str]) -> None:
        """From now on no frame passes between members of different sides.  A side is a list of names.

        With one list, this side is cut off from all other members that have existed so far.  Partitions add up until
        `heal`.
        """
        parts = [tuple(side) for side in sides]
        if any(isinstance(side, str) for side in sides) or not parts:
            raise UsageError("partition() takes lists of names: group.partition(['A'], ['B', 'C'])")
        if len(parts) == 1:
            known = dict.fromkeys([address.name for address in self._platform.watches])
            parts.append(tuple([name for name in known if name not in parts[0]]))
        self._platform.disturb()
        for ours, theirs in combinations(parts, 2):
            both = [(one, other) for one in ours for other in theirs]
            self._platform.weather.cut([*both, *[(other, one) for one, other in both]])
        named = [watch.me for watch in self._platform.living() if any(watch.me.name in part for part in parts)]
        self._mark("fault", reason="partition", members=tuple(named))

    def loss(self, share: float) -> None:
        """From now on the network loses this share of all frames, from 0 to 1."""
        self.weather(loss=share)

    def weather(self, **shares: float) -> None:
        """Set the shares of frames, from 0 to 1, for each fault: `loss`, `repeat`, `reorder`, `tail` (very late
        frames), `late` (a copy arrives long after the frame), `corrupt` (damaged bytes).  Faults without a share end.
        Raises UsageError for another name, and for a share outside of this range."""
        for name, share in shares.items():
            if name not in SHARES or not 0 <= share <= 1:
                raise UsageError(f"weather {name}={share!r}: give shares from 0 to 1 of {', '.join(SHARES)}")
        self._platform.disturb()
        self._platform.weather.set_weather(Weather(**shares))  # type: ignore[arg-type]
        self._mark("fault", reason="weather")

    def heal(self) -> None:
        """Remove all partitions, losses and other faults of the network.  Crashed processes stay crashed."""
        self._platform.weather.mend_all()
        self._platform.weather.set_weather(CALM)
        self._mark("heal")

    # -- checks

    def views(self, group: str | None = None) -> list[tuple[str, ...]]:
        """The current views of the living members, of one group or of all groups, each as the names of its members.

        A list with one view means that all joined members are together.
        """
        return [tuple([member.name for member in view.members]) for view in self._platform.views(group)]

    async def settled(self, within: float | None = None, *, one: bool = False) -> None:
        """Wait until all groups have been settled for a second.

        A group has settled when all members of each view are in that view, have all its messages, and have no
        unfinished work.  The two sides of a network split can settle, each in its own view; members that are blocked
        without a majority count as settled.  With `one=True` each group
        must be in one view.  Unread messages do not matter.  `within`: the longest wait, in seconds of virtual time;
        the default follows from the members' timeouts.  Raises Unsettled after this time.
        """
        begin = self._platform.background.time
        allowed = self._bound() if within is None else round(within * SECOND)
        calm_since: int | None = None
        while True:
            now = self._platform.background.time
            try:
                self._platform.at_rest(one=one)
            except Broken as missing:
                calm_since = None
                if now - begin > allowed:
                    raise self._unsettled(now - begin, missing) from None
            else:
                calm_since = now if calm_since is None else calm_since
                if now - calm_since >= CALM_FOR:
                    return
            await asyncio.sleep(POLL / SECOND)

    def _unsettled(self, waited: int, missing: Broken) -> Unsettled:
        lines = [f"the group has not settled after {waited / SECOND:g} s: {missing}"]
        return Unsettled("\n  ".join([*lines, *map(str, self._platform.living())]))

    def _bound(self) -> int:
        configs = [watch.session.options.limits for watch in self._platform.living()]
        return 2 * max([liveness_bound(config) for config in configs], default=SECOND)

    def check(self) -> None:
        """Raise Broken, with the witness, if a promise was broken so far.  The end of each test makes the same
        check."""
        if self.broken is not None:
            raise self.broken

    def journal(self, folder: str | Path) -> Path:
        """Save the journals of all members in `folder`, for `pygroups audit`.  Returns the folder."""
        for journal in self._platform.journals.values():
            journal.save(Path(folder))
        return Path(folder)

    def _close(self) -> None:
        """End the fixture: drop the queued processes that never ran, with a warning for each."""
        if self._test is not None:
            for queued in self._test.forget():
                warnings.warn(queued, stacklevel=2)

    # -- inside

    def _prepared(self) -> RunningTest:
        if self._test is None:
            self._test = RunningTest(self._platform, round(self.limit * SECOND))
        return self._test

    def _running(self) -> RunningTest:
        if self._test is None or not self._test.running:
            raise UsageError("the test does not run now: call this function in the test, and not in a fixture")
        return self._test

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, Broken) and self.broken is None:
            self.broken = error
        if self._test is not None:
            self._test.fail(error)

    def _mark(self, kind: str, **fields: object) -> None:
        """Write a mark into the journals of all living members."""
        for watch in self._platform.living():
            watch.session.member.record(kind, dict(fields))

    def _living_names(self) -> str:
        names: list[Address] = [watch.me for watch in self._platform.living()]
        return f"the members are {', '.join([address.name for address in names])}" if names else "there is no process"


def run(
    program: Callable[..., Coroutine[Any, Any, Result]], *args: Any, seed: int = 0, limit: float = LIMIT, **kwargs: Any
) -> Result:
    """Run `program(group, *args, **kwargs)` in virtual time, with a new Group; see Group.run."""
    __tracebackhide__ = True
    group = Group(seed=seed, limit=limit)
    return group.run(program, group, *args, **kwargs)
