"""The outgoing connection to one peer: dialed at the first frame, probed on demand, written with few copies.

The connection writes to its socket with `sendmsg`, over all pieces of a turn.  A transport of asyncio in Python 3.11
would first join the pieces, and copy the bytes that the kernel does not accept at once.
"""

from __future__ import annotations

import asyncio
import errno
import random
import socket
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final, Protocol

from pygroups.core.address import Address
from pygroups.core.driver_events import Answered, Dead, Ended, Lost
from pygroups.core.events import Event
from pygroups.core.limits import MILLISECOND, SECOND

from ..book import Reach
from ..contacts import Contact
from ..hello import CLOSING
from . import dialer
from .dialer import PROOFS, Dialer, DialResult

PIECES_AT_ONCE: Final = 512  # in one system call; below every system's limit
JITTER: Final = (1.0, 1.5)  # the shortest and the longest pause, in planned pauses
PROBE_PAUSE: Final = 50 * MILLISECOND / SECOND  # before a probe without an outcome dials again


class PeerConnectionNetwork(dialer.DialerNetwork, Protocol):
    """The part of the network that the connection to one peer uses."""

    def reaches(self, peer: Address) -> list[Reach]: ...
    def has_room(self, connection: PeerConnection, size: int) -> bool: ...
    def queued(self, peer: Address, more: int) -> None:
        """The queue of the connection to `peer` has `more` bytes more; a negative number: fewer."""

    def answered_at(self, peer: Address, contact: Contact) -> None: ...
    def unacknowledged(self, peer: Address) -> None:
        """The kernel has ended the connection to `peer`, whose machine acknowledged no data for long."""

    def happened(self, event: Event) -> None: ...
    def crashed(self, error: BaseException) -> None: ...


