"""The way out to one peer: dialed on first need, probed on demand, written with as few copies as the kernel allows.

Sockets are written directly, with `sendmsg` over the pieces of a turn: an asyncio transport of Python 3.11 would join
them first, and copy what the kernel does not take at once.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections import deque
from collections.abc import Sequence
from enum import Enum
from itertools import islice
from typing import Final, Protocol

from pygroups.core.address import Address
from pygroups.core.errors import PeerError
from pygroups.core.events import Answered, Dead, Ended, Event
from pygroups.core.limits import HELLO_MAX, MILLISECOND, SECOND, Config

from .contacts import Contact
from .hello import FAREWELL, LENGTH, Hello, Welcome, heard, said

PIECES_AT_ONCE: Final = 512  # in one system call; below every system's limit


class Outcome(Enum):
    """What dialing a peer has shown."""

    ANSWERED = "the same life answered"
    DEAD = "refused, or another life answered"
    UNKNOWN = "nothing is proven"


class Home(Protocol):
    """What a link needs of the network it belongs to."""

    config: Config
    loop: asyncio.AbstractEventLoop

    def hello(self, peer: Address) -> Hello: ...
    def contact_of(self, peer: Address) -> Contact | None: ...
    def happened(self, event: Event) -> None: ...
    def count(self, what: str, by: int = 1) -> None: ...
    def crashed(self, error: BaseException) -> None: ...


class Link:
    """Frames to one peer.  Without a connection they wait while one is dialed; when it is lost they are lost too, and
    the layers above send them again."""

    def __init__(self, home: Home, peer: Address) -> None:
        self.home = home
        self.peer = peer
        self.sock: socket.socket | None = None
        self.dialing: asyncio.Task[None] | None = None
        self.probing = False  # somebody waits to hear what the dialing shows
        self.dead = False  # proven; a life that ended does not come back
        self.waiting: deque[bytes | memoryview] = deque()  # pieces of frames, in order
        self.waiting_bytes = 0
        self.writing = False  # the loop tells when the socket can take more
        self.pause = home.config.reconnect_min
        self.not_before = 0.0  # the loop's time

    # -- sending

    def write(self, pieces: Sequence[bytes], size: int) -> None:
        """Send frames, each a length and a body; `size` is what they come to."""
        if self.dead or self.waiting_bytes + size > self.home.config.link_bytes:
            self.home.count("frames dropped for a dead peer" if self.dead else "frames dropped for a slow peer")
            return
        if self.sock is None and self.dialing is None and not self._dial_again():
            self.home.count("frames dropped for a peer that gives no answer")
            return
        self.waiting.extend(pieces)
        self.waiting_bytes += size
        if self.sock is not None and not self.writing:
            self._flush()

    def _dial_again(self) -> bool:
        if self.home.loop.time() < self.not_before:
            return False
        self.dial()
        return True

    def _flush(self) -> None:
        """Give the kernel what it takes; have the loop call again when it takes more."""
        sock, waiting = self.sock, self.waiting
        assert sock is not None
        try:
            while waiting:
                self._taken(sock.sendmsg(list(islice(waiting, PIECES_AT_ONCE))))
        except (BlockingIOError, InterruptedError):
            if not self.writing:
                self.writing = True
                self.home.loop.add_writer(sock, self._flush)
        except OSError:
            self._lost()
        else:
            if self.writing:
                self.writing = False
                self.home.loop.remove_writer(sock)

    def _taken(self, size: int) -> None:
        self.waiting_bytes -= size
        waiting = self.waiting
        while size:
            piece = waiting.popleft()
            if len(piece) > size:
                waiting.appendleft(memoryview(piece)[size:])
                return
            size -= len(piece)

    # -- the connection's end

    def _readable(self) -> None:
        """The peer has nothing to say on this connection: what can be read is its end."""
        assert self.sock is not None
        try:
            data = self.sock.recv(64)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self.home.count("connections closed on a peer that spoke out of turn")
        self._lost()

    def _lost(self) -> None:
        self.drop()
        self.home.happened(Ended(self.peer))

    def drop(self, *, farewell: bool = False) -> None:
        """Close the connection and forget what waits for it; with `farewell` the peer is told that it means nothing."""
        sock, self.sock = self.sock, None
        if sock is not None:
            self._close(sock, farewell=farewell)
        self._forget()

    def _close(self, sock: socket.socket, *, farewell: bool) -> None:
        self.home.loop.remove_reader(sock)
        if self.writing:
            self.writing = False
            self.home.loop.remove_writer(sock)
        if farewell and not self.waiting:  # otherwise it might stand within a frame
            try:
                sock.send(FAREWELL)
            except OSError:
                self.home.count("farewells that could not be said")
        sock.close()

    def _forget(self) -> None:
        self.waiting.clear()
        self.waiting_bytes = 0

    def close(self) -> None:
        """End everything; no more is heard of this link."""
        if self.dialing is not None:
            self.dialing.cancel()
            self.dialing = None
        self.drop()

    # -- dialing

    def probe(self) -> None:
        """Dial anew, whatever there is, and tell what it shows."""
        self.probing = True
        if self.dialing is None:
            self.dial()

    def dial(self) -> None:
        """Begin to dial."""
        self.dialing = self.home.loop.create_task(self._dial(), name=f"pygroups dials {self.peer}")
        self.dialing.add_done_callback(self._look_at)

    def _look_at(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.home.crashed(error)

    async def _dial(self) -> None:
        contact = self.home.contact_of(self.peer)
        if contact is None:
            self._dialed(Outcome.UNKNOWN, None)
            return
        dialer = Dialer(contact, said(self.home.hello(self.peer)), self.peer, self.home)
        outcome, sock = await dialer.dial()
        self._dialed(outcome, sock)

    def _dialed(self, outcome: Outcome, sock: socket.socket | None) -> None:
        self.dialing = None
        probing, self.probing = self.probing, False
        if outcome is Outcome.ANSWERED:
            assert sock is not None
            self._connected(sock)
            if probing:
                self.home.happened(Answered(self.peer))
        elif outcome is Outcome.DEAD:
            self.dead = True
            self.drop()
            self.home.happened(Dead(self.peer))
        elif self.sock is None:
            self._forget()
            self.not_before = self.home.loop.time() + self.pause / SECOND
            self.pause = min(2 * self.pause, self.home.config.reconnect_max)

    def _connected(self, sock: socket.socket) -> None:
        if self.sock is not None:  # a probe was answered while this one is open: the new one is known to work
            self.drop(farewell=True)
        self.dead = False
        self.pause = self.home.config.reconnect_min
        self.sock = sock
        self.home.loop.add_reader(sock, self._readable)
        if self.waiting:
            self._flush()


class Dialer:
    """One attempt to reach a peer at its contact, with the tries at once that a dying process asks for."""

    def __init__(self, contact: Contact, hello: bytes, peer: Address, home: Home) -> None:
        self.contact = contact
        self.hello = hello
        self.peer = peer
        self.home = home

    async def dial(self) -> tuple[Outcome, socket.socket | None]:
        """What it has shown, and the open connection if the peer answered."""
        config = self.home.config
        try:
            async with asyncio.timeout(config.connect_timeout / SECOND):
                for tried in range(config.probe_tries):
                    try:
                        return await self._try()
                    except (ConnectionError, asyncio.IncompleteReadError):
                        await asyncio.sleep(tried * MILLISECOND / SECOND)
            self.home.count("connections that ended unanswered")
        except TimeoutError:
            self.home.count("connections that nobody answered")
        except (OSError, UnicodeError):  # UnicodeError: the host's name is none
            self.home.count("peers that could not be reached")
        except PeerError:
            self.home.count("connections that a stranger answered")
        return Outcome.UNKNOWN, None

    async def _try(self) -> tuple[Outcome, socket.socket | None]:
        loop = self.home.loop
        family, place = await resolved(self.contact, loop)
        sock = prepared(socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
        answered = False
        try:
            await loop.sock_connect(sock, place)
            if sock.getsockname() == sock.getpeername():  # nobody listens there, and the system chose this very port
                return Outcome.DEAD, None
            await loop.sock_sendall(sock, self.hello)
            answer = heard(await self._answer(sock), Welcome)
            answered = answer.listener == self.peer and not answer.refusal
        except ConnectionRefusedError:
            return Outcome.DEAD, None
        finally:
            if not answered:
                sock.close()
        if answered:
            return Outcome.ANSWERED, sock
        if answer.listener != self.peer:
            return Outcome.DEAD, None
        self.home.count("connections refused by the peer")
        return Outcome.UNKNOWN, None

    async def _answer(self, sock: socket.socket) -> bytes:
        (length,) = LENGTH.unpack(await self._read(sock, LENGTH.size))
        if length > HELLO_MAX:
            raise PeerError("malformed hello")
        return await self._read(sock, length)

    async def _read(self, sock: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = await self.home.loop.sock_recv(sock, size - len(data))
            if not more:
                raise asyncio.IncompleteReadError(data, size)
            data += more
        return data


async def resolved(contact: Contact, loop: asyncio.AbstractEventLoop) -> tuple[int, tuple[str, int]]:
    """Address family and numbers of `contact`; a number needs no thread to look it up, a name does."""
    try:
        version = ipaddress.ip_address(contact.host).version
    except ValueError:
        (family, _, _, _, place), *_ = await loop.getaddrinfo(*contact, type=socket.SOCK_STREAM)
        return family, (str(place[0]), int(place[1]))
    return (socket.AF_INET if version == 4 else socket.AF_INET6), (contact.host, contact.port)


def prepared(sock: socket.socket) -> socket.socket:
    """`sock`, with what every connection of ours wants."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock
