"""The unix socket of a member, for commands on this machine; local_calls.py has the calls and the paths.

Only a member whose layers take an operator's word opens one.  It has its mode, 0600, before it has its name, and the
folders above it belong to the user alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Event, Vouched, VouchedFor

from .entries import own_folder
from .forks import closed_in_children, watched
from .local_calls import CALL_MAX, PATIENCE, Answer, Call, folder_of

LOGGER: Final = logging.getLogger("pygroups.drivers.local_socket")
CALLS_MAX: Final = 8  # calls at the same time; further ones are closed


class LocalSocket:
    """Answers calls for one member.  `ask` sends an event down its stack, `members` gives the members of its view.

    An answer of the stack comes with `answered`.
    """

    def __init__(
        self, group: str, me: Address, ask: Callable[[Event], None], members: Callable[[], Sequence[Address]]
    ) -> None:
        self.path = folder_of(group) / me.incarnation
        self.me = me
        self.ask = ask
        self.members = members
        self.server: asyncio.Server | None = None
        self.calls: set[asyncio.StreamWriter] = set()
        self.waiting: dict[asyncio.Future[VouchedFor], Address] = {}  # for answers, with the member of each call
        watched(self)

    async def open(self) -> None:
        """Listen.  A member whose socket cannot be opened goes on without one, and logs a warning."""
        try:
            sock = _listening(self.path)
        except OSError as error:
            LOGGER.warning("no command can reach %s at %s: %s", self.me, self.path, error.strerror or error)
            return
        self.server = await asyncio.start_unix_server(self._serve, sock=sock, limit=CALL_MAX)

    def close(self) -> None:
        """Listen no more, drop the calls that wait, and remove the socket."""
        if self.server is None:
            return
        self.server.close()
        self.server = None
        for future in self.waiting:
            if not future.done():
                future.set_exception(ConnectionAbortedError())
        for call in self.calls:
            call.transport.abort()
        with contextlib.suppress(OSError):
            self.path.unlink()

    def forked(self) -> None:
        """In a forked child the socket belongs to the parent."""
        self.server = None

    def answered(self, event: VouchedFor) -> None:
        """The stack's answer to an operator's word."""
        for future, member in self.waiting.items():
            if member == event.member and not future.done():
                future.set_result(event)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self.calls) < CALLS_MAX:
                self.calls.add(writer)
                async with asyncio.timeout(PATIENCE):
                    call = msgspec.json.decode(await reader.readline(), type=Call)
                    writer.write(msgspec.json.encode(await self._answer(call)) + b"\n")
                    await writer.drain()
        except (OSError, ValueError, msgspec.DecodeError):  # the caller went away, is late, or is no command
            LOGGER.debug("a call to %s was not answered", self.me, exc_info=True)
        finally:
            self.calls.discard(writer)
            writer.close()

    async def _answer(self, call: Call) -> Answer:
        future: asyncio.Future[VouchedFor] = asyncio.get_running_loop().create_future()
        self.waiting[future] = call.member
        LOGGER.info("an operator says to %s that %s has ended for good", self.me, call.member)
        try:
            self.ask(Vouched(call.member))
            event = await future
        finally:
            del self.waiting[future]
        return Answer(self.me, list(self.members()), event.answer)


def _listening(path: Path) -> socket.socket:
    """A socket that listens at `path`.  It gets its name last, so a refused connection says that its process ended."""
    for folder in (path.parent.parent, path.parent):
        own_folder(folder)
    nameless = path.with_name(f".{path.name}")
    nameless.unlink(missing_ok=True)
    sock = closed_in_children(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    try:
        os.fchmod(sock.fileno(), 0o600)
        sock.bind(str(nameless))
        sock.listen(CALLS_MAX)
        nameless.rename(path)
    except OSError:
        sock.close()
        raise
    return sock