class PeerConnection:
    """The frames to one peer.  The frames wait while a connection is dialed.  When a connection is lost, its frames are
    lost too, and the layers retransmit them.  Each loss is reported (Lost), so the layers retransmit nothing else."""

    def __init__(self, network: PeerConnectionNetwork, peer: Address) -> None:
        self.network = network
        self.peer = peer
        self.sock: socket.socket | None = None
        self.dialing: asyncio.Task[None] | None = None
        self.dialer: Dialer | None = None  # of the dialing
        self.probing = False  # the layers wait for the outcome of the dialing
        self.probe_until = 0.0  # the loop's time until which a probe without an outcome is repeated
        self.dead = False  # the last dial proved the end of the peer; an answer of the peer withdraws the proof
        self.waiting: deque[bytes | memoryview] = deque()  # pieces of frames, in order
        self.waiting_bytes = 0
        self.writing = False  # the loop calls _flush() when the socket accepts more bytes
        self.pause = network.config.reconnect_min  # the next one; a connection that stands makes it short again
        self.not_before = 0.0  # the loop's time
        self.tried_early = False  # a pause has ended early since the last connection
        self.used_at = 0.0  # the loop's time: the begin of the connection

    @property
    def is_idle(self) -> bool:
        """Whether there is no connection, and no attempt to connect."""
        return self.sock is None and self.dialing is None

    # -- sending

    def write(self, pieces: Sequence[bytes], size: int) -> None:
        """Send frames, each as a length and a body, with `size` bytes in all."""
        if not self.network.has_room(self, size):
            self.network.count("frames dropped for a slow peer")
            self.network.happened(Lost(self.peer))
            return
        if self.is_idle and not self._dial_again():
            self.network.count(
                "frames dropped for a dead peer" if self.dead else "frames dropped for a peer that gives no answer"
            )
            self.network.happened(Lost(self.peer))
            return
        sent = 0
        if self.sock is not None and not self.waiting and len(pieces) <= PIECES_AT_ONCE:
            try:
                sent = self.sock.sendmsg(pieces)
            except (BlockingIOError, InterruptedError):
                pass
            except OSError as error:
                self._lost(error)
                return
            if sent == size:
                return
        self.waiting.extend(pieces)
        self._queued(size)
        self._taken(sent)
        if self.sock is not None and not self.writing:
            self._flush()

    def _dial_again(self) -> bool:
        if self.network.loop.time() < self.not_before:
            return False
        self.dial()
        return True

    def _flush(self) -> None:
        """Write as many bytes as the kernel accepts.  The loop calls this again when the kernel accepts more."""
        sock, waiting = self.sock, self.waiting
        assert sock is not None
        try:
            while waiting:
                self._taken(sock.sendmsg(list(islice(waiting, PIECES_AT_ONCE))))
        except (BlockingIOError, InterruptedError):
            if not self.writing:
                self.writing = True
                self.network.loop.add_writer(sock, self._flush)
        except OSError as error:
            self._lost(error)
        else:
            if self.writing:
                self.writing = False
                self.network.loop.remove_writer(sock)

    def _queued(self, more: int) -> None:
        self.waiting_bytes += more
        self.network.queued(self.peer, more)

    def _taken(self, size: int) -> None:
        self._queued(-size)
        waiting = self.waiting
        while size:
            piece = waiting.popleft()
            if len(piece) > size:
                waiting.appendleft(memoryview(piece)[size:])
                return
            size -= len(piece)

    # -- the connection's end

    def _readable(self) -> None:
        """The peer sends no data on this connection, so a readable socket means its end."""
        assert self.sock is not None
        try:
            data = self.sock.recv(64)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lost(error)
            return
        if data:
            self.network.count("connections closed: the peer sent data on a connection that is not its own")
        self._lost()

    def _lost(self, error: OSError | None = None) -> None:
        if error is not None and error.errno == errno.ETIMEDOUT:
            self.network.unacknowledged(self.peer)
        self.drop()
        self.network.happened(Lost(self.peer))
        self.network.happened(Ended(self.peer))

    def drop(self, *, on_purpose: bool = False) -> None:
        """Close the connection, and drop its queued frames.  `on_purpose`: a closing message informs the peer that this
        member has not crashed."""
        sock, self.sock = self.sock, None
        if sock is not None:
            self._close(sock, on_purpose=on_purpose)
        self._forget()

    def _close(self, sock: socket.socket, *, on_purpose: bool) -> None:
        config = self.network.config
        if self.network.loop.time() - self.used_at >= config.reconnect_max / SECOND:
            self.pause = config.reconnect_min
        self.network.loop.remove_reader(sock)
        if self.writing:
            self.writing = False
            self.network.loop.remove_writer(sock)
        if on_purpose and not self.waiting:  # otherwise the closing message could end up inside a frame
            try:
                sock.send(CLOSING)
            except OSError:
                self.network.count("closing messages that could not be sent")
        sock.close()

    def _forget(self) -> None:
        self.waiting.clear()
        self._queued(-self.waiting_bytes)

    def close(self) -> None:
        """End the dialing and the connection."""
        if self.dialing is not None:
            self.dialing.cancel()
            self.dialing = None
        self.drop()

    # -- dialing

    def probe(self) -> None:
        """Dial the peer, even beside an open connection, and report the outcome.  Repeat for a while if there is
        none."""
        self.probing = True
        self.probe_until = self.network.loop.time() + self.network.config.verify_timeout / SECOND
        if self.dialing is None:
            self.dial()

    def greeted(self) -> None:
        """The peer has reached this member, so this member may reach the peer, even if the peer counts as ended."""
        if self.dead:
            self.probe()
        else:
            self.try_early()

    def try_early(self) -> None:
        """The network to the peer may work again.  Start another try beside a silent dial, or end the pause after a
        failed one: Do this only once until the next connection.  Otherwise two late members would dial each other
        without end."""
        if self.dialer is not None:
            self.dialer.try_again(self.network.reaches(self.peer))
        elif self.is_idle and not self.dead and not self.tried_early and self.network.loop.time() < self.not_before:
            self.tried_early = True
            self.dial()

    def dial(self) -> None:
        """Start to dial."""
        self.dialing = self.network.loop.create_task(self._dial(), name=f"pygroups dials {self.peer}")
        self.dialing.add_done_callback(self._look_at)

    def _look_at(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.network.crashed(error)

    async def _dial(self) -> None:
        outcome, sock = DialResult.UNKNOWN, None
        while reaches := self.network.reaches(self.peer):
            self.dialer = Dialer(reaches, self.peer, self.network)
            outcome, sock = await self.dialer.dial()
            if outcome is DialResult.ANSWERED and len(reaches) == 1:
                self.network.answered_at(self.peer, reaches[0].contact)
            if outcome is not DialResult.UNKNOWN or self.network.loop.time() >= self.probe_until:
                break
            await asyncio.sleep(PROBE_PAUSE)
        self._dialed(outcome, sock)

    def _dialed(self, outcome: DialResult, sock: socket.socket | None) -> None:
        self.dialing = self.dialer = None
        probing, self.probing, self.probe_until = self.probing, False, 0.0
        if outcome is DialResult.ANSWERED:
            assert sock is not None
            report = probing or self.dead  # Answered withdraws a wrong proof
            self.use(sock)
            if report:
                self.network.happened(Answered(self.peer))
            return
        if outcome in PROOFS or self.sock is None:
            loses = self.sock is not None or bool(self.waiting)
            self.drop()
            if loses:
                self.network.happened(Lost(self.peer))
        if outcome in PROOFS:
            report, self.dead = probing or not self.dead, True
            if report:
                self.network.happened(Dead(self.peer, outcome is DialResult.REPLACED))
        self._pause_dialing()

    def _pause_dialing(self) -> None:
        """Frames dial after a pause, and each pause is longer.  Jitter keeps members apart that lost each other at the
        same moment.  A probe does not wait: a refusal is the fastest proof of a crash."""
        self.not_before = self.network.loop.time() + self.pause / SECOND * random.uniform(*JITTER)
        self.pause = min(2 * self.pause, self.network.config.reconnect_max)

    def use(self, sock: socket.socket) -> None:
        """Use the new connection, which works.  Frames that the old connection had not started go over the new one."""
        before, self.sock = self.sock, None
        if before is not None:
            self._close(before, on_purpose=True)
            self._skip_the_begun_frame()
            self.network.happened(Lost(self.peer))  # the peer may not read all of the old one
        self.dead = self.tried_early = False
        self.used_at = self.network.loop.time()
        self.sock = sock
        self.network.loop.add_reader(sock, self._readable)
        if self.waiting:
            self._flush()

    def _skip_the_begun_frame(self) -> None:
        """Drop the rest of a frame that the old connection had started.  Pieces alternate: a length, then a body."""
        waiting = self.waiting
        if len(waiting) % 2:
            self._queued(-len(waiting.popleft()))
        elif waiting and isinstance(waiting[0], memoryview):
            self._queued(-len(waiting.popleft()) - len(waiting.popleft()))
