"""One attempt to reach a peer.  An attempt has three outcomes: the peer answers, its process has ended, or nothing is
proven.

A refused connection proves the end of a peer only at a contact from the view or the directory, and only while the peer
has no connection to this member: a port forwarder that restarts also refuses connections.  Note: docs/drivers.md.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from enum import Enum
from typing import Final, Protocol

from pygroups.core.address import Address
from pygroups.core.errors import PeerError
from pygroups.core.limits import HELLO_MAX, MILLISECOND, SECOND, Config

from ..book import Reach
from ..handshake import Handshake
from ..hello import CLOSING, LENGTH, NOT_WANTED, Welcome, decoded, with_length
from ..sockets import SocketAddress, prepared, resolved

TRIES: Final = 4  # started one after another while none is answered: the network may work again before TCP retries
PARTS: Final = 4 * TRIES  # of connect_timeout; a part in which the event loop was late counts as one part
REFUSED_PAUSE_MAX: Final = 0.05  # seconds, between two dials of a peer that refuses and has a connection to this member

Dialed = tuple["DialResult", socket.socket | None]


class DialResult(Enum):
    """The outcome of dialing a peer."""

    ANSWERED = "the same incarnation answered"
    DEAD = "refused"
    REPLACED = "another process answered"
    UNKNOWN = "nothing is proven"


PROOFS: Final = (DialResult.DEAD, DialResult.REPLACED)  # that the process of the peer has ended


class DialerNetwork(Protocol):
    """The part of the network that a dialer uses."""

    config: Config
    loop: asyncio.AbstractEventLoop
    handshake: Handshake

    def hello(self, peer: Address | None) -> bytes: ...
    def hears(self, peer: Address) -> bool: ...
    def count(self, what: str, by: int = 1) -> None: ...
    def refused(self, peer: Address | None, answer: Welcome) -> None: ...


class Dialer:
    """Dials a peer at its contacts, several times if the peer's process is just ending."""

    def __init__(self, reaches: list[Reach], peer: Address | None, network: DialerNetwork) -> None:
        self.reaches = reaches
        self.found: Address | None = None  # the process that answered
        self.peer = peer  # None: any process that listens there
        self.network = network
        self.silent = True  # no host has accepted or refused a connection
        self.again = False  # the network may work again, so another try starts at once
        self.over = False  # the outcome is known; otherwise this member itself may be ending

    async def dial(self) -> Dialed:
        """The outcome, and the open connection if the peer answered."""
        tasks: list[asyncio.Task[Dialed]] = []
        try:
            outcome = await self._race(tasks)
            self.over = True
            return outcome
        finally:
            for task in tasks:
                task.add_done_callback(self._close_late)
                task.cancel()

    def try_again(self, reaches: list[Reach]) -> None:
        """The network to the peer may work again: dial these contacts soon, unless a host has answered."""
        self.reaches, self.again = reaches, True

    async def _race(self, tasks: list[asyncio.Task[Dialed]]) -> Dialed:
        """The first answer or proof.  While no host answers, further tries start beside the waiting ones.

        Time that passes while the event loop is late does not count, because the answer may lie unread in the socket.
        """
        network, begun = self.network, 0
        left = timeout = network.config.connect_timeout / SECOND
        while tasks or not begun:
            if left <= 0:
                network.count("unanswered connections")
                break
            due = self.again or (begun < TRIES and left <= timeout * (1 - begun / TRIES))
            if due and self.silent:
                self.again = False
                tasks += [network.loop.create_task(self._tries(reach, begun)) for reach in self.reaches]
                begun += 1
            before = network.loop.time()
            done, _ = await asyncio.wait(tasks, timeout=timeout / PARTS, return_when=asyncio.FIRST_COMPLETED)
            left -= min(network.loop.time() - before, timeout / PARTS)
            for task in done:
                if task.result()[0] is not DialResult.UNKNOWN:
                    tasks.remove(task)
                    return task.result()
            tasks[:] = [task for task in tasks if task not in done]
        return DialResult.UNKNOWN, None

    async def _tries(self, reach: Reach, begun: int) -> Dialed:
        """Dial one contact until the outcome is clear, `begun` tries after the first one."""
        network, ended, pause = self.network, 0, MILLISECOND / SECOND
        try:
            while ended < network.config.probe_tries:
                try:
                    outcome, sock = await self._try(reach, begun)
                except (ConnectionError, asyncio.IncompleteReadError):
                    self.silent = False
                    await asyncio.sleep(ended * MILLISECOND / SECOND)
                    ended += 1
                    continue
                self.silent = False
                if outcome not in PROOFS:
                    return outcome, sock
                if outcome is DialResult.REPLACED and not reach.contact.is_number:
                    outcome = DialResult.DEAD  # the name may lead to another machine now
                if not reach.stands:
                    network.count("refusals at a place that only a hello named")
                    return DialResult.UNKNOWN, None
                if self.peer is None or not network.hears(self.peer):
                    return outcome, None
                network.count("refusals by a peer that is heard")
                await asyncio.sleep(pause)
                pause = min(2 * pause, REFUSED_PAUSE_MAX)
            network.count("connections that ended unanswered")
        except (OSError, UnicodeError):  # UnicodeError: the name of the host is invalid
            network.count("peers that could not be reached")
        except PeerError:
            network.count("connections that a stranger answered")
        return DialResult.UNKNOWN, None

    async def _try(self, reach: Reach, begun: int) -> Dialed:
        """Dial the addresses of one contact, one after another, until one answers.  Only refusals at all of them prove
        the end of the peer.  Each further try begins at another address: one of them may lead nowhere."""
        failure: OSError | asyncio.IncompleteReadError | None = None
        proof = DialResult.DEAD
        addresses = await resolved(reach.contact, self.network.loop)
        first = begun % len(addresses)
        for family, place in addresses[first:] + addresses[:first]:
            try:
                outcome, sock = await self._try_at(family, place)
            except (OSError, asyncio.IncompleteReadError) as error:
                failure = failure or error
            else:
                if outcome not in PROOFS:
                    return outcome, sock
                proof = outcome if outcome is DialResult.REPLACED else proof
        if failure is not None:
            raise failure
        return proof, None

    async def _try_at(self, family: int, place: SocketAddress) -> Dialed:
        loop = self.network.loop
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        greeted = answered = False
        try:
            prepared(sock, self.network.config)
            await loop.sock_connect(sock, place)
            self.silent = False
            if sock.getsockname() == sock.getpeername():  # no process listens there, and the system chose the same port
                return DialResult.DEAD, None
            hello, handshake = self.network.hello(self.peer), self.network.handshake
            await loop.sock_sendall(sock, with_length(hello))
            greeted = True
            body = handshake.answered(await self._answer(sock), place, handshake.about(hello))
            answer = decoded(body, Welcome)
            self.found = answer.listener
            answered = not answer.refusal and answer.listener is not None and self.peer in (None, answer.listener)
        except ConnectionRefusedError:
            return DialResult.DEAD, None
        finally:
            if not answered:
                self._close(sock, greeted=greeted)
        if answered:
            return DialResult.ANSWERED, sock
        if answer.refusal in NOT_WANTED or not answer.refusal:
            return DialResult.REPLACED, None
        self.network.refused(self.peer, answer)
        return DialResult.UNKNOWN, None

    async def _answer(self, sock: socket.socket) -> bytes:
        (length,) = LENGTH.unpack(await self._read(sock, LENGTH.size))
        if length > HELLO_MAX:
            raise PeerError("malformed hello")
        return await self._read(sock, length)

    async def _read(self, sock: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = await self.network.loop.sock_recv(sock, size - len(data))
            if not more:
                raise asyncio.IncompleteReadError(data, size)
            data += more
        return data

    def _close_late(self, task: asyncio.Task[Dialed]) -> None:
        """Close the connection of an answer that came too late."""
        if not task.cancelled() and task.exception() is None and (sock := task.result()[1]) is not None:
            self._close(sock, greeted=True)

    def _close(self, sock: socket.socket, *, greeted: bool) -> None:
        """Close a connection that is not used.  If a dial is over, a closing message after the hello tells the peer
        that this member has not crashed.  Otherwise the peer would dial this member, perhaps as late, and both would
        dial each other without end."""
        if greeted and self.over:
            with suppress(OSError):  # the peer has closed the connection
                sock.send(CLOSING)
        sock.close()
