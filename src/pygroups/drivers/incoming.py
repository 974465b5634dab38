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

from .hello import LENGTH, Hello, Question, opened


class Home(Protocol):
    """The part of the door that a connection uses."""

    loop: asyncio.AbstractEventLoop
    area: memoryview  # the shared area for received bytes; valid until the reading function returns

    def receive(self, frame: memoryview) -> None: ...
    def greet(self, connection: Incoming, hello: Hello) -> bytes:
        """The answer to `hello`.  The connection belongs to `hello.sender` from now on, or it is closed on purpose."""

    def questioned(self, connection: Incoming, question: Question) -> None:
        """The connection carries a question of discovery and its answer, and no frames."""

    def kept(self, connection: Incoming, more: int) -> None:
        """Count `more` bytes that the connection keeps in memory; a negative number frees bytes.  May close it."""

    def ended(self, connection: Incoming, *, on_purpose: bool) -> None: ...
    def broke(self, connection: Incoming, error: PeerError) -> None: ...
    def crashed(self, error: BaseException) -> None: ...


class Incoming:
    """The reading side of a connection.  Door decides which connections are accepted, and for how long."""

    def __init__(self, home: Home, sock: socket.socket, remote: str) -> None:
        self.home = home
        self.sock = sock
        self.remote = remote  # for log lines
        self.peer: Address | None = None
        self.on_purpose = False  # a farewell arrived, or the hello was refused: read no more
        self.closed = False
        self.heard_at = home.loop.time()
        self.timer: asyncio.TimerHandle | None = None  # closes the connection
        self.beginning = b""  # the start of an incomplete frame, while it is small
        self.large: memoryview | None = None  # the start of a large one, in a buffer that grows
        self.filled = 0  # received bytes in `large`
        home.loop.add_reader(sock, self._readable)

    def close(self) -> None:
        """Close the socket, and free the kept memory."""
        if self.closed:
            return
        self.closed = True
        self.call_off()
        self.home.loop.remove_reader(self.sock)
        self.sock.close()
        self._keep_nothing()

    def close_in(self, seconds: float) -> None:
        """Close the connection after `seconds`, unless call_off() is called."""
        self.call_off()
        self.timer = self.home.loop.call_later(seconds, self._out_of_time)

    def call_off(self) -> None:
        """Cancel close_in()."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _out_of_time(self) -> None:
        self.home.ended(self, on_purpose=True)

    # -- reading

    def _readable(self) -> None:
        try:
            self._read()
        except PeerError as error:
            self.home.broke(self, error)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.home.ended(self, on_purpose=False)
        except Exception as error:  # noqa: BLE001 (the driver's outermost loop: any error here is a bug in pygroups)
            self.home.crashed(error)

    def _read(self) -> None:
        area, filled = self.large, self.filled
        if area is None:
            area, filled = self.home.area, len(self.beginning)
            area[:filled] = self.beginning
        size = self.sock.recv_into(area[filled:])
        if not size:
            self.home.ended(self, on_purpose=False)
            return
        self.heard_at = self.home.loop.time()
        filled += size
        begin = self._parse(area, filled)
        if self.closed:
            return
        if self.on_purpose:
            self.home.ended(self, on_purpose=True)
        else:
            self._keep(area, begin, filled)

    def _parse(self, area: memoryview, filled: int) -> int:
        """Handle the complete frames.  Returns the offset of the rest."""
        begin, home = 0, self.home
        while filled - begin >= LENGTH.size and not self.on_purpose and not self.closed:
            (length,) = LENGTH.unpack_from(area, begin)
            end = begin + LENGTH.size + length
            if length > (FRAME_MAX if self.peer is not None else HELLO_MAX):
                raise PeerError("frame size")
            if end > filled:
                break
            if not length:
                self.on_purpose = True  # a farewell
            elif self.peer is not None:
                home.receive(area[begin + LENGTH.size : end])
            else:
                self._first(opened(area[begin + LENGTH.size : end]))
            begin = end
        return begin

    def _first(self, word: Hello | Question) -> None:
        if isinstance(word, Question):
            self.home.questioned(self, word)
            return
        answer = self.home.greet(self, word)
        if not self.closed:
            self.say(answer)

    def say(self, answer: bytes) -> None:
        """Send the answer to the first word.  Raises PeerError if the peer reads nothing."""
        try:
            sent = self.sock.send(answer)
        except BlockingIOError:
            sent = 0
        if sent < len(answer):
            raise PeerError("a peer that reads no answer")

    # -- incomplete frames

    def _keep(self, area: memoryview, begin: int, filled: int) -> None:
        """Keep the rest, which is the start of a frame, in a buffer that grows with the received bytes."""
        rest = area[begin:filled]
        if not rest:
            if self.kept_bytes:
                self._keep_nothing()
            return
        (length,) = LENGTH.unpack_from(rest) if len(rest) >= LENGTH.size else (0,)
        wanted, shared = LENGTH.size + length, len(self.home.area)
        if wanted <= shared or len(rest) <= shared // 2:
            if self._may_keep(len(rest)):
                self.beginning, self.large, self.filled = bytes(rest), None, 0
        elif area is self.large and not begin and filled < len(area):
            self.filled = filled
        elif self._may_keep(size := min(wanted, 2 * len(rest))):
            larger = memoryview(bytearray(size))
            larger[: len(rest)] = rest
            self.beginning, self.large, self.filled = b"", larger, len(rest)

    def _may_keep(self, size: int) -> bool:
        """Whether this connection may keep `size` bytes, in place of the bytes that it keeps now."""
        self.home.kept(self, size - self.kept_bytes)
        return not self.closed

    def _keep_nothing(self) -> None:
        self.home.kept(self, -self.kept_bytes)
        self.beginning, self.large, self.filled = b"", None, 0

    @property
    def kept_bytes(self) -> int:
        """The bytes that this connection keeps in memory."""
        return len(self.beginning) if self.large is None else len(self.large)
