"""`pygroups join`: a member in the shell.  Lines of standard input go to everyone, events come as JSON, one a line."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from cyclopts import Parameter

from pygroups.cli.options import Flag, Whole
from pygroups.cli.refusals import FAILED, one_line
from pygroups.cli.streams import lines_of, write_all
from pygroups.core.errors import ChannelClosed, NotBuilt, NotSent, Unknown, UsageError

if TYPE_CHECKING:
    from pygroups import Address, Channel, Happening

LAST_WORDS_SECONDS = 5.0
"""How long the events that were not printed yet may take when the member has left, if nobody reads them."""


@Parameter(name="*")
@dataclass(frozen=True)
class Wishes:
    """What the shell's member is to be and to do.

    Parameters
    ----------
    name
        The member's name, unique in the group; made from host and process if not given.
    profile
        What is promised: total (one order for all) or fifo (each sender's order).
    bind
        Where to listen, HOST:PORT. Anything but loopback needs --insecure.
    advertise
        What others are told to dial, if it differs from where it listens.
    transport
        tcp.
    discovery
        dir:/path, a folder where members find each other in place of the usual one.
    expect
        Not built yet.
    rejoin
        Not built yet.
    insecure
        Listen where other machines reach it, though nothing protects the group there yet.
    secret_file
        Not built yet.
    journal
        A folder to write down what this member sees; `pygroups audit` reads it.
    journal_payloads
        Write the messages into the journal too.
    to
        Send the lines to the member of this name alone.
    quiet
        Print no events; --stats still prints.
    stats
        Print what the member holds and has counted every so many seconds.
    trace
        Not built yet.
    leave_at_eof
        Leave at the end of input, once all members have its messages.
    timeout
        Seconds that --leave-at-eof waits for that at most; then it leaves with exit code 1.
    """

    name: str | None = None
    profile: str = "total"
    bind: str = "127.0.0.1:0"
    advertise: str | None = None
    transport: str | None = None
    discovery: str | None = None
    expect: Whole | None = None
    rejoin: Flag = False
    insecure: Flag = False
    secret_file: Path | None = None
    journal: Path | None = None
    journal_payloads: Flag = False
    to: str | None = None
    quiet: Flag = False
    stats: float | None = None
    trace: Flag = False
    leave_at_eof: Flag = False
    timeout: float | None = None


AS_USUAL = Wishes()


def join(group: str = "default", /, *, wishes: Wishes = AS_USUAL) -> int:
    """Be a member in the shell: lines go to everyone, events come as JSON.

    Each line of standard input is one message, without its line end. At the end of input it stays and goes on printing.
    SIGTERM and SIGINT (Ctrl-C) leave cleanly. Exit code 1: it was excluded, or could not do what was asked; 2: the call
    was wrong, or the group refused it.

    Parameters
    ----------
    group
        The group's name; members that name the same one on this machine find each other.
    """
    _check(wishes)
    from pygroups import Channel

    channel = Channel(
        group,
        profile=wishes.profile,
        name=wishes.name,
        bind=wishes.bind,
        advertise=wishes.advertise,
        transport=wishes.transport,
        discovery=wishes.discovery,
        insecure=wishes.insecure,
        journal=wishes.journal,
        journal_payloads=wishes.journal_payloads,
    )
    return asyncio.run(Shell(channel, wishes).run())


def _check(wishes: Wishes) -> None:
    """UsageError for what cannot be, NotBuilt for what is not there yet."""
    for name in ("expect", "rejoin", "secret_file", "trace"):
        if getattr(wishes, name) not in (None, False):
            raise NotBuilt(f"--{name.replace('_', '-')} is not built yet: leave it out")
    if wishes.stats is not None and not wishes.stats > 0:
        raise UsageError(f"--stats {wishes.stats} must be a number of seconds above 0")
    if wishes.timeout is not None and not wishes.timeout >= 0:
        raise UsageError(f"--timeout {wishes.timeout} must be a number of seconds, 0 or more")
    if wishes.timeout is not None and not wishes.leave_at_eof:
        raise UsageError("--timeout says how long --leave-at-eof waits: give both or neither")


class Shell:
    """One member between standard input and standard output."""

    def __init__(self, channel: Channel, wish: Wishes) -> None:
        self.channel = channel
        self.wish = wish
        self.failed = False
        self.left_out = False  # the group goes on without this member
        self.last = 0  # the number of the last message to everyone
        self.joined = False
        self.stop = asyncio.Event()

    async def run(self) -> int:
        """Be a member until asked to stop; the exit code."""
        me, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert me is not None
        for number in (signal.SIGTERM, signal.SIGINT):
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
        """Until the first of: it has left, its input is over and that is the end, it was asked to stop."""
        printing = asyncio.create_task(self._print_events())
        ends = {printing, asyncio.create_task(self._feed()), asyncio.create_task(self._stopped())}
        if self.wish.stats is not None:
            ends.add(asyncio.create_task(self._print_stats(self.wish.stats)))
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            await self.channel.leave()
            await asyncio.wait({printing}, timeout=LAST_WORDS_SECONDS)
            for task in [task for task in (printing, *done) if task.done()]:
                with contextlib.suppress(*(ChannelClosed, NotSent) if self.left_out else ()):  # told
                    task.result()
        finally:
            for task in ends:
                task.cancel()

    async def _stopped(self) -> None:
        await self.stop.wait()

    # -- input

    async def _feed(self) -> None:
        """Send line after line.  Returns when the member is to leave."""
        if sys.stdin is not None:
            async for lines in lines_of(sys.stdin.fileno(), self.channel.stats()["payload_max"]):
                await self._send(lines)
        if not self.wish.leave_at_eof:
            await self.stop.wait()
        elif self.last:
            try:
                await self.channel.wait(self.last, until="stable", timeout=self.wish.timeout)
            except Unknown as error:
                self.failed = True
                print(f"pygroups: {error}", file=sys.stderr)

    async def _send(self, lines: list[bytes]) -> None:
        if self.wish.to is None:
            numbers = await self.channel.send_many(lines)
            self.last = numbers[-1]
            return
        for line in lines:
            await self.channel.send(line, to=self._member_named(self.wish.to))

    def _member_named(self, name: str) -> Address:
        for member in self.channel.view.members:
            if member.name == name:
                return member
        raise NotSent(f"there is no member {name!r} in the group: the line was not sent")

    # -- output

    async def _print_events(self) -> None:
        """Print what happens.  Returns after the last event."""
        from pygroups import Excluded

        with contextlib.suppress(Excluded):  # it was printed as the last event
            await self._print_all()

    async def _print_all(self) -> None:
        from pygroups import Left

        async for events in self.channel.batches():
            lines = [line_of(event) for event in events]
            for event in events:
                if trouble := _trouble(event):
                    self.failed = True
                    self.left_out = isinstance(event, Left)
                    print(one_line(f"pygroups: {trouble}"), file=sys.stderr)
            if not self.wish.quiet:
                await self._print(b"".join(lines))

    async def _print_stats(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            await self._print(_json({"event": "stats", "stats": self.channel.stats()}))

    async def _print(self, data: bytes) -> None:
        if sys.stdout is not None:
            await write_all(sys.stdout.fileno(), data)


def _trouble(event: Happening) -> str | None:
    """A sentence for people about what must not go by unseen, and makes the exit code 1."""
    from pygroups import JournalLost, Left

    if isinstance(event, JournalLost):
        return f"{event.reason}; this member goes on without a journal"
    if not isinstance(event, Left) or event.reason == "left":
        return None
    unknown = f"; what became of {len(event.unknown)} of its messages is unknown" if event.unknown else ""
    return (
        f"the group goes on without this member ({event.reason}), which was silent for too long or cut off{unknown}: "
        "join again, as a new member"
    )


def line_of(event: Happening) -> bytes:
    """An event as one line of JSON."""
    import pygroups

    match event:
        case pygroups.Message():
            return _json(
                {
                    "event": "message",
                    "from": event.sender.name,
                    "number": event.number,
                    "view": event.view and [event.view.number, str(event.view.leader)],
                    "position": event.position,
                    **_content(event.payload),
                }
            )
        case pygroups.View():
            return _json(
                {
                    "event": "view",
                    "id": [event.id.number, str(event.id.leader)],
                    "members": [member.name for member in event.members],
                    "addresses": [str(member) for member in event.members],
                    "coordinator": event.coordinator.name,
                    "primary": event.primary,
                    "joined": [member.name for member in event.joined],
                    "left": [member.name for member in event.left],
                    "transitional": [member.name for member in event.transitional],
                }
            )
        case pygroups.Suspected():
            return _json({"event": "suspected", "member": event.member.name})
        case pygroups.Undelivered():
            return _json({"event": "undelivered", "to": event.to.name, "numbers": list(event.numbers)})
        case pygroups.JournalLost():
            return _json({"event": "journal", "reason": event.reason})
        case pygroups.Left():
            return _json({"event": "left", "reason": event.reason, "unknown": event.unknown})
        case _:
            raise AssertionError(f"no line for {event!r}")


def _content(payload: bytes) -> dict[str, str]:
    with contextlib.suppress(UnicodeDecodeError):
        return {"text": payload.decode()}
    return {"base64": base64.b64encode(payload).decode()}


def _json(content: dict[str, Any]) -> bytes:
    return msgspec.json.encode(content) + b"\n"
