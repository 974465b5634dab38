"""The steps of an audit: seconds of each step, and the CPU seconds of this process, its workers and Spark's JVM."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pygroups.pipeline.verdict import AuditStep

_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Timings:
    """Names steps to `progress` and measures them. CPU time of processes that other steps started counts too."""

    def __init__(self, progress: Callable[[str], None], done: list[AuditStep] | None = None) -> None:
        self.done: list[AuditStep] = [] if done is None else done
        self._progress = progress

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self._progress(name)
        began, used = time.perf_counter(), cpu_seconds()
        yield
        self.done.append(AuditStep(name, time.perf_counter() - began, cpu_seconds() - used))


def cpu_seconds() -> float:
    """CPU seconds of this process and of all its children, living and dead, so far; without /proc of it alone."""
    own = os.times()
    return (
        own.user
        + own.system
        + own.children_user
        + own.children_system
        + sum(map(seconds_of, processes_below(os.getpid())))
    )


def processes_below(process: int) -> Iterator[int]:
    """All living processes below `process`."""
    for child in _children_of(process):
        yield child
        yield from processes_below(child)


def _children_of(process: int) -> Iterator[int]:
    """None of a process, or of a thread, that ends meanwhile."""
    tasks = Path(f"/proc/{process}/task")
    try:
        threads = os.listdir(tasks)
    except OSError:
        return
    for thread in threads:
        with suppress(OSError):
            yield from map(int, (tasks / thread / "children").read_text().split())


def seconds_of(process: int) -> float:
    """CPU seconds of a process and of its children that have ended; 0 of one that has ended itself."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS
