"""An asyncio event loop with virtual time: when nothing is ready, the time jumps to the next timer.

The loop is asyncio's own loop over a selector that does not wait.  While a thread works, time stands still.  Sockets
are refused, because a process outside the test answers in real time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Final

from pygroups.core.errors import UsageError
from pygroups.core.limits import SECOND

from .background import Background

PASS: Final = 10  # microseconds that a pass of the loop takes, so time passes for a task that polls
NO_OUTSIDE: Final = (
    "a test in virtual time cannot use sockets, pipes or other processes, because they answer in real time: "
    "replace them with objects in memory, or test this code with real channels"
)
PROCESS: Final[ContextVar[str]] = ContextVar("pygroups_process", default="")  # the process that runs now


class NumberedTask(asyncio.Task[Any]):
    """A task with the same hash in every run, so asyncio's loops over sets of tasks keep their order."""

    def __init__(self, number: int, coro: Any, **options: Any) -> None:
        self.number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.SelectorEventLoop):
    """The event loop of a test.  Calls `stuck` when the test hangs.

    The test hangs if it has no timer and if the members do nothing for the test in `patience` microseconds.  The test
    also hangs if the virtual time exceeds `limit` microseconds.
    """

    def __init__(self, background: Background, limit: int, stuck: Callable[[str], None]) -> None:
        self.background = background
        self.limit = limit
        self.stuck = stuck
        self.patience: Callable[[], int] = lambda: 0
        self.tasks: dict[asyncio.Task[Any], str] = {}  # the tasks that are not done, with their process
        self.failed: list[asyncio.Task[Any]] = []  # the tasks with an error that was not retrieved at once
        self.made = 0  # number of tasks made
        self.working = 0  # number of threads at work
        self.closing = False
        self.woken = False  # asyncio has a new callback or timer
        self.selector = VirtualSelector(self)
        super().__init__(self.selector)
        self.selector.closed_to_others = True
        self._clock_resolution = 1 / SECOND
        self.set_task_factory(self._numbered)

    def time(self) -> float:
        return self.background.time / SECOND

    def pass_time(self, timeout: float | None) -> None:
        """Let virtual time pass: `timeout` seconds, or until the background schedules a callback of the loop."""
        background, self.woken = self.background, False
        if timeout is not None and timeout <= 0:
            background.ring(background.time + PASS)
            return
        until = None if timeout is None else background.time + round(timeout * SECOND)
        in_vain = background.time + self.patience() if until is None else None
        while not self.woken:
            when = background.next()
            if in_vain is not None and (when is None or when > in_vain):
                self.stuck("no message, timer or result can arrive any more")
                return
            due = until if when is None or (until is not None and until < when) else when
            assert due is not None
            if due > self.limit:
                limit = f"{self.limit // SECOND:,} seconds of virtual time"
                self.stuck(f"the test takes longer than {limit}; limit= sets this time")
                return
            background.ring(due)
            if due == until:
                return

    # -- callbacks, timers and tasks are noted

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:  # type: ignore[override]
        self.woken = True
        return super().call_soon(callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        self.woken = True
        return super().call_at(when, callback, *args, context=context)

    def create_task(self, coro: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:  # type: ignore[override]
        task = super().create_task(coro, **options)
        context = options.get("context")
        self.tasks[task] = PROCESS.get() if context is None else context.get(PROCESS, "")
        task.add_done_callback(self._done)
        return task

    def _numbered(self, loop: Any, coro: Any, **options: Any) -> asyncio.Task[Any]:
        self.made += 1
        return NumberedTask(self.made, coro, loop=loop, **options)

    def _done(self, task: asyncio.Task[Any]) -> None:
        del self.tasks[task]
        if unseen(task):
            self.failed.append(task)

    # -- threads

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        future = super().run_in_executor(executor, func, *args)
        self.working += 1
        future.add_done_callback(self._worked)
        return future

    def _worked(self, _: object) -> None:
        self.working -= 1

    async def subprocess_exec(self, *args: Any, **options: Any) -> Any:
        raise UsageError(NO_OUTSIDE)

    async def subprocess_shell(self, *args: Any, **options: Any) -> Any:
        raise UsageError(NO_OUTSIDE)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        self.closing = True
        await super().shutdown_default_executor()


def unseen(task: asyncio.Task[Any]) -> bool:
    """Whether the task raised an error that no task has retrieved."""
    return bool(getattr(task, "_log_traceback", False))


class VirtualSelector(selectors.DefaultSelector):
    """Polls for wake-ups by threads and signals.  Waits in real time for threads only."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self.loop = loop
        self.closed_to_others = False

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if self.closed_to_others:
            raise UsageError(NO_OUTSIDE)
        return super().register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        loop = self.loop
        waits = timeout is None or timeout > 0
        if waits and (loop.working or loop.closing):
            return super().select(None)
        found = super().select(0)
        if not found:
            loop.pass_time(timeout)
        return found
