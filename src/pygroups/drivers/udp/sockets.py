"""The sockets of a member that uses UDP: large buffers, a queue for the kernel, and the refusals of hosts."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import select
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from pygroups.core.limits import Config

from ..contacts import Contact
from ..forks import closed_in_children
from ..multicast_membership import MulticastMembership
from ..rate_limited import RateLimitedLog
from ..sockets import SocketAddress, accept_both_versions

DATAGRAM_READ: Final = 1 << 16
READS_AT_ONCE: Final = 256  # in one pass of the loop
IP_RECVERR: Final = 11  # of Linux: the errors of a socket without a connection are queued, with the place they concern
IPV6_RECVERR: Final = 25
SO_SNDBUFFORCE: Final = 32
SO_RCVBUFFORCE: Final = 33
ECONNREFUSED: Final = 111
SOL_UDP: Final = 17
UDP_SEGMENT: Final = 103  # of Linux: the kernel cuts one buffer into datagrams of a given size
UDP_GRO: Final = 104  # of Linux: the kernel hands on datagrams of one size and one sender together
SEGMENTS_MAX: Final = 64  # in one system call: the limit of Linux
SEGMENTS_BYTES: Final = 60_000  # of their datagrams: below the limit of one IP packet
MULTICAST_HOPS: Final = 1
MAPPED: Final = "::ffff:"  # an IPv6 socket names the IPv4 address a.b.c.d as ::ffff:a.b.c.d
_ERROR: Final = struct.Struct("=I")  # the number at the beginning of an extended error
_SEGMENT: Final = struct.Struct("=H")  # the size of a datagram in a buffer to send
_SEGMENTS: Final = struct.Struct("=i")  # the same of a received buffer
_ANCILLARY: Final = socket.CMSG_SPACE(_SEGMENTS.size)


class SocketsNetwork(Protocol):
    """The part of the network that the sockets use."""

    config: Config
    loop: asyncio.AbstractEventLoop
    warn: RateLimitedLog
    count: Callable[..., None]
    crashed: Callable[[BaseException], None]

    def arrived(self, datagram: memoryview, place: SocketAddress) -> None: ...
    def admits(self, place: SocketAddress, count: int) -> bool:
        """Whether to read `count` datagrams from `place`."""

    def refused_at(self, place: SocketAddress) -> None:
        """The host says that no process listens at `place`."""


class Datagrams:
    """One socket for a member's datagrams, and a second one for the multicast address, if there is one."""

    def __init__(self, network: SocketsNetwork) -> None:
        self.network = network
        self.area = memoryview(bytearray(DATAGRAM_READ))
        self.sock: socket.socket | None = None
        self.opened: list[tuple[socket.socket, select.epoll | None]] = []
        self.membership: MulticastMembership | None = None  # of the socket for the multicast address
        self.sends_four = self.sends_six = False  # the versions of IP of the addresses that the socket can send to
        self.joins = sys.platform == "linux"  # the kernel takes several datagrams at once
        self.waiting: deque[tuple[bytes, SocketAddress]] = deque()  # the kernel had no room for these
        self.waiting_bytes = 0

    # -- beginning and end

    def open(self, family: int, place: SocketAddress) -> SocketAddress:
        """Bind to `place`.  Returns the bound address, with the port that the kernel chose.  Raises OSError."""
        sock = self._bound(family, place, shared=False)
        self.sends_six = family == socket.AF_INET6
        if sys.platform == "linux":
            sock.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)  # an IPv6 socket reports IPv4 addresses by this one too
            if self.sends_six:
                sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
        self.sock = sock
        host, port = sock.getsockname()[:2]
        self.sends_four = not self.sends_six or ipaddress.ip_address(host).is_unspecified
        return str(host), int(port)

    def reaches(self, host: str) -> bool:
        """Whether a datagram of this socket can go to the numeric address `host`, by its version of IP."""
        return self.sends_six if ":" in host else self.sends_four

    def listen_to_all(self, to_all: Contact, host: str) -> None:
        """Join the multicast address, on the network interface that has `host`.  Raises OSError if that fails."""
        assert self.sock is not None
        here = "0.0.0.0" if ipaddress.ip_address(host).is_unspecified else host
        renewed = partial(self._listens_again, to_all)
        self.membership = MulticastMembership(to_all.host, here, self.network.loop, renewed)
        self.sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, MULTICAST_HOPS)
        self.membership.watch(self._listening(to_all, self.membership))

    def _listening(self, to_all: Contact, membership: MulticastMembership) -> socket.socket:
        assert self.sock is not None
        sock = self._bound(socket.AF_INET, (to_all.host, to_all.port), shared=True)
        try:
            membership.join(sock, self.sock)
        except OSError:
            self._end(*self.opened.pop())
            raise
        return sock

    def _listens_again(self, to_all: Contact) -> socket.socket:
        """The network interface was away: listen to the multicast address with a new socket."""
        assert self.membership is not None
        self.network.count("multicast addresses that were joined again")
        sock = self._listening(to_all, self.membership)
        self._end(*self.opened.pop(-2))
        return sock

    def _bound(self, family: int, place: SocketAddress, *, shared: bool) -> socket.socket:
        sock = closed_in_children(socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK))
        try:
            if shared:  # other members of this host listen there too
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            accept_both_versions(sock)
            sock.bind(place)
            self._enlarge(sock)
        except OSError:
            sock.close()
            raise
        self._read_from(sock)
        if self.joins:
            with contextlib.suppress(OSError):  # Linux before 5.0 hands on each datagram by itself
                sock.setsockopt(SOL_UDP, UDP_GRO, 1)
        return sock

    def _enlarge(self, sock: socket.socket) -> None:
        """Ask for buffers of `socket_bytes`, and log a warning if the system gives less."""
        wanted = self.network.config.socket_bytes
        for forced, asked in ((SO_RCVBUFFORCE, socket.SO_RCVBUF), (SO_SNDBUFFORCE, socket.SO_SNDBUF)):
            try:
                sock.setsockopt(socket.SOL_SOCKET, forced, wanted)  # beyond the system's limit; needs privileges
            except OSError:
                sock.setsockopt(socket.SOL_SOCKET, asked, wanted)
        receive, send = (  # Linux doubles the number that was asked for
            sock.getsockopt(socket.SOL_SOCKET, asked) // 2 for asked in (socket.SO_RCVBUF, socket.SO_SNDBUF)
        )
        if min(receive, send) < wanted:
            self.network.warn.warning(
                "buffers",
                "the system gives a receive buffer of %d bytes and a send buffer of %d bytes instead of %d bytes, so "
                "bursts of datagrams are lost and sent again: raise net.core.rmem_max and net.core.wmem_max",
                receive,
                send,
                wanted,
            )

    def _read_from(self, sock: socket.socket) -> None:
        """Register a callback of the loop for arrived datagrams and for errors.

        uvloop no longer watches a socket that has an error.  An epoll around the socket never has an error.
        """
        poll = None
        if hasattr(select, "epoll"):
            poll = select.epoll()
            poll.register(sock, select.EPOLLIN)
        self.opened.append((sock, poll))
        self.network.loop.add_reader(poll or sock, self._readable, sock)

    def close(self) -> None:
        """Close the sockets, and drop the queued datagrams."""
        if self.waiting and self.sock is not None:
            self.network.loop.remove_writer(self.sock)
        if self.membership is not None:
            self.membership.close()
        for sock, poll in self.opened:
            self._end(sock, poll)
        self.sock, self.opened = None, []
        self.waiting.clear()
        self.waiting_bytes = 0

    def _end(self, sock: socket.socket, poll: select.epoll | None) -> None:
        self.network.loop.remove_reader(poll or sock)
        if poll is not None:
            poll.close()
        sock.close()

    # -- sending

    def give(self, datagrams: Sequence[bytes], place: SocketAddress) -> None:
        """Give datagrams to the kernel.  Those that it does not accept now are queued, up to `link_bytes` for all
        peers."""
        sock = self.sock
        if sock is None:
            return
        if self.sends_six and ":" not in place[0]:
            place = MAPPED + place[0], place[1]
        sent = 0
        if len(datagrams) > 1 and self.joins and not self.waiting:
            sent = self._sent_together(sock, datagrams, place)
        for datagram in datagrams[sent:]:
            if self.waiting:
                self._wait(datagram, place)
            elif not self._sent(sock, datagram, place):
                self.network.loop.add_writer(sock, self._writable)
                self._wait(datagram, place)

    def _sent_together(self, sock: socket.socket, datagrams: Sequence[bytes], place: SocketAddress) -> int:
        """Give the kernel the parts of each frame with as few calls as possible.  Returns how many datagrams the kernel
        took; the others go one by one."""
        sent = 0
        while sent < len(datagrams):
            count = together(datagrams, sent)
            try:
                segment = [(SOL_UDP, UDP_SEGMENT, _SEGMENT.pack(len(datagrams[sent])))]
                sock.sendmsg(datagrams[sent : sent + count], segment, 0, place)
            except (BlockingIOError, InterruptedError, ConnectionRefusedError):
                break
            except OSError:
                self.joins = False  # an older kernel, or a network device that cannot do it
                break
            sent += count
        return sent

    def _wait(self, datagram: bytes, place: SocketAddress) -> None:
        if self.waiting_bytes + len(datagram) > self.network.config.link_bytes:
            self.network.count("datagrams dropped: the queue for the network is full")
            return
        self.waiting.append((datagram, place))
        self.waiting_bytes += len(datagram)

    def _sent(self, sock: socket.socket, datagram: bytes, place: SocketAddress) -> bool:
        """Whether the datagram needs no further try: the kernel accepted it, or refuses it.  The reports about earlier
        datagrams are read before the second try."""
        for _ in range(2):
            try:
                sock.sendto(datagram, place)
            except (BlockingIOError, InterruptedError):
                return False
            except ConnectionRefusedError:
                self._read_errors(sock)
                continue
            except OSError:
                self.network.count("datagrams that could not be sent")
            return True
        self.network.count("datagrams that could not be sent")
        return True

    def _writable(self) -> None:
        sock = self.sock
        if sock is None:
            return
        while self.waiting:
            datagram, place = self.waiting[0]
            if not self._sent(sock, datagram, place):
                return
            self.waiting.popleft()
            self.waiting_bytes -= len(datagram)
        self.network.loop.remove_writer(sock)

    # -- receiving

    def _readable(self, sock: socket.socket) -> None:
        try:
            self._read(sock)
        except Exception as error:  # noqa: BLE001 (the driver's outermost loop: any error here is a bug in pygroups)
            self.network.crashed(error)

    def _read(self, sock: socket.socket) -> None:
        """Read datagrams before errors, because a datagram that a peer sent before its end is a sign of life."""
        area = self.area
        for _ in range(READS_AT_ONCE):
            if self.sock is None:
                return
            try:
                size, ancillary, _, place = sock.recvmsg_into([area], _ANCILLARY)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                self._read_errors(sock)
                continue
            sender = _unmapped(place) if self.sends_six else place
            one = _SEGMENTS.unpack(ancillary[0][2])[0] if ancillary else size  # the size of each datagram but the last
            if not self.network.admits(sender, -(-size // one) if ancillary else 1):
                continue
            for begin in range(0, size, one) if size else (0,):
                self.network.arrived(area[begin : min(begin + one, size)], sender)
        self._read_errors(sock)

    def _read_errors(self, sock: socket.socket) -> None:
        """Read the reports of hosts and routers about datagrams that this member sent."""
        with contextlib.suppress(BlockingIOError, InterruptedError):
            while self.sock is not None:
                _, extended, _, place = sock.recvmsg(0, 512, socket.MSG_ERRQUEUE)
                if extended and _ERROR.unpack_from(extended[0][2])[0] == ECONNREFUSED:
                    self.network.refused_at(_unmapped(place))
                else:
                    self.network.count("datagrams that the network refused")


def together(datagrams: Sequence[bytes], begin: int) -> int:
    """How many of `datagrams` from `begin` on the kernel can cut out of one buffer: all have one size, but the last one
    may be smaller."""
    size = len(datagrams[begin])
    most = max(1, min(SEGMENTS_MAX, SEGMENTS_BYTES // size, len(datagrams) - begin))
    for count in range(1, most):
        other = len(datagrams[begin + count])
        if other != size:
            return count + (other < size)
    return most


def _unmapped(place: tuple[Any, ...]) -> SocketAddress:
    """The host and port of a sender.  An IPv4 address that an IPv6 socket reports in the form of IPv6 is turned back
    into the form of IPv4."""
    host, port = place[:2]
    if host.startswith(MAPPED) and "." in host:
        host = host.removeprefix(MAPPED)
    return host, port
