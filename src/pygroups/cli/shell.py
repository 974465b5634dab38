"""The member behind `pygroups join`: it reads lines from standard input and prints events on standard output."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pygroups.cli.printed import Chat, json_line, line_of, trouble
from pygroups.cli.refusals import FAILED, one_line
from pygroups.cli.streams import lines_of, write_all
from pygroups.core.errors import ChannelClosed, Excluded, JournalFailed, NotSent, Unknown

if TYPE_CHECKING:
    from pygroups import Address, Channel, Event
    from pygroups.cli.join_options import JoinOptions

LAST_WORDS_SECONDS = 5.0
"""The longest time for printing the remaining events after the leave, if the output is not read."""

STARTS_TRIES = 20
"""So often a process that does not answer yet is tried again, without a group..."""

STARTS_PAUSE = 0.5
"""...after this pause, in seconds."""


class Shell:
    """One member between standard input and standard output.

    On a terminal events are printed as sentences, and Ctrl-D leaves the group.
    """

    def __init__(self, channel: Channel, options: JoinOptions) -> None:
        self.channel = channel
        self.options = options
        self.failed = False
        self.left_out = False  # the other members removed this member, or it leaves because its journal is lost
        self.last = 0  # the number of the last message
        self.alone = channel.group is None
        self.joined = False
        self.stop = asyncio.Event()
        self.printing = asyncio.Lock()
        self.typed = _is_terminal(sys.stdin) and _in_foreground()
        self.for_people = _is_terminal(sys.stdout) and not options.json
        self.leaves_without_journal = options.on_journal_lost == "leave"

    async def run(self) -> int:
        """Be a member until a signal or the end of the input.  Returns the exit code."""
        me, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert me is not None
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` ignores SIGHUP
                loop.add_signal_handler(number, self._asked_to_stop, me)
        try:
            async with self.channel:
                self.joined = True
                await self._be_a_member()
        except asyncio.CancelledError:
            if not self.stop.is_set():
                raise
        return FAILED if self.failed else 0

    def _asked_to_stop(self, me: asyncio.Task[Any]) -> None:
        self.stop.set()
        if not self.joined:
            me.cancel()

    async def _be_a_member(self) -> None:
        """Be a member until the member has left, the input ends (with --leave-at-eof), or a signal arrives."""
        printing = asyncio.create_task(self._print_events())
        ends = {printing, asyncio.create_task(self._feed()), asyncio.create_task(self._stopped())}
        if self.options.stats is not None:
            ends.add(asyncio.create_task(self._print_stats(self.options.stats)))
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            await self.channel.leave()
            await asyncio.wait({printing}, timeout=LAST_WORDS_SECONDS)
            for task in [task for task in (printing, *done) if task.done()]:
                with contextlib.suppress(*(ChannelClosed, NotSent) if self.left_out else ()):  # already printed
                    task.result()
        finally:
            for task in ends:
                task.cancel()

    async def _stopped(self) -> None:
        await self.stop.wait()

    # -- input

    async def _feed(self) -> None:
        """Send all lines of the input.  Returns when the member must leave: at Ctrl-D, or with --leave-at-eof."""
        if self.alone and self.options.to is None:
            await self.stop.wait()  # a process that only receives
        elif self.typed or not (sys.stdin is None or sys.stdin.isatty()):
            async for lines in lines_of(sys.stdin.fileno(), self.channel.stats()["payload_max"]):
                await self._send(lines)
        if self.options.leave_at_eof and self.last:
            try:
                await self.channel.wait(self.last, timeout=self.options.timeout)
            except Unknown as error:
                self._failed(str(error))
        if not (self.options.leave_at_eof or self.typed):
            await self.stop.wait()

    async def _send(self, lines: list[bytes]) -> None:
        if self.options.to is None:
            await self._send_to_all(lines)
            return
        for line in lines:
            try:
                self.last = await self._send_to(self.options.to, line)
            except NotSent as error:
                if not self.typed:
                    raise
                print(one_line(f"pygroups: {error}"), file=sys.stderr)  # the user decides on the next action

    async def _send_to_all(self, lines: list[bytes]) -> None:
        """Send the lines to all members.  The lines that an excluded member did not send are sent when it has joined
        again."""
        while True:
            try:
                numbers = await self.channel.send_many(lines)
            except NotSent as error:
                if not self.options.rejoin:
                    raise
                lines = lines[error.accepted :]
            else:
                self.last = numbers[-1]
                return

    async def _send_to(self, to: str, line: bytes) -> int:
        """Send a line to the member with this name; without a group to the process at this place, which may start a
        little later than this one."""
        if not self.alone:
            return await self.channel.send(line, to=self._member_named(to))
        for _ in range(STARTS_TRIES):
            with contextlib.suppress(NotSent):
                return await self.channel.send(line, to=to)
            await asyncio.sleep(STARTS_PAUSE)
        return await self.channel.send(line, to=to)

    def _member_named(self, name: str) -> Address:
        for member in self.channel.view.members:
            if member.name == name:
                return member
        raise NotSent(f"the line was not sent: the group has no member {name!r}")

    # -- output

    async def _print_events(self) -> None:
        """Print the events.  Returns after the last event."""
        with contextlib.suppress(Excluded, JournalFailed):  # the last event was printed instead
            await self._print_all()

    async def _print_all(self) -> None:
        from pygroups import Left

        show = self._how_to_show()
        if self.alone and self.for_people and not self.options.quiet:
            goal = f"each line you type goes to {self.options.to}" if self.options.to else "this process only receives"
            await self._print(f"-- this process listens at {self.channel.contact}; {goal}\n".encode())
        async for events in self.channel.batches():
            for event in events:
                if sentence := self._trouble(event):
                    self.left_out = isinstance(event, Left) or self.leaves_without_journal
                    self._failed(sentence)
            if not self.options.quiet:
                await self._print(b"".join([show(event) for event in events]))

    def _trouble(self, event: Event) -> str | None:
        return trouble(event, leaves=self.leaves_without_journal, rejoins=self.options.rejoin)

    def _how_to_show(self) -> Callable[[Event], bytes]:
        if not self.for_people:
            return line_of
        return Chat(
            lambda: self.channel.address, self.channel.group or "-", echoed=self.typed, rejoins=self.options.rejoin
        ).line_of

    def _failed(self, sentence: str) -> None:
        """Print an error on standard error, and make the exit code 1."""
        self.failed = True
        with contextlib.suppress(OSError):  # the terminal may be closed
            print(one_line(f"pygroups: {sentence}"), file=sys.stderr)

    async def _print_stats(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            await self._print(json_line({"event": "stats", "stats": self.channel.stats()}))

    async def _print(self, data: bytes) -> None:
        if sys.stdout is None or not data:
            return
        try:
            async with self.printing:  # the pipe may take a part of a long line, and another task prints too
                await write_all(sys.stdout.fileno(), data)
        except OSError as error:
            if error.errno != errno.EIO:  # the terminal was closed, and SIGHUP ends the member
                raise


def _is_terminal(stream: Any) -> bool:
    return stream is not None and stream.isatty()


def _in_foreground() -> bool:
    """Whether this process may read from its terminal.  The system stops a background process that tries."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # the terminal does not control this session, so it stops no process
        return True
