"""Runs the processes of a measurement: starts them, gives them the instants of the load, kills one if wanted, and
judges what they report."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

import msgspec

from pygroups.cli.progress import say
from pygroups.core.errors import Error, UsageError
from pygroups.core.services import TOTAL
from pygroups.layers.profiles import profile_named

from .messages import Begin, Failed, Finish, Order, Report, Seen, Sent, Task, Viewed
from .result import Result, result_of

START: Final = 0.3  # seconds from the order to the first message
WARM: Final = 1.0  # seconds of load before the first instant
COOL: Final = 0.25  # seconds of load after the last one
JOIN_TIMEOUT: Final = 60.0
PATIENCE: Final = 10.0  # seconds without a delivery after which the rest counts as lost
LINE_MAX: Final = 1 << 24

Kind = TypeVar("Kind", Viewed, Sent, Seen)


class PerfFailed(Error):
    """A process of the measurement ended, or did not join."""


class MemberProcess:
    """One process of the group."""

    def __init__(self, index: int, process: asyncio.subprocess.Process) -> None:
        self.index = index
        self.process = process

    def order(self, order: Order | Task) -> None:
        """Send an order."""
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(order) + b"\n")

    async def next(self, kind: type[Kind]) -> Kind:
        """The next report of this kind; others are left out.

        Raises PerfFailed if the process has ended, and UsageError if its call was wrong.
        """
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            report: Report = msgspec.json.decode(line, type=Report)
            if isinstance(report, Failed):
                raise (UsageError if report.is_usage else PerfFailed)(f"member m{self.index}: {report.text}")
            if isinstance(report, kind):
                return report
        code = await self.process.wait()
        raise PerfFailed(f"member m{self.index} ended with exit code {code}; see its error output above")

    async def is_in_view_of(self, count: int) -> list[int]:
        """The members of the first view that has so many."""
        while True:
            view = await self.next(Viewed)
            if len(view.members) == count:
                return view.members


def measure(task: Task, members: int, senders: int, duration: float, *, failover: bool = False) -> Result:
    """Measure a group of `members` processes, of which the last `senders` in the view send, for `duration` seconds.

    The members of `task` meet in a folder of their own.  Raises PerfFailed if a process ends that should not.
    """
    with TemporaryDirectory(prefix="pygroups-perf-") as place:
        here = msgspec.structs.replace(task, discovery=f"dir:{place}")
        try:
            return asyncio.run(_measure(members, senders, here, duration, failover=failover))
        finally:
            say("")


async def _measure(members: int, senders: int, task: Task, duration: float, *, failover: bool) -> Result:
    async with _group(members, task) as group:
        first = time.monotonic() + START + WARM
        last = first + duration
        sending = range(members - senders, members)  # the first member orders; with few senders it does not send
        by_rank = await _ranks(group, members)
        for rank, member in enumerate(by_rank):
            member.order(Begin(rank in sending, first, last, last + COOL))
        progress = asyncio.create_task(_tell(first, last))
        killed_at, living = None, by_rank
        if failover:
            await asyncio.sleep(first + duration / 2 - time.monotonic())
            killed_at = time.monotonic()
            by_rank[0].process.send_signal(signal.SIGKILL)
            living = by_rank[1:]
        accepted = await _of_each(living, Sent, last + COOL - time.monotonic() + JOIN_TIMEOUT)
        progress.cancel()
        say("waiting for the last messages")
        sent = {member.index: one.accepted for member, one in zip(living, accepted, strict=True)}
        for member in living:
            member.order(Finish(sent, killed_at, PATIENCE))
        seen = await _of_each(living, Seen, 6 * JOIN_TIMEOUT)
    one_order = TOTAL in profile_named(task.profile).services
    return result_of(task, members, senders, duration, seen, one_order=one_order)


@asynccontextmanager
async def _group(members: int, task: Task) -> AsyncIterator[list[MemberProcess]]:
    """The processes; they leave at the end, or are killed if an error ends the measurement."""
    group: list[MemberProcess] = []
    pipe = asyncio.subprocess.PIPE
    try:
        for index in range(members):
            command = [sys.executable, "-m", "pygroups.cli.perf.worker"]
            process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, limit=LINE_MAX, start_new_session=True
            )
            group.append(MemberProcess(index, process))
            group[-1].order(msgspec.structs.replace(task, index=index))
        yield group
        for member in group:
            if member.process.returncode is None and member.process.stdin is not None:
                member.process.stdin.close()
        async with asyncio.timeout(JOIN_TIMEOUT):
            await asyncio.gather(*[member.process.wait() for member in group])
    finally:
        for member in group:
            if member.process.returncode is None:
                member.process.kill()
                await member.process.wait()


async def _ranks(group: list[MemberProcess], members: int) -> list[MemberProcess]:
    """The processes in the order of the view that has all of them."""
    say(f"{members} processes join")
    try:
        async with asyncio.timeout(JOIN_TIMEOUT):
            views = await asyncio.gather(*[member.is_in_view_of(members) for member in group])
    except TimeoutError:
        raise PerfFailed(f"the {members} processes were not in one view after {JOIN_TIMEOUT:.0f} s") from None
    return [group[index] for index in views[0]]


async def _of_each(living: list[MemberProcess], kind: type[Kind], seconds: float) -> list[Kind]:
    """The next report of this kind from each of the living."""
    try:
        async with asyncio.timeout(seconds):
            return list(await asyncio.gather(*[member.next(kind) for member in living]))
    except TimeoutError:
        raise PerfFailed(f"a member reported nothing for {seconds:.0f} s") from None


async def _tell(first: float, last: float) -> None:
    while True:
        now = time.monotonic()
        say("warming up" if now < first else f"measuring: {min(now, last) - first:.0f} of {last - first:.0f} s")
        await asyncio.sleep(0.2)
