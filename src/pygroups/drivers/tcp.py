"""Frames over TCP: who listens, who is dialed, and what the end of a connection proves.

Each member dials for what it sends and is dialed for what it receives.  Before the first frame both ends say who they
are (hello.py); a zero in place of a frame's length is a farewell.  Note: docs/decisions/0040.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pygroups.core.address import Address
from pygroups.core.errors import PeerError, UsageError
from pygroups.core.events import Answered, Ended, Event
from pygroups.core.limits import FRAME_MAX, HELLO_MAX, SECOND, Config
from pygroups.wire.frame import VERSION

from .contacts import Contact, advertised, checked_bind, parse_contact
from .hello import LENGTH, Hello, heard, said, welcome
from .link import Link, prepared

READ_BYTES: Final = 256 << 10  # read at once; a larger frame gets a larger buffer for as long as it needs it
BACKLOG: Final = 128


class TcpNetwork:
    """One member's connections.  `receive` is called with each frame, `happened` with Ended, Answered and Dead."""

    def __init__(
        self,
        me: Address,
        group: str,
        config: Config,
        *,
        bind: str = "127.0.0.1:0",
        advertise: str | None = None,
        insecure: bool = False,
    ) -> None:
        self.me = me
        self.group = group
        self.config = config
        self.insecure = insecure
        self.bind = checked_bind(bind, advertise, insecure=insecure)
        self.advertise = advertise
        self.contact = ""  # where others are told to dial; known once it listens
        self.receive: Callable[[memoryview], None]
        self.happened: Callable[[Event], None]
        self.count: Callable[..., None]
        self.crashed: Callable[[BaseException], None]
        self.loop: asyncio.AbstractEventLoop
        self.links: dict[Address, Link] = {}
        self.contacts: dict[Address, str] = {}
        self.strangers: dict[Incoming, None] = {}
        self.incoming: dict[Incoming, None] = {}
        self.server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen; UsageError when that place cannot be had."""
        self.loop = asyncio.get_running_loop()
        sock = self._listening()
        self.contact = str(advertised(Contact(*sock.getsockname()[:2]), self.advertise))
        # Begun in two steps: so close() finds the server when the second is cancelled.
        self.server = await self.loop.create_server(
            lambda: Incoming(self), sock=sock, backlog=BACKLOG, start_serving=False
        )
        await self.server.start_serving()

    def _listening(self) -> socket.socket:
        try:
            (family, _, _, _, place), *_ = socket.getaddrinfo(*self.bind, type=socket.SOCK_STREAM)
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind(place)
            except OSError:
                sock.close()
                raise
        except (OSError, UnicodeError) as error:  # UnicodeError: the host's name is none
            why = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"cannot listen at {self.bind}: {why}; bind elsewhere, port 0 takes any free one"
            ) from error
        return sock

    def close(self) -> None:
        """End all connections and listen no more; peers see it as they would see the end of the process."""
        if self.server is not None:
            self.server.close()
            self.server = None
        for link in self.links.values():
            link.close()
        for connection in [*self.strangers, *self.incoming]:
            connection.abandon()
        self.links = {}

    async def drain(self, seconds: float) -> None:
        """Wait until everything was given to the kernel, at most so long."""
        end = self.loop.time() + seconds
        while self.waiting_bytes() and self.loop.time() < end:
            await asyncio.sleep(0.001)

    def waiting_bytes(self) -> int:
        """What the kernel has not taken yet, for all peers."""
        return sum([link.waiting_bytes for link in self.links.values()])

    # -- what the stack asks for

    def send(self, frames: Iterable[tuple[Sequence[Address], Sequence[bytes]]]) -> None:
        """Write each frame to each of its receivers: all frames of a turn for one of them together."""
        batches: dict[Address, tuple[list[bytes], int]] = {}
        for dests, bodies in frames:
            pieces = [piece for body in bodies for piece in (LENGTH.pack(len(body)), body)]
            size = sum([len(piece) for piece in pieces])
            for dest in dests:
                batch, so_far = batches.get(dest, ([], 0))
                batches[dest] = (batch + pieces if batch else pieces, so_far + size)
        for dest, (pieces, size) in batches.items():
            self._link(dest).write(pieces, size)

    def learn(self, contacts: Mapping[Address, str]) -> None:
        """These listen there."""
        for peer, contact in contacts.items():
            if self.contacts.get(peer) != contact and peer != self.me:
                self.contacts[peer] = contact
                if len(self.contacts) > self.config.contacts_max:
                    self._forget_a_contact()

    def _forget_a_contact(self) -> None:
        """The oldest that no connection needs."""
        unused = next((peer for peer in self.contacts if peer not in self.links), None)
        if unused is not None:
            del self.contacts[unused]

    def probe(self, peer: Address) -> None:
        """Dial `peer` anew; Answered, Dead or nothing follows."""
        if peer == self.me:
            self.happened(Answered(peer))  # a newcomer wants this member's own name
        else:
            self._link(peer).probe()

    def disconnect(self, peer: Address) -> None:
        """Nobody here needs `peer` any more."""
        link = self.links.pop(peer, None)
        if link is not None:
            link.drop(farewell=True)
            link.close()

    def _link(self, peer: Address) -> Link:
        link = self.links.get(peer)
        if link is None:
            link = self.links[peer] = Link(self, peer)
        return link

    # -- what links ask for

    def hello(self, peer: Address) -> Hello:
        """What to say to `peer` first."""
        return Hello(VERSION, self.group, self.me, self.contact, peer)

    def contact_of(self, peer: Address) -> Contact | None:
        """Where to dial `peer`, if that is known and this member may dial it."""
        told = self.contacts.get(peer)
        if told is None:
            self.count("peers that nobody knows where to dial")
            return None
        try:
            contact = parse_contact(told)
        except UsageError:
            self.count("contacts that are none")
            return None
        if not contact.loopback and not self.insecure:
            self.count("contacts beyond this machine")
            return None
        return contact

    # -- what came in

    def greeted(self, connection: Incoming, hello: Hello) -> None:
        """A stranger has said who it is."""
        del self.strangers[connection]
        self.incoming[connection] = None
        self.learn({hello.sender: hello.contact})
        link = self.links.get(hello.sender)
        if link is not None:
            link.dead = False

    def ended(self, connection: Incoming, peer: Address | None, *, on_purpose: bool) -> None:
        """A connection that a peer had made is over."""
        self.strangers.pop(connection, None)
        self.incoming.pop(connection, None)
        if peer is not None and not on_purpose and self.server is not None:
            self.happened(Ended(peer))


class Incoming(asyncio.BufferedProtocol):
    """A connection that a peer made, to send: it says who it is, is answered, and then frames come."""

    def __init__(self, home: TcpNetwork) -> None:
        self.home = home
        self.peer: Address | None = None
        self.on_purpose = False
        self.transport: asyncio.Transport
        self.patience: asyncio.TimerHandle | None = None
        self.buffer = memoryview(bytearray(HELLO_MAX + LENGTH.size))
        self.filled = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        prepared(transport.get_extra_info("socket"))
        home = self.home
        if home.server is None:
            transport.abort()  # accepted in the moment in which this member closed
            return
        if len(home.strangers) >= home.config.strangers:
            home.count("connections refused: too many strangers")
            transport.abort()
            return
        home.strangers[self] = None
        self.patience = home.loop.call_later(home.config.stranger_timeout / SECOND, self._out_of_patience)

    def _out_of_patience(self) -> None:
        self.home.count("connections that said nothing")
        self.transport.abort()

    def abandon(self) -> None:
        """This end closes it; the peer sees that it ended."""
        self.on_purpose = True
        self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self.patience is not None:
            self.patience.cancel()
        self.home.ended(self, self.peer, on_purpose=self.on_purpose)

    # -- reading

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer[self.filled :]

    def buffer_updated(self, size: int) -> None:
        self.filled += size
        try:
            begin = self._parse()
        except PeerError as error:
            self.home.count(f"connections closed: {error.reason}")
            self.transport.abort()
            return
        if self.on_purpose:  # after a farewell, or a refusal, nothing is read
            self.transport.close()
            return
        self._keep(begin)

    def _parse(self) -> int:
        """Handle what has come whole; where the rest begins."""
        begin, filled, buffer, home = 0, self.filled, self.buffer, self.home
        while filled - begin >= LENGTH.size and not self.on_purpose:
            (length,) = LENGTH.unpack_from(buffer, begin)
            end = begin + LENGTH.size + length
            if length > (FRAME_MAX if self.peer is not None else HELLO_MAX):
                raise PeerError("frame size")
            if end > filled:
                break
            if not length:
                self.on_purpose = True  # a farewell
            elif self.peer is not None:
                home.receive(buffer[begin + LENGTH.size : end])
            else:
                self._greet(heard(buffer[begin + LENGTH.size : end], Hello))
            begin = end
        return begin

    def _greet(self, hello: Hello) -> None:
        home = self.home
        answer = welcome(hello, home.me, home.group)
        self.transport.write(said(answer))
        if answer.refusal:
            home.count("connections refused")
            self.transport.close()
            self.on_purpose = True
            return
        assert self.patience is not None
        self.patience.cancel()
        self.peer = hello.sender
        home.greeted(self, hello)

    def _keep(self, begin: int) -> None:
        """Move what has not come whole to the front of a buffer that the whole will fit."""
        rest = self.filled - begin
        wanted = READ_BYTES if self.peer is not None else len(self.buffer)
        if rest >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self.buffer, begin)
            wanted = max(wanted, LENGTH.size + length)
        if begin or wanted != len(self.buffer):
            old, left = self.buffer, self.buffer[begin : self.filled]
            if wanted != len(old):
                self.buffer = memoryview(bytearray(wanted))
            self.buffer[:rest] = left
            self.filled = rest
