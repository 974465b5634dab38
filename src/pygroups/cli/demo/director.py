"""The director of the demo: it starts the members, kills one, starts it again, and compares all tables at the end."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Coroutine
from typing import Final

from pygroups.cli.refusals import FAILED

from . import messages
from .auditing import audited, check_audit
from .folder import GROUP, DemoFolder
from .narrator import Narrator
from .process import DemoFailed, Kind, MemberProcess
from .replica import digest_of, what_is_wrong
from .result import DemoResult, Kill
from .settings import DemoSettings

FEED_SECONDS: Final = 15.0  # for a whole feed of any length
KILL_BETWEEN: Final = (0.2, 0.45)  # as parts of that time; all members have lines left until half of it
AWAY_SECONDS: Final = 2.0  # before the killed member starts again
JOIN_SECONDS: Final = 30.0
STALL_SECONDS: Final = 60.0  # time without progress after which the demo fails
QUIET_SECONDS: Final = 10.0
LEAVE_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 0.05
AGAIN: Final = "; other programs may use this machine too much: run the demo again"  # a step that took too long


def direct(settings: DemoSettings) -> int:
    """Run the demo and return its exit code."""
    if settings.audit:
        check_audit()
    place = DemoFolder(settings.out)
    place.prepare(settings.names())
    narrator = Narrator(settings)
    try:
        outcome = asyncio.run(Director(settings, place, narrator).run())
        narrator.compared(outcome)
        if settings.audit:
            outcome.verdicts, outcome.unjudged = audited(place, narrator.step)
            narrator.audited(outcome, place.report)
    finally:
        narrator.close()
    place.result.write_bytes(outcome.as_json(settings.seed, settings.profile))
    narrator.last_word(outcome, place.result)
    return 0 if outcome.ok else FAILED


class Director:
    """Runs the demo from the first process to the last."""

    def __init__(self, settings: DemoSettings, place: DemoFolder, narrator: Narrator) -> None:
        self.settings = settings
        self.place = place
        self.narrator = narrator
        self.chance = random.Random(settings.seed)
        self.names = settings.names()
        self.feeds_of = {
            name: list(settings.feeds[number :: settings.members]) for number, name in enumerate(self.names)
        }
        self.total = sum(len(feed.records()) for feed in settings.feeds)
        self.members: dict[str, MemberProcess] = {}
        self.kill: Kill | None = None
        self.discovery = ""

    async def run(self) -> DemoResult:
        """Run the members.  Returns the compared tables."""
        with tempfile.TemporaryDirectory(prefix="pygroups-demo-") as folder:
            self.discovery = f"dir:{folder}"
            try:
                return await self._watched(self._course())
            finally:
                await self._end_all()

    async def _watched(self, course: Coroutine[None, None, DemoResult]) -> DemoResult:
        """Run `course`, unless a member's process ends unexpectedly."""
        task = asyncio.create_task(course)
        try:
            while not task.done():
                readers = [member.reading for member in self.members.values() if not member.reading.done()]
                await asyncio.wait([task, *readers], timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                for member in self.members.values():
                    if member.reading.done():
                        member.reading.result()
            return task.result()
        finally:
            task.cancel()

    async def _end_all(self) -> None:
        for member in self.members.values():
            member.expected_to_end = True
            if member.process.returncode is None:
                member.process.kill()
        for member in self.members.values():
            await asyncio.wait([member.reading])

    async def _course(self) -> DemoResult:
        began = time.monotonic()
        first, *rest = self.names
        await self._start(first)  # alone, so that it founds the group and orders the messages in every demo
        await self._until(lambda: self.members[first].joined is not None, JOIN_SECONDS, f"{first} did not start")
        for name in rest:
            await self._start(name)
        await self._until(self._all_in_one_view, JOIN_SECONDS, "the members did not find each other")
        self.narrator.together(self._sequencer(), self.feeds_of)
        for member in self.members.values():
            member.order(messages.Go(FEED_SECONDS))
        if self.settings.kill:
            await asyncio.sleep(self.chance.uniform(*KILL_BETWEEN) * FEED_SECONDS)
            await self._kill_the_sequencer()
            await asyncio.sleep(AWAY_SECONDS)
            await self._bring_back()
        await self._until_all_is_applied()
        await self._be_quiet()
        await self._leave()
        return DemoResult(
            seconds=time.monotonic() - began,
            records=self.total,
            held={name: member.end.records for name, member in self.members.items() if member.end},
            digests={name: digest_of(self.place.replica(name)) for name in self.names},
            wrong={name: what_is_wrong(self.place.replica(name), self.settings.feeds) for name in self.names},
            kill=self.kill,
        )

    # -- processes

    async def _start(self, name: str) -> None:
        command = [sys.executable, "-m", "pygroups.cli.demo.worker"]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, start_new_session=True)
        member = self.members[name] = MemberProcess(name, process, self.narrator.progressed)
        profile = self.settings.profile
        replica, journal = str(self.place.replica(name)), str(self.place.journal)
        member.order(messages.Task(GROUP, name, self.feeds_of[name], replica, journal, self.discovery, profile))

    def _all_in_one_view(self) -> bool:
        views = [member.view for member in self.members.values()]
        return len(views[0]) == len(self.members) and all(view == views[0] for view in views)

    def _sequencer(self) -> str:
        """The name of the member that orders the messages: the first member of the view."""
        first = next(iter(self.members.values())).view[0]
        return first.partition("@")[0]

    async def _until(self, condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise DemoFailed(f"{otherwise} within {seconds:.0f} seconds{AGAIN}")
            await asyncio.sleep(LOOK_SECONDS)

    # -- the kill, and the return

    async def _kill_the_sequencer(self) -> None:
        victim = self.members[self._sequencer()]
        others = [member for member in self.members.values() if member is not victim]
        address = victim.view[0]
        await self._mark(others, "fault", f"{victim.name} is killed with SIGKILL", [address])
        victim.order(messages.TellBusy())
        busy = await self._reported(victim, messages.Busy, "the sequencer sends no messages: give longer input")
        all_had_lines = all(not member.finished for member in self.members.values() if member.progress.totals)
        going_on = any(not member.finished for member in others if member.progress.totals)
        victim.expected_to_end = True
        at_us = time.monotonic_ns() // 1_000
        victim.process.send_signal(signal.SIGKILL)
        await victim.process.wait()
        await self._until(
            lambda: all(address not in member.view for member in others),
            JOIN_SECONDS,
            "the other members did not agree on a view",
        )
        view_ms = max(member.view_at_us - at_us for member in others) / 1_000
        gap_ms = None
        if going_on:  # otherwise no message is delivered before the killed member is back
            firsts = [
                await self._reported(member, messages.FirstDelivered, "no message was delivered") for member in others
            ]
            gap_ms = max(first.at_us - at_us for first in firsts) / 1_000
        self.kill = Kill(address, busy.runs, sum(busy.sent.values()), all_had_lines, view_ms, gap_ms)
        self.narrator.killed(victim, self.kill, others)

    async def _reported(self, member: MemberProcess, kind: type[Kind], otherwise: str) -> Kind:
        try:
            return await asyncio.wait_for(member.report(kind), STALL_SECONDS)
        except TimeoutError:
            raise DemoFailed(f"{otherwise} within {STALL_SECONDS:.0f} seconds") from None

    async def _bring_back(self) -> None:
        assert self.kill is not None
        name = self.kill.address.partition("@")[0]
        self.narrator.starts_again(name)
        began = time.monotonic()
        await self._start(name)
        member = self.members[name]
        await self._until(lambda: member.joined is not None, JOIN_SECONDS, f"{name} did not come back")
        assert member.joined is not None
        self.kill.back_seconds = time.monotonic() - began
        self.kill.state_records = member.joined.records
        self.narrator.comes_back(member.joined, self.kill)
        await self._until(self._all_in_one_view, JOIN_SECONDS, f"not all members got a view with {name}")
        await self._mark(self.members.values(), "heal", f"{name} is back", [])
        member.order(messages.Go(FEED_SECONDS))

    async def _mark(self, members: Collection[MemberProcess], kind: str, reason: str, about: list[str]) -> None:
        """Write a mark into the journals of `members`, and wait until it is written."""
        for member in members:
            member.order(messages.Mark(kind, reason, about))
        for member in members:
            await member.report(messages.Marked)

    # -- the end

    async def _until_all_is_applied(self) -> None:
        so_far, since = -1, time.monotonic()
        while any(member.progress.applied < self.total for member in self.members.values()):
            applied = sum(member.progress.applied for member in self.members.values())
            if applied != so_far:
                so_far, since = applied, time.monotonic()
            if time.monotonic() - since > STALL_SECONDS:
                held = ", ".join(f"{member.name} {member.progress.applied:,}" for member in self.members.values())
                raise DemoFailed(f"the members make no progress: of {self.total:,} records they have {held}{AGAIN}")
            await asyncio.sleep(LOOK_SECONDS)
        self.narrator.all_applied(self.total)

    async def _be_quiet(self) -> None:
        await self._until_all_are_at_rest()
        await self._mark(self.members.values(), "quiet", "all records were sent and applied", [])

    async def _until_all_are_at_rest(self) -> None:
        since = time.monotonic()  # earlier reports can be outdated

        def at_rest(member: MemberProcess) -> bool:
            return member.reported_at > since and member.progress.held == 0

        await self._until(
            lambda: all(map(at_rest, self.members.values())), QUIET_SECONDS, "the members did not finish their work"
        )

    async def _leave(self) -> None:
        for member in self.members.values():
            member.order(messages.LeaveGroup())
            try:
                await asyncio.wait_for(member.ended.wait(), LEAVE_SECONDS)
            except TimeoutError:
                raise DemoFailed(f"{member.name} did not leave within {LEAVE_SECONDS:.0f} seconds{AGAIN}") from None
