"""One test from beginning to end: the event loop, the errors that fail the test, and the tasks left open."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Coroutine, Iterable
from typing import Any, Final, TypeVar

from pygroups.channel.platform import PLATFORM
from pygroups.core.limits import SECOND
from pygroups.drivers.member import liveness_bound
from pygroups.sim.promises.broken import Broken

from .errors import Crashed, Hang, LeftOpen
from .loop import VirtualLoop, unseen
from .platform import MemoryPlatform
from .waiting import canceled_at, sentence

OURS: Final = "pygroups "  # the prefix of the names of pygroups' own tasks
ENDING: Final = 60.0  # seconds of virtual time in which a canceled task has to end

Result = TypeVar("Result")


class RunningTest:
    """Plays one coroutine on `platform`."""

    def __init__(self, platform: MemoryPlatform, limit: int) -> None:
        self.platform = platform
        self.loop = VirtualLoop(platform.background, limit, self._stuck)
        self.loop.patience = self._patience
        setattr(self.loop, PLATFORM, platform)
        self.begun = False
        self.running = False
        self.processes: dict[str, None] = {}  # the processes that the test started
        self.left_open: list[LeftOpen] = []
        self._verdict: asyncio.Future[None] = self.loop.create_future()  # has the error that ends the test early
        self._stubborn: Hang | None = None
        self._stray_errors: list[BaseException] = []  # errors that were raised where no task receives them
        # how many of those errors, and of failed tasks, there were when the test failed
        self._before_end: tuple[int | None, int | None] = (None, None)

    def play(self, program: Coroutine[Any, Any, Result]) -> Result:
        """The result of `program`, which runs on a loop of its own."""
        __tracebackhide__ = True  # pytest shows the lines of the test
        self.begun = True
        self.loop.set_exception_handler(self._on_stray_error)
        try:
            with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
                self.running = True
                main = runner.run(self._play(program))
        finally:
            self.running = False
        error = self._error(main)
        if error is not None:
            raise error
        return main.result()

    async def _play(self, program: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        player = asyncio.current_task()
        assert player is not None
        player.set_name(f"{OURS}plays the test")
        main = self.loop.create_task(program, name="the test")
        try:
            await asyncio.wait((main, self._verdict), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._close(main)
        return main

    def _error(self, main: asyncio.Task[Result]) -> BaseException | None:
        """The error of the test, or None if the test passed."""
        stray = [*self._stray_errors[: self._before_end[0]], *self._errors_of_tasks(main)]
        error = self._verdict.exception() if self._verdict.done() else None
        if isinstance(error, Hang | Broken):
            error = error.with_traceback(canceled_at(main))
        if error is None and not main.cancelled():
            error = main.exception()
        if error is not None:
            for other in stray:
                if other is not error:
                    error.add_note(f"another task had failed: {other!r}")
            return error
        if len(stray) > 1:
            return BaseExceptionGroup("tasks of the test failed, and no task awaited them", stray)
        return stray[0] if stray else None

    def forget(self) -> list[LeftOpen]:
        """Cancel the processes that were queued for a test that never ran; a warning for each."""
        if self.begun:
            return []
        self.begun = True
        queued = list(self.loop.tasks)
        for task in queued:
            task.cancel()
        self.loop.run_until_complete(asyncio.wait(queued))
        self.loop.close()
        why = "only a coroutine test, or group.run(), runs the processes that start() has queued"
        return [LeftOpen(f"process {task.get_name()!r} never ran: {why}") for task in queued]

    # -- failing

    def fail(self, error: BaseException) -> None:
        """End the test with `error`.  The first error counts."""
        if not self._verdict.done():
            self._verdict.set_exception(error)

    def _stuck(self, why: str) -> None:
        hang = self._stubborn or Hang(self._report(why))
        if self._verdict.done() or not self.running:
            raise hang
        self.fail(hang)

    def _report(self, why: str) -> str:
        loop = self.loop
        waiting = [sentence(task) for task in loop.tasks if not _ours(task)]
        stray = [f"task {task.get_name()!r} has failed: {error!r}" for task, error in self._failures()]
        channels = [str(watch) for watch in self.platform.living()]
        head = f"the test hangs after {loop.time():.3f} s of virtual time: {why}"
        return "\n  ".join([head, *waiting, *stray, *channels])

    def _patience(self) -> int:
        """How long members may need for an exchange among themselves, timeouts included, in microseconds."""
        configs = [watch.session.options.limits for watch in self.platform.living()]
        longest = [2 * liveness_bound(one) + one.stable_suspend_max + one.state_timeout for one in configs]
        return max(longest, default=SECOND)

    def _on_stray_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            if not isinstance(error, Crashed):
                self._stray_errors.append(error)
        else:
            loop.default_exception_handler(context)

    def _failures(self) -> Iterable[tuple[asyncio.Task[Any], BaseException]]:
        """The tasks that raised an error which no task has retrieved, each with its error."""
        for task in self.loop.failed[: self._before_end[1]]:
            error = task.exception() if unseen(task) else None
            if error is not None and not isinstance(error, Crashed):
                yield task, error

    def _errors_of_tasks(self, main: asyncio.Task[Any]) -> list[BaseException]:
        found = []
        for task, error in self._failures():
            if task is not main:
                error.add_note(f"raised in task {task.get_name()!r}, which no task awaited")
                found.append(error)
        return found

    # -- the end

    def cancel_tasks_of(self, processes: Container[str]) -> None:
        """Cancel the tasks of `processes`."""
        for task, process in list(self.loop.tasks.items()):
            if process and process in processes:
                task.cancel()

    async def _close(self, main: asyncio.Task[Any]) -> None:
        """End what is left over: the tasks of processes, then other tasks, then open channels.

        After a test that passed, a task or a channel that was left open gives a warning.
        """
        well = main.done() and not self._verdict.done()
        if self._verdict.done():  # later failures are a consequence of this end
            self._before_end = (len(self._stray_errors), len(self.loop.failed))
        main.cancel()
        self.cancel_tasks_of(self.processes)
        await self._ended([main, *self._others(self.processes)])
        others = [task for task in self._others() if self.loop.tasks[task] not in self.processes]
        if well:
            self._warn(
                [
                    f"task {task.get_name()!r} still ran at the end of the test, and was canceled: "
                    "await or cancel this task"
                    for task in others
                ]
            )
        for task in others:
            task.cancel()
        await self._ended(others)
        for watch in self.platform.living():
            if well:
                who, group = watch.me.name, watch.session.options.group
                self._warn(
                    [
                        f"channel {who} of group {group!r} was open at the end of the test, and was closed: "
                        "use `async with`"
                    ]
                )
            watch.session.states.stop()
            watch.session.member.close()
        await self._ended([task for task in self.loop.tasks if task is not asyncio.current_task()])
        await self.loop.shutdown_asyncgens()
        self._insist([task for task in self.loop.tasks if task is not asyncio.current_task()])

    def _insist(self, stubborn: list[asyncio.Task[Any]]) -> None:
        """Fail the test with the tasks that continue although they were canceled."""
        if stubborn:
            self._stubborn = Hang(
                "\n  ".join(["tasks continue although they were canceled:", *map(sentence, stubborn)])
            )
            self.loop.limit = self.platform.background.time

    def _others(self, processes: Container[str] | None = None) -> list[asyncio.Task[Any]]:
        """The tasks of the test that are not done; with `processes`, only the tasks of these processes."""
        return [
            task
            for task, process in self.loop.tasks.items()
            if task is not asyncio.current_task()
            and not _ours(task)
            and (processes is None or (process and process in processes))
        ]

    def _warn(self, texts: list[str]) -> None:
        self.left_open += [LeftOpen(text) for text in texts]

    async def _ended(self, tasks: list[asyncio.Task[Any]]) -> None:
        if tasks:
            await asyncio.wait(tasks, timeout=ENDING)


def _ours(task: asyncio.Task[Any]) -> bool:
    """Whether `task` belongs to pygroups, or to asyncio, which closes an abandoned generator in a task."""
    return task.get_name().startswith(OURS) or type(task.get_coro()).__name__ == "async_generator_athrow"
