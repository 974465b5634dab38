"""The socket options of a member's connections, and the resolution of contacts."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from pygroups.core.limits import MILLISECOND, Config

from .contacts import Contact
from .forks import closed_in_children
from .resolver import RESOLVER


def prepared(sock: socket.socket, config: Config) -> socket.socket:
    """Set the options of `sock`: small frames leave at once, and data that stays unacknowledged ends the connection,
    after twice the time in which a silent member is removed.

    The kernel does not probe silent connections: in a large group most are silent, and heartbeats watch the members.
    """
    closed_in_children(sock)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # not every system has it
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience_ms(config))
    return sock


def patience_ms(config: Config) -> int:
    """The milliseconds after which data that stays unacknowledged ends a connection."""
    return 2 * (config.heartbeat_timeout + config.verify_timeout) // MILLISECOND


SocketAddress = tuple[str, int]
Resolved = tuple[int, SocketAddress]


async def resolved(contact: Contact, loop: asyncio.AbstractEventLoop) -> list[Resolved]:
    """The address families and numeric addresses of `contact`, at least one.  A name is looked up in a thread, and can
    have several addresses, of both versions of IP; a number is its own address."""
    try:
        version = ipaddress.ip_address(contact.host).version
    except ValueError:
        return [(family, (host, contact.port)) for family, host in await RESOLVER.look_up(contact.host, loop)]
    return [(socket.AF_INET if version == 4 else socket.AF_INET6, (contact.host, contact.port))]


def accept_both_versions(sock: socket.socket) -> None:
    """Let an IPv6 socket that is bound to all addresses of the machine take IPv4 too, whatever the system's default."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
