"""The way out to one peer: dialed on first need, probed on demand, written with as few copies as the kernel allows.

Sockets are written directly, with `sendmsg` over the pieces of a turn: an asyncio transport of Python 3.11 would join
them first, and copy what the kernel does not take at once.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final, Protocol

from pygroups.core.address import Address
from pygroups.core.events import Answered, Dead, Ended, Event
from pygroups.core.limits import MILLISECOND, SECOND

from . import dialer
from .book import Reach
from .dialer import Dialer, Outcome
from .hello import FAREWELL

PIECES_AT_ONCE: Final = 512  # in one system call; below every system's limit
PROBE_PAUSE: Final = 50 * MILLISECOND / SECOND  # before a probe that showed nothing dials again


class Home(dialer.Home, Protocol):
    """What a link needs of the network it belongs to."""

    def reaches(self, peer: Address) -> list[Reach]: ...
    def happened(self, event: Event) -> None: ...
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
        self.probe_until = 0.0  # the loop's time; so long a probe that shows nothing is repeated
        self.dead = False  # the last dial was a proof; it is taken back when the peer is heard
        self.waiting: deque[bytes | memoryview] = deque()  # pieces of frames, in order
        self.waiting_bytes = 0
        self.writing = False  # the loop tells when the socket can take more
        self.pause = home.config.reconnect_min
        self.not_before = 0.0  # the loop's time

    @property
    def is_idle(self) -> bool:
        """Whether there is no connection, and none is being made."""
        return self.sock is None and self.dialing is None

    # -- sending

    def write(self, pieces: Sequence[bytes], size: int) -> None:
        """Send frames, each a length and a body; `size` is what they come to."""
        if self.waiting_bytes + size > self.home.config.link_bytes:
            self.home.count("frames dropped for a slow peer")
            return
        if self.is_idle and not self._dial_again():
            self.home.count(
                "frames dropped for a dead peer" if self.dead else "frames dropped for a peer that gives no answer"
            )
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
        """Close the connection, drop its queued frames; `farewell` tells the peer that this member has not crashed."""
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
        """Dial anew, whatever there is, and tell what it shows; for a while again and again, if it shows nothing."""
        self.probing = True
        self.probe_until = self.home.loop.time() + self.home.config.verify_timeout / SECOND
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
        outcome, sock = Outcome.UNKNOWN, None
        while reaches := self.home.reaches(self.peer):
            outcome, sock = await Dialer(reaches, self.peer, self.home).dial()
            if outcome is not Outcome.UNKNOWN or self.home.loop.time() >= self.probe_until:
                break
            await asyncio.sleep(PROBE_PAUSE)
        self._dialed(outcome, sock)

    def _dialed(self, outcome: Outcome, sock: socket.socket | None) -> None:
        self.dialing = None
        probing, self.probing, self.probe_until = self.probing, False, 0.0
        if outcome is Outcome.ANSWERED:
            assert sock is not None
            tell = probing or self.dead  # a proof that was wrong is taken back
            self._connected(sock)
            if tell:
                self.home.happened(Answered(self.peer))
            return
        if outcome is Outcome.DEAD:
            tell, self.dead = probing or not self.dead, True
            self.drop()
            if tell:
                self.home.happened(Dead(self.peer))
        elif self.sock is None:
            self._forget()
        self.not_before = self.home.loop.time() + self.pause / SECOND
        self.pause = min(2 * self.pause, self.home.config.reconnect_max)

    def _connected(self, sock: socket.socket) -> None:
        """What the connection before has not begun to send goes over this one, which is known to work."""
        before, self.sock = self.sock, None
        if before is not None:
            self._close(before, farewell=True)
            self._skip_the_begun_frame()
        self.dead = False
        self.pause = self.home.config.reconnect_min
        self.sock = sock
        self.home.loop.add_reader(sock, self._readable)
        if self.waiting:
            self._flush()

    def _skip_the_begun_frame(self) -> None:
        """Pieces are a frame's length, and its body, in turn: what remains of one that was begun goes with the old
        connection."""
        waiting = self.waiting
        if len(waiting) % 2:
            self.waiting_bytes -= len(waiting.popleft())
        elif waiting and isinstance(waiting[0], memoryview):
            self.waiting_bytes -= len(waiting.popleft()) + len(waiting.popleft())
