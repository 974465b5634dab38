"""The socket options of a member's connections, and the resolution of contacts."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Final

from pygroups.core.limits import MILLISECOND, SECOND, Config

from .contacts import Contact
from .forks import closed_in_children

KEEPALIVE_PROBES: Final = 3


def prepared(sock: socket.socket, config: Config) -> socket.socket:
    """Set the options of `sock`: small frames leave at once, and the loss of a peer's machine or network is noticed.

    Data that stays unacknowledged ends the connection, after twice the time in which a silent member is removed.
    """
    closed_in_children(sock)
    patience = 2 * (config.heartbeat_timeout + config.verify_timeout)
    probing = max(1, patience // (KEEPALIVE_PROBES + 1) // SECOND)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {
        "TCP_KEEPIDLE": probing,
        "TCP_KEEPINTVL": probing,
        "TCP_KEEPCNT": KEEPALIVE_PROBES,
        "TCP_USER_TIMEOUT": patience // MILLISECOND,
    }
    for option, value in wanted.items():
        if hasattr(socket, option):  # not every system has all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return sock


async def resolved(contact: Contact, loop: asyncio.AbstractEventLoop) -> tuple[int, tuple[str, int]]:
    """The address family and numeric address of `contact`.  A name is looked up in a thread, a number is not."""
    try:
        version = ipaddress.ip_address(contact.host).version
    except ValueError:
        (family, _, _, _, place), *_ = await loop.getaddrinfo(*contact, type=socket.SOCK_STREAM)
        return family, (str(place[0]), int(place[1]))
    return (socket.AF_INET if version == 4 else socket.AF_INET6), (contact.host, contact.port)
