"""Questions of discovery to an IP multicast address, which all processes of the group listen to.

A question goes to the multicast address; the answers come to the sender of the question alone.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from functools import partial
from typing import Final, Protocol

from pygroups.core.errors import PeerError
from pygroups.core.limits import HELLO_MAX

from ..contacts import Contact
from ..forks import closed_in_children
from ..handshake import Handshake, Unopened
from ..hello import Answering, DiscoveryQuestion, DiscoveryReply, decoded, packed
from ..multicast_membership import MulticastMembership
from ..rate_limited import RateLimitedLog

IP_MULTICAST_ALL: Final = 49  # of Linux: 0 refuses datagrams of groups that only other sockets have joined
READS_AT_ONCE: Final = 64  # in one pass of the loop


class MulticastDiscovery(Protocol):
    """The part of discovery that a multicast address uses."""

    loop: asyncio.AbstractEventLoop
    handshake: Handshake
    warn: RateLimitedLog

    def count(self, what: str) -> None: ...
    def asked(self, question: DiscoveryQuestion, answer: Answering) -> None: ...
    def replied(self, reply: DiscoveryReply) -> None: ...
    def not_opened(self, to_all: Contact, host: str) -> None: ...
    def crashed(self, error: BaseException) -> None: ...


class Multicast:
    """One multicast address.  `host`: the address of the network interface to use, 0.0.0.0 for the system's choice."""

    def __init__(self, to_all: Contact, host: str, discovery: MulticastDiscovery, *, insecure: bool) -> None:
        self.to_all = to_all
        self.host = host
        self.discovery = discovery
        self.insecure = insecure
        self.sockets: list[socket.socket] = []
        self.membership: MulticastMembership | None = None

    def open(self) -> None:
        """Join the address.  Raises OSError."""
        loop, host = self.discovery.loop, self.to_all.host
        self.membership = MulticastMembership(host, self.host, loop, self._renewed)
        self.membership.watch(self._opened(self.membership))

    def _opened(self, membership: MulticastMembership) -> socket.socket:
        """Open both sockets, and join.  Returns the one that listens."""
        try:
            listening = self._socket()
            listening.setsockopt(
                socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
            )  # other processes of this host listen there too
            listening.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)
            listening.bind(tuple(self.to_all))
            asking = self._socket()
            membership.join(listening, asking)
            asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
            asking.bind((self.host, 0))
        except OSError:
            self._close()
            raise
        self.discovery.loop.add_reader(listening, self._readable, listening)
        self.discovery.loop.add_reader(asking, self._readable, asking)
        return listening

    def _renewed(self) -> socket.socket:
        """The network interface was away: open the sockets anew."""
        assert self.membership is not None
        self.discovery.count("multicast addresses that were joined again")
        before, self.sockets = self.sockets, []
        try:
            listening = self._opened(self.membership)
        except OSError:
            self.sockets = before
            raise
        self._end(before)
        return listening

    def _socket(self) -> socket.socket:
        sock = closed_in_children(socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK))
        self.sockets.append(sock)
        return sock

    def close(self) -> None:
        """Leave the address."""
        if self.membership is not None:
            self.membership.close()
        self._close()

    def _close(self) -> None:
        self._end(self.sockets)
        self.sockets = []

    def _end(self, sockets: list[socket.socket]) -> None:
        for sock in sockets:
            self.discovery.loop.remove_reader(sock)
            sock.close()

    def ask(self, question: DiscoveryQuestion) -> None:
        """Send a question to all processes."""
        self._send(self.discovery.handshake.closed(packed(question)), (self.to_all.host, self.to_all.port))

    def answer(self, reply: DiscoveryReply, longest: int, place: tuple[str, int]) -> None:
        """Send an answer to the process at `place`, if it is at most as long as the question."""
        body = self.discovery.handshake.closed(packed(reply))
        if len(body) <= longest:
            self._send(body, place)
        else:
            self.discovery.count("answers of discovery that are longer than the question")

    def _send(self, datagram: bytes, place: tuple[str, int]) -> None:
        if not self.sockets:
            return
        try:
            self.sockets[-1].sendto(datagram, place)
        except OSError as error:  # the question is repeated
            self.discovery.count("datagrams of discovery that could not be sent")
            if not isinstance(error, BlockingIOError):  # else the buffer is full
                text = "a datagram of discovery to %s:%d cannot be sent: %s"
                self.discovery.warn.warning("multicast", text, *place, error.strerror or error)

    def _readable(self, sock: socket.socket) -> None:
        try:
            for _ in range(READS_AT_ONCE):
                self._arrived(*sock.recvfrom(HELLO_MAX))
                if not self.sockets:
                    return
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.discovery.count("datagrams of discovery that could not be read")
        except Exception as error:  # noqa: BLE001 (the driver's outermost loop: any error here is a bug in pygroups)
            self.discovery.crashed(error)

    def _arrived(self, datagram: bytes, place: tuple[str, int]) -> None:
        if not self.insecure and not ipaddress.ip_address(place[0]).is_loopback:
            self.discovery.count("datagrams of discovery from another machine")
            return
        try:
            self._understood(self.discovery.handshake.opened(datagram), len(datagram), place)
        except Unopened:
            self.discovery.not_opened(self.to_all, place[0])
        except PeerError as error:
            self.discovery.count(f"datagrams of discovery dropped: {error.reason}")

    def _understood(self, body: bytes | memoryview, longest: int, place: tuple[str, int]) -> None:
        try:
            question = decoded(body, DiscoveryQuestion)
        except PeerError:
            self.discovery.replied(decoded(body, DiscoveryReply))
        else:
            self.discovery.asked(question, partial(self.answer, longest=longest, place=place))
