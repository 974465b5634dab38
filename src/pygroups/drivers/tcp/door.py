"""The connections that peers make to a member, with limits on their number, duration and memory.

A hello is no proof of identity, so peers outside the view may use few resources.  Their connections are limited in
number, a connection without data is closed after a while, and above the limit the connection that was silent longest is
closed. Note: docs/drivers.md.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from collections.abc import Callable, Collection
from functools import partial
from typing import ClassVar, Final

from pygroups.core.address import Address
from pygroups.core.driver_events import Ended, Lost
from pygroups.core.errors import PeerError
from pygroups.core.events import Event
from pygroups.core.limits import SECOND, Config
from pygroups.core.tables import Tables

from ..handshake import Handshake
from ..hello import Answering, DiscoveryQuestion, DiscoveryReply, Hello, Welcome, packed, welcome, with_length
from ..rate_limited import RateLimitedLog
from ..sockets import prepared
from .incoming import Incoming

READ_BYTES: Final = 512 << 10  # read at once
BACKLOG: Final = 128
ACCEPTED_AT_ONCE: Final = 32  # in one pass of the loop
ACCEPT_PAUSE: Final = 0.1  # seconds, after the system had no room for a connection
SHARE_OF_DESCRIPTORS: Final = 8  # strangers may use one eighth of the process's file descriptors, guests two eighths
NO_ROOM: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
LOGGER: Final = logging.getLogger("pygroups.drivers.tcp")


class Door:
    """The connections that peers made to one member.

    `receive` is called with each frame, `happened` with Ended when the last connection of a peer has ended, and
    `greeted` with each accepted hello.  A *stranger* is a connection whose peer has not sent its hello yet, a *guest*
    the connection of a peer outside the view.
    """

    tables: ClassVar[Tables] = {
        "area": READ_BYTES,
        "incoming": "connections",
        "incoming[]": "fixed",
        "incoming[][].beginning": "frame",
        "incoming[][].large": "frame",
        "members": "members",
        "strangers": "strangers",
        "timers": "fixed",
    }

    def __init__(self, me: Address, group: str, config: Config, warn: RateLimitedLog) -> None:
        self.me = me
        self.group = group
        self.config = config
        self.warn = warn
        self.handshake: Handshake
        self.unopened: Callable[[bytes | memoryview, str], bytes]  # the refusal of a message
        self.receive: Callable[[memoryview], bool]
        self.happened: Callable[[Event], None]
        self.greeted: Callable[[Hello], None]
        self.count: Callable[..., None]
        self.crashed: Callable[[BaseException], None]
        self.asked: Callable[[DiscoveryQuestion, Answering], None] | None = None  # the questions of discovery
        self.loop: asyncio.AbstractEventLoop
        self.area = memoryview(bytearray(READ_BYTES))
        self.kept_bytes = 0  # of incomplete frames, of all connections
        self.strangers: dict[Incoming, None] = {}
        self.incoming: dict[Address, list[Incoming]] = {}  # of each peer: the newest, after the one that it replaces
        self.members: Collection[Address] = ()  # of the view
        self.sock: socket.socket | None = None
        self.timers: dict[str, asyncio.TimerHandle] = {}
        self.strangers_max = _at_most(config.strangers, 1)
        self.guests_max = _at_most(config.guests, 2)

    def open(self, sock: socket.socket) -> None:
        """Accept the connections of peers to `sock`."""
        self.loop = asyncio.get_running_loop()
        sock.setblocking(False)
        sock.listen(BACKLOG)
        self.sock = sock
        self.loop.add_reader(sock, self._accept)
        self._look_again()

    def close(self) -> None:
        """Close all connections.  Peers see the same as at the end of the process."""
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
        """Whether a connection from `peer` is open: a sign of life, but no proof."""
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
        except Exception as error:  # noqa: BLE001 (the driver's outermost loop: any error here is a bug in pygroups)
            self.crashed(error)

    def _cannot_accept(self, error: OSError) -> None:
        """Pause for a moment.  New connections wait in the kernel's queue."""
        assert self.sock is not None
        why = error.strerror or str(error)
        self.count("connections that could not be accepted")
        self.warn.warning("accept", "this member cannot accept a connection: %s", why)
        if error.errno in NO_ROOM:
            self._close_a_guest("to make room")
        self.loop.remove_reader(self.sock)
        self.timers["accept"] = self.loop.call_later(ACCEPT_PAUSE, self._accept_again)

    def _accept_again(self) -> None:
        if self.sock is not None:
            self.loop.add_reader(self.sock, self._accept)
            self._accept()

    def _arrived(self, sock: socket.socket, remote: tuple[object, ...]) -> None:
        where = f"{remote[0]}:{remote[1]}" if len(remote) > 1 else "an unnamed socket"
        if len(self.strangers) >= self.strangers_max:
            self._refuse(sock, where, "too many strangers")
            return
        try:
            sock.setblocking(False)
            prepared(sock, self.config)
        except OSError:  # the connection has ended already
            sock.close()
            return
        connection = Incoming(self, sock, where)
        self.strangers[connection] = None
        connection.close_in(self.config.stranger_timeout / SECOND)

    def _refuse(self, sock: socket.socket, where: str, why: str) -> None:
        sock.close()
        self.count(f"connections refused: {why}")
        self.warn.warning(why, "a connection from %s is refused: %s", where, why)

    # -- the handshake and the end of connections

    def greet(self, connection: Incoming, hello: Hello, about: bytes) -> bytes:
        """The answer to `hello`, which `about` names.  The connection belongs to `hello.sender` from now on, or it is
        closed on purpose."""
        answer = welcome(hello, self.me, self.group)
        if answer.refusal:
            connection.on_purpose = True
            self.count("connections refused")
            self.warn.warning(
                "refused",  # not the text of the refusal, because the peer chooses a part of it
                "a connection from %s (%s) is refused: %s",
                hello.sender,
                connection.remote,
                answer.refusal,
            )
            return self._welcomed(answer, about)
        connection.call_off()
        del self.strangers[connection]
        connection.peer = hello.sender
        self._replace(self.incoming.setdefault(hello.sender, []), connection)
        if hello.sender not in self.members and len(self._guests()) > self.guests_max:
            self._close_a_guest("too many peers outside the view")
        self.greeted(hello)
        return self._welcomed(answer, about)

    def _welcomed(self, answer: Welcome, about: bytes) -> bytes:
        return with_length(self.handshake.closed(packed(answer), about))

    def not_opened(self, connection: Incoming, body: memoryview) -> None:
        """The first message cannot be opened: refuse it, and close the connection."""
        refusal = self.unopened(body, connection.remote.rpartition(":")[0])
        if refusal:
            self._send_last(connection, with_length(refusal))
        else:
            self.ended(connection, on_purpose=False)

    def questioned(self, connection: Incoming, question: DiscoveryQuestion) -> None:
        """A stranger asks which process listens here.  A process that members find in a folder does not answer."""
        if self.asked is None:
            self.count("unanswered questions of discovery")
            self.ended(connection, on_purpose=False)
        else:
            self.asked(question, partial(self._answer, connection))

    def _answer(self, connection: Incoming, reply: DiscoveryReply) -> None:
        if not connection.closed:
            self._send_last(connection, with_length(self.handshake.closed(packed(reply))))

    def _send_last(self, connection: Incoming, answer: bytes) -> None:
        connection.on_purpose = True
        try:
            connection.answer(answer)
        except (OSError, PeerError):
            self.count("answers of discovery that could not be sent")
        self.ended(connection, on_purpose=True)

    def _replace(self, connections: list[Incoming], newer: Incoming) -> None:
        """Make `newer` the connection of its peer.  The older one may still deliver data for a moment."""
        if len(connections) > 1:
            connections.pop(0).close()
        for older in connections:
            older.close_in(self.config.connect_timeout / SECOND)
        connections.append(newer)

    def ended(self, connection: Incoming, *, on_purpose: bool) -> None:
        """The connection has ended.  `on_purpose`: the end is no sign that the peer's process has ended."""
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
            connections[-1].call_off()  # the older one is the peer's only connection again
        else:
            del self.incoming[peer]
            if not on_purpose:
                self.happened(Lost(peer))
                self.happened(Ended(peer))

    def _stranger_ended(self, connection: Incoming, on_purpose: bool) -> None:
        del self.strangers[connection]
        connection.close()
        if on_purpose and not connection.on_purpose:
            self.count("connections without a hello")
            self.warn.warning("silence", "a connection from %s is closed: the peer sent no hello", connection.remote)

    def broke(self, connection: Incoming, error: PeerError) -> None:
        """The peer has sent invalid data: close the connection."""
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
        """Close the guest that was silent longest."""
        guest = min(self._guests(), key=lambda connection: connection.heard_at, default=None)
        if guest is not None:
            self._close_guest(guest, why)

    def _close_guest(self, guest: Incoming, why: str) -> None:
        self.count(f"connections closed: {why}")
        self.warn.warning(why, "the connection of %s (%s) is closed: %s", guest.peer, guest.remote, why)
        self.ended(guest, on_purpose=True)

    def kept(self, connection: Incoming, more: int) -> None:
        """Count `more` bytes that the connection keeps in memory; a negative number frees bytes.

        Above the limit, the guest that keeps most is closed, or this connection if no guest keeps any bytes.
        """
        self.kept_bytes += more
        while self.kept_bytes > self.config.receive_bytes and not connection.closed:
            keeping = [guest for guest in self._guests() if guest.kept_bytes]
            most = max(keeping, key=lambda guest: guest.kept_bytes, default=connection)
            if most is connection:
                self.kept_bytes -= more  # the memory is not allocated yet
            self.count("connections closed: unfinished frames")
            self.warn.warning("kept", "the connection of %s is closed: its incomplete frame is too large", most.peer)
            self.ended(most, on_purpose=False)

    def _look_again(self) -> None:
        """Close the guests that have sent no data for too long."""
        now, patience = self.loop.time(), self.config.guest_timeout / SECOND
        for guest in self._guests():
            if now - guest.heard_at > patience and not guest.closed:
                self._close_guest(guest, "silent, and outside the view")
        self.timers["look"] = self.loop.call_later(patience / 4, self._look_again)


def _at_most(wanted: int, shares: int) -> int:
    """The smaller of `wanted` and `shares` eighths of the file descriptors of this process, and at least 1."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptors == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, shares * descriptors // SHARE_OF_DESCRIPTORS))
