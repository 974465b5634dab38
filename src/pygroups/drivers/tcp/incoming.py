"""One connection that a peer made: the handshake, then frames.

Memory is allocated for received bytes only, and never for an announced length.  A complete frame is handled in an area
that all connections share.  Only the start of an incomplete frame is kept with its connection.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol

from pygroups.core.address import Address
from pygroups.core.errors import PeerError
from pygroups.core.limits import FRAME_MAX, HELLO_MAX

from ..handshake import Handshake, Unopened
from ..hello import LENGTH, DiscoveryQuestion, Hello, first_message


class ConnectionDoor(Protocol):
    """The part of the door that a connection uses."""

    loop: asyncio.AbstractEventLoop
    area: memoryview  # the shared area for received bytes; valid until the reading function returns
    handshake: Handshake

    def receive(self, frame: memoryview) -> bool:
        """Whether the frame is authentic."""

    def greet(self, connection: Incoming, hello: Hello, about: bytes) -> bytes:
        """The answer to `hello`, which `about` names.  The connection belongs to `hello.sender` from now on, or it is
        closed on purpose."""

    def not_opened(self, connection: Incoming, body: memoryview) -> None:
        """The first message cannot be opened, because the peer has another secret, or none."""

    def questioned(self, connection: Incoming, question: DiscoveryQuestion) -> None:
        """The connection carries a question of discovery and its answer, and no frames."""

    def kept(self, connection: Incoming, more: int) -> None:
        """Count `more` bytes that the connection keeps in memory; a negative number frees bytes.  May close it."""

    def ended(self, connection: Incoming, *, on_purpose: bool) -> None: ...
    def broke(self, connection: Incoming, error: PeerError) -> None: ...
    def crashed(self, error: BaseException) -> None: ...


class Incoming:
    """The reading side of a connection.  Door decides which connections are accepted, and for how long."""

    def __init__(self, door: ConnectionDoor, sock: socket.socket, remote: str) -> None:
        self.door = door
        self.sock = sock
        self.remote = remote  # for log lines
        self.peer: Address | None = None
        self.on_purpose = False  # a closing message arrived, or the hello was refused: read no more
        self.closed = False
        self.heard_at = door.loop.time()
        self.timer: asyncio.TimerHandle | None = None  # closes the connection
        self.beginning = b""  # the start of an incomplete frame, while it is small
        self.large: memoryview | None = None  # the start of a large one, in a buffer that grows
        self.filled = 0  # received bytes in `large`
        door.loop.add_reader(sock, self._readable)

    def close(self) -> None:
        """Close the socket, and free the kept memory."""
        if self.closed:
            return
        self.closed = True
        self.call_off()
        self.door.loop.remove_reader(self.sock)
        self.sock.close()
        self._keep_nothing()

    def close_in(self, seconds: float) -> None:
        """Close the connection after `seconds`, unless call_off() is called."""
        self.call_off()
        self.timer = self.door.loop.call_later(seconds, self._out_of_time)

    def call_off(self) -> None:
        """Cancel close_in()."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _out_of_time(self) -> None:
        self.door.ended(self, on_purpose=True)

    # -- reading

    def _readable(self) -> None:
        try:
            self._read()
        except PeerError as error:
            self.door.broke(self, error)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.door.ended(self, on_purpose=False)
        except Exception as error:  # noqa: BLE001 (the driver's outermost loop: any error here is a bug in pygroups)
            self.door.crashed(error)

    def _read(self) -> None:
        area, filled = self.large, self.filled
        if area is None:
            area, filled = self.door.area, len(self.beginning)
            area[:filled] = self.beginning
        size = self.sock.recv_into(area[filled:])
        if not size:
            self.door.ended(self, on_purpose=False)
            return
        self.heard_at = self.door.loop.time()
        filled += size
        begin = self._parse(area, filled)
        if self.closed:
            return
        if self.on_purpose:
            self.door.ended(self, on_purpose=True)
        else:
            self._keep(area, begin, filled)

    def _parse(self, area: memoryview, filled: int) -> int:
        """Handle the complete frames.  Returns the offset of the rest."""
        begin, door = 0, self.door
        while filled - begin >= LENGTH.size and not self.on_purpose and not self.closed:
            (length,) = LENGTH.unpack_from(area, begin)
            end = begin + LENGTH.size + length
            if length > (FRAME_MAX if self.peer is not None else HELLO_MAX):
                raise PeerError("the frame is larger than the limit")
            if end > filled:
                break
            if not length:
                self.on_purpose = True  # a closing message
            elif self.peer is not None:
                if not door.receive(area[begin + LENGTH.size : end]):
                    raise PeerError("a frame that is not authentic")  # later frames would follow a loss
            else:
                self._first(area[begin + LENGTH.size : end])
            begin = end
        return begin

    def _first(self, body: memoryview) -> None:
        handshake = self.door.handshake
        try:
            message = first_message(handshake.opened(body))
        except Unopened:
            self.door.not_opened(self, body)
            return
        if isinstance(message, DiscoveryQuestion):
            self.door.questioned(self, message)
            return
        answer = self.door.greet(self, message, handshake.about(body))
        if not self.closed:
            self.answer(answer)

    def answer(self, answer: bytes) -> None:
        """Send the answer to the first message.  Raises PeerError if the peer does not read it."""
        try:
            sent = self.sock.send(answer)
        except BlockingIOError:
            sent = 0
        if sent < len(answer):
            raise PeerError("the peer does not read its answer")

    # -- incomplete frames

    def _keep(self, area: memoryview, begin: int, filled: int) -> None:
        """Keep the rest, which is the start of a frame, in a buffer that grows with the received bytes."""
        rest = area[begin:filled]
        if not rest:
            if self.kept_bytes:
                self._keep_nothing()
            return
        (length,) = LENGTH.unpack_from(rest) if len(rest) >= LENGTH.size else (0,)
        wanted, shared = LENGTH.size + length, len(self.door.area)
        if wanted <= shared or len(rest) <= shared // 2:
            if self._reserve(len(rest)):
                self.beginning, self.large, self.filled = bytes(rest), None, 0
        elif area is self.large and not begin and filled < len(area):
            self.filled = filled
        elif self._reserve(size := min(wanted, 2 * len(rest))):
            larger = memoryview(bytearray(size))
            larger[: len(rest)] = rest
            self.beginning, self.large, self.filled = b"", larger, len(rest)

    def _reserve(self, size: int) -> bool:
        """Reserve `size` bytes, in place of the bytes that this connection keeps now.  Returns whether it may keep
        them."""
        self.door.kept(self, size - self.kept_bytes)
        return not self.closed

    def _keep_nothing(self) -> None:
        self.door.kept(self, -self.kept_bytes)
        self.beginning, self.large, self.filled = b"", None, 0

    @property
    def kept_bytes(self) -> int:
        """The bytes that this connection keeps in memory."""
        return len(self.beginning) if self.large is None else len(self.large)
