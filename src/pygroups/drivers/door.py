"""Where peers come in: who may connect, how many, for how long, and what all of them together may keep in memory.

A hello proves nothing, so whoever is outside the view may use little: few connections, one that brings nothing for a
while is closed, and when there are too many the one that was silent longest goes.  Note: docs/decisions/0044.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from collections.abc import Callable, Collection
from typing import Final

from pygroups.core.address import Address
from pygroups.core.errors import PeerError
from pygroups.core.events import Ended, Event
from pygroups.core.limits import SECOND, Config

from .hello import Hello, said, welcome
from .incoming import Incoming
from .seldom import Seldom
from .sockets import prepared

READ_BYTES: Final = 256 << 10  # read at once
BACKLOG: Final = 128
ACCEPTED_AT_ONCE: Final = 32  # in one pass of the loop
ACCEPT_PAUSE: Final = 0.1  # seconds, after the system had no room for a connection
SHARE_OF_DESCRIPTORS: Final = 8  # strangers get one of so many of the process's descriptors, guests two
NO_ROOM: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
LOGGER: Final = logging.getLogger("pygroups.drivers.tcp")


class Door:
    """The connections that peers made to one member.

    `receive` is called with each frame, `happened` with Ended when the last connection of a peer is over, `greeted`
    with each hello that was welcome.
    """

    def __init__(self, me: Address, group: str, config: Config, warn: Seldom) -> None:
        self.me = me
        self.group = group
        self.config = config
        self.warn = warn
        self.receive: Callable[[memoryview], None]
        self.happened: Callable[[Event], None]
        self.greeted: Callable[[Hello], None]
        self.count: Callable[..., None]
        self.crashed: Callable[[BaseException], None]
        self.loop: asyncio.AbstractEventLoop
        self.area = memoryview(bytearray(READ_BYTES))
        self.kept_bytes = 0  # of frames that have not come whole, of all connections
        self.strangers: dict[Incoming, None] = {}  # they have not said who they are
        self.incoming: dict[Address, list[Incoming]] = {}  # of each peer: the newest, behind the one it replaces
        self.members: Collection[Address] = ()  # of the view
        self.sock: socket.socket | None = None
        self.timers: dict[str, asyncio.TimerHandle] = {}
        self.strangers_max = _at_most(config.strangers, 1)
        self.guests_max = _at_most(config.guests, 2)

    def open(self, sock: socket.socket) -> None:
        """Let peers in that connect to `sock`."""
        self.loop = asyncio.get_running_loop()
        sock.setblocking(False)
        sock.listen(BACKLOG)
        self.sock = sock
        self.loop.add_reader(sock, self._accept)
        self._look_again()

    def close(self) -> None:
        """Close everything; peers see it as they would see the end of the process."""
        sock, self.sock = self.sock, None
        for timer in self.timers.values():
            timer.cancel()
        if sock is not None:
            self.loop.remove_reader(sock)
            sock.close()
        for connection in [*self.strangers, *self._known()]:
            connection.close()
        self.strangers, self.incoming = {}, {}

    def _known(self) -> list[Incoming]:
        return [connection for connections in self.incoming.values() for connection in connections]

    def hears(self, peer: Address) -> bool:
        """Whether a connection that came from `peer` is open: a sign of life, though no proof of it."""
        return peer in self.incoming

    # -- accepting

    def _accept(self) -> None:
        try:
            for _ in range(ACCEPTED_AT_ONCE):
                if self.sock is None:
                    return
                self._arrived(*self.sock.accept())
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            self._cannot_accept(error)
        except Exception as error:  # noqa: BLE001 (the driver's outermost loop: what ends up here is a fault of ours)
            self.crashed(error)

    def _cannot_accept(self, error: OSError) -> None:
        """Wait a little; who knocks meanwhile stands in the kernel's line."""
        assert self.sock is not None
        why = error.strerror or str(error)
        self.count("connections that could not be accepted")
        self.warn.warning("accept", "no connection can be accepted: %s", why)
        if error.errno in NO_ROOM:
            self._close_a_guest("to make room")
        self.loop.remove_reader(self.sock)
        self.timers["accept"] = self.loop.call_later(ACCEPT_PAUSE, self._accept_again)

    def _accept_again(self) -> None:
        if self.sock is not None:
            self.loop.add_reader(self.sock, self._accept)
            self._accept()

    def _arrived(self, sock: socket.socket, remote: tuple[object, ...]) -> None:
        where = f"{remote[0]}:{remote[1]}" if len(remote) > 1 else "nowhere"
        if len(self.strangers) >= self.strangers_max:
            self._refuse(sock, where, "too many strangers")
            return
        try:
            sock.setblocking(False)
            prepared(sock, self.config)
        except OSError:  # it has ended already
            sock.close()
            return
        connection = Incoming(self, sock, where)
        self.strangers[connection] = None
        connection.close_in(self.config.stranger_timeout / SECOND)

    def _refuse(self, sock: socket.socket, where: str, why: str) -> None:
        sock.close()
        self.count(f"connections refused: {why}")
        self.warn.warning(why, "a connection from %s is refused: %s", where, why)

    # -- what connections say

    def greet(self, connection: Incoming, hello: Hello) -> bytes:
        """What to answer.  From now on the connection is `hello.sender`'s, or it ends on purpose."""
        answer = welcome(hello, self.me, self.group)
        if answer.refusal:
            connection.on_purpose = True
            self.count("connections refused")
            self.warn.warning(
                "refused",  # not its text: whoever knocks chooses a part of that
                "a connection from %s (%s) is refused: %s",
                hello.sender,
                connection.remote,
                answer.refusal,
            )
            return said(answer)
        connection.call_off()
        del self.strangers[connection]
        connection.peer = hello.sender
        self._replace(self.incoming.setdefault(hello.sender, []), connection)
        if hello.sender not in self.members and len(self._guests()) > self.guests_max:
            self._close_a_guest("too many peers outside the view")
        self.greeted(hello)
        return said(answer)

    def _replace(self, connections: list[Incoming], newer: Incoming) -> None:
        """A peer has one connection.  The one before may still bring what is on its way, for a moment."""
        if len(connections) > 1:
            connections.pop(0).close()
        for older in connections:
            older.close_in(self.config.connect_timeout / SECOND)
        connections.append(newer)

    def ended(self, connection: Incoming, *, on_purpose: bool) -> None:
        """It is over; `on_purpose`, unless that may be a sign of the peer's end."""
        if connection.closed:
            return
        if connection in self.strangers:
            self._stranger_ended(connection, on_purpose)
            return
        connection.close()
        peer = connection.peer
        assert peer is not None
        connections = self.incoming[peer]
        connections.remove(connection)
        if connections:
            connections[-1].call_off()  # the one before is the peer's only connection again
        else:
            del self.incoming[peer]
            if not on_purpose:
                self.happened(Ended(peer))

    def _stranger_ended(self, connection: Incoming, on_purpose: bool) -> None:
        del self.strangers[connection]
        connection.close()
        if on_purpose and not connection.on_purpose:
            self.count("connections that said nothing")
            self.warn.warning("silence", "a connection from %s is closed: it said nothing", connection.remote)

    def broke(self, connection: Incoming, error: PeerError) -> None:
        """What came is not what a member sends."""
        self.count(f"connections closed: {error.reason}")
        self.warn.warning(
            error.reason, "a connection from %s is closed: %s", connection.peer or connection.remote, error.reason
        )
        self.ended(connection, on_purpose=False)

    # -- bounds

    def _guests(self) -> list[Incoming]:
        """The connections of peers outside the view."""
        return [connection for connection in self._known() if connection.peer not in self.members]

    def _close_a_guest(self, why: str) -> None:
        """The one that was silent longest."""
        guest = min(self._guests(), key=lambda connection: connection.heard_at, default=None)
        if guest is not None:
            self._close_guest(guest, why)

    def _close_guest(self, guest: Incoming, why: str) -> None:
        self.count(f"connections closed: {why}")
        self.warn.warning(why, "the connection of %s (%s) is closed: %s", guest.peer, guest.remote, why)
        self.ended(guest, on_purpose=True)

    def kept(self, connection: Incoming, more: int) -> None:
        """`more` bytes are kept with the connection; less, if it is negative.

        When all keep too much, the guest that keeps most is closed; the connection that asks, if no guest keeps any.
        """
        self.kept_bytes += more
        while self.kept_bytes > self.config.receive_bytes and not connection.closed:
            keeping = [guest for guest in self._guests() if guest.kept_bytes]
            most = max(keeping, key=lambda guest: guest.kept_bytes, default=connection)
            if most is connection:
                self.kept_bytes -= more  # it was not set aside yet
            self.count("connections closed: unfinished frames")
            self.warn.warning("kept", "the connection of %s is closed: its unfinished frame is too much", most.peer)
            self.ended(most, on_purpose=False)

    def _look_again(self) -> None:
        """Close the connections of guests that bring nothing."""
        now, patience = self.loop.time(), self.config.guest_timeout / SECOND
        for guest in self._guests():
            if now - guest.heard_at > patience and not guest.closed:
                self._close_guest(guest, "silent, and outside the view")
        self.timers["look"] = self.loop.call_later(patience / 4, self._look_again)


def _at_most(wanted: int, shares: int) -> int:
    """`wanted`, or as many shares of what this process may open, if that is less."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptors == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, shares * descriptors // SHARE_OF_DESCRIPTORS))
