"""One question of discovery over TCP: dial, ask, read the answer, close."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Final

from pygroups.core.errors import PeerError
from pygroups.core.limits import HELLO_MAX, SECOND, Config

from ..contacts import Contact
from ..forks import closed_in_children
from ..handshake import Handshake
from ..hello import LENGTH, DiscoveryQuestion, DiscoveryReply, decoded, packed, with_length
from ..sockets import SocketAddress, resolved

NO_SUCH_NAME: Final = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


class Silence(Exception):
    """No answer came.  A process may be there."""


async def asked_over_tcp(
    contact: Contact,
    question: DiscoveryQuestion,
    config: Config,
    loop: asyncio.AbstractEventLoop,
    handshake: Handshake,
    *,
    insecure: bool,
) -> DiscoveryReply | None:
    """The answer of the process that listens at `contact`; None if none listens there.  Raises Silence."""
    try:
        async with asyncio.timeout(config.connect_timeout / SECOND):
            return await _asked(contact, question, loop, handshake, insecure=insecure)
    except socket.gaierror as error:
        if error.errno in NO_SUCH_NAME:
            return None
        raise Silence(f"{contact.host} could not be looked up: {error.strerror}") from error
    except (OSError, asyncio.IncompleteReadError, UnicodeError, PeerError) as error:  # a timeout is an OSError
        raise Silence(str(error) or type(error).__name__) from error


async def _asked(
    contact: Contact,
    question: DiscoveryQuestion,
    loop: asyncio.AbstractEventLoop,
    handshake: Handshake,
    *,
    insecure: bool,
) -> DiscoveryReply | None:
    """Ask at the addresses of the contact, one after another: None if no process listens at any of them."""
    failure: Exception | None = None
    for family, place in await resolved(contact, loop):
        try:
            return await _asked_at(family, place, question, loop, handshake, insecure=insecure)
        except ConnectionRefusedError:
            continue
        except (OSError, asyncio.IncompleteReadError, PeerError) as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return None


async def _asked_at(
    family: int,
    place: SocketAddress,
    question: DiscoveryQuestion,
    loop: asyncio.AbstractEventLoop,
    handshake: Handshake,
    *,
    insecure: bool,
) -> DiscoveryReply:
    if not insecure and not ipaddress.ip_address(place[0]).is_loopback:
        raise PeerError("an address of another machine")
    sock = closed_in_children(socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
    try:
        await loop.sock_connect(sock, place)
        if sock.getsockname() == sock.getpeername():  # no process listens there, and the system chose the same port
            raise ConnectionRefusedError
        await loop.sock_sendall(sock, with_length(handshake.closed(packed(question))))
        (length,) = LENGTH.unpack(await _read(sock, LENGTH.size, loop))
        if length > HELLO_MAX:
            raise PeerError("malformed answer")
        body = handshake.answered(await _read(sock, length, loop), place)
        return decoded(body, DiscoveryReply)
    finally:
        sock.close()


async def _read(sock: socket.socket, size: int, loop: asyncio.AbstractEventLoop) -> bytes:
    data = b""
    while len(data) < size:
        more = await loop.sock_recv(sock, size - len(data))
        if not more:
            raise asyncio.IncompleteReadError(data, size)
        data += more
    return data
