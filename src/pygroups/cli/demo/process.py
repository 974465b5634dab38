"""The processes of the demo's members: the director sends them orders and reads their reports."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from pygroups.core.errors import Error

from . import messages

Kind = TypeVar("Kind", bound=msgspec.Struct)


class DemoFailed(Error):
    """A step of the demo failed; the message names the step."""


class MemberProcess:
    """One member's process, and the last report of each kind that it sent."""

    def __init__(
        self, name: str, process: asyncio.subprocess.Process, progressed: Callable[[MemberProcess], None]
    ) -> None:
        self.name = name
        self.process = process
        self.progressed = progressed
        self.joined: messages.Joined | None = None
        self.progress = messages.WorkerReport({}, {}, 0, 1)
        self.view: list[str] = []
        self.view_at_us = 0
        self.reports: asyncio.Queue[msgspec.Struct] = asyncio.Queue()
        self.reported_at = 0.0
        self.end: messages.End | None = None
        self.ended = asyncio.Event()
        self.expected_to_end = False
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self._take(msgspec.json.decode(line, type=messages.Report))
        code = await self.process.wait()
        if not self.expected_to_end and self.end is None:
            raise DemoFailed(f"member {self.name} ended unexpectedly with exit code {code}; see its error output above")

    def _take(self, report: messages.Report) -> None:
        if isinstance(report, messages.WorkerReport):
            self.progress, self.reported_at = report, time.monotonic()
            self.progressed(self)
        elif isinstance(report, messages.Views):
            self.view, self.view_at_us = report.members, report.at_us
        elif isinstance(report, messages.Joined):
            self.joined = report
        elif isinstance(report, messages.End):
            self.end = report
            self.ended.set()
        else:
            self.reports.put_nowait(report)

    def order(self, order: msgspec.Struct) -> None:
        """Send an order to the process."""
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(order) + b"\n")

    async def report(self, kind: type[Kind]) -> Kind:
        """The next report of this kind.  Reports of other kinds before it are dropped."""
        while True:
            report = await self.reports.get()
            if isinstance(report, kind):
                return report

    @property
    def sent(self) -> int:
        return sum(self.progress.sent.values())

    @property
    def finished(self) -> bool:
        """Whether the member has sent all its feeds."""
        return bool(self.progress.totals) and self.progress.sent == self.progress.totals
