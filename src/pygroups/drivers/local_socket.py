"""The unix socket of a member, for commands on this machine; local_commands.py has the commands and the paths.

Only a member whose layers accept commands of an operator opens a socket.  The socket has its mode, 0600, before it has
its name, and only the user has access to the folders above it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Event, Vouched, VouchedFor
from pygroups.core.tables import Tables

from .discovery.entries import own_folder
from .forks import closed_in_children, watched
from .local_commands import COMMAND_MAX, PATIENCE, CommandAnswer, LocalCommand, command_in, folder_of

LOGGER: Final = logging.getLogger("pygroups.drivers.local_socket")
COMMANDS_MAX: Final = 8  # connections at the same time; further ones are closed


class LocalSocket:
    """Answers commands to one member.  `ask` sends an event down its stack, `members` gives the members of its view.

    An answer of the stack comes with `answered`.
    """

    tables: ClassVar[Tables] = {"connections": COMMANDS_MAX, "waiting": COMMANDS_MAX}

    def __init__(
        self, group: str, me: Address, ask: Callable[[Event], None], members: Callable[[], Sequence[Address]]
    ) -> None:
        self.path = folder_of(group) / me.incarnation
        self.me = me
        self.ask = ask
        self.members = members
        self.server: asyncio.Server | None = None
        self.connections: set[asyncio.StreamWriter] = set()
        self.waiting: dict[asyncio.Future[VouchedFor], Address] = {}  # commands without an answer, with their members
        watched(self)

    async def open(self) -> None:
        """Listen.  A member whose socket cannot be opened goes on without one, and logs a warning."""
        try:
            sock = _listening(self.path)
        except OSError as error:
            LOGGER.warning("%s cannot listen for commands at %s: %s", self.me, self.path, error.strerror or error)
            return
        self.server = await asyncio.start_unix_server(self._serve, sock=sock, limit=COMMAND_MAX)

    def close(self) -> None:
        """Stop listening, drop the commands that wait for an answer, and remove the socket."""
        if self.server is None:
            return
        self.server.close()
        self.server = None
        for future in self.waiting:
            if not future.done():
                future.set_exception(ConnectionAbortedError())
        for connection in self.connections:
            connection.transport.abort()
        with contextlib.suppress(OSError):
            self.path.unlink()

    def forked(self) -> None:
        """In a forked child the socket belongs to the parent."""
        self.server = None

    def answered(self, event: VouchedFor) -> None:
        """The answer of the stack to an operator's confirmation."""
        for future, member in self.waiting.items():
            if member == event.member and not future.done():
                future.set_result(event)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self.connections) < COMMANDS_MAX:
                self.connections.add(writer)
                async with asyncio.timeout(PATIENCE):
                    command = command_in(await reader.readline())
                    if command is not None:
                        writer.write(msgspec.json.encode(await self._answer(command)) + b"\n")
                        await writer.drain()
        except (OSError, ValueError):  # the command has ended, is late, or is too long
            LOGGER.debug("a command to %s was not answered", self.me, exc_info=True)
        finally:
            self.connections.discard(writer)
            writer.close()

    async def _answer(self, command: LocalCommand) -> CommandAnswer:
        future: asyncio.Future[VouchedFor] = asyncio.get_running_loop().create_future()
        self.waiting[future] = command.member
        LOGGER.info("an operator confirmed to %s that %s has ended for good", self.me, command.member)
        try:
            self.ask(Vouched(command.member))
            event = await future
        finally:
            del self.waiting[future]
        return CommandAnswer(self.me, list(self.members()), event.answer)


def _listening(path: Path) -> socket.socket:
    """A socket that listens at `path`.  The socket gets its name last, so a refused connection proves that the process
    ended."""
    for folder in (path.parent.parent, path.parent):
        own_folder(folder)
    nameless = path.with_name(f".{path.name}")
    nameless.unlink(missing_ok=True)
    sock = closed_in_children(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    try:
        os.fchmod(sock.fileno(), 0o600)
        sock.bind(str(nameless))
        sock.listen(COMMANDS_MAX)
        nameless.rename(path)
    except OSError:
        sock.close()
        raise
    return sock
