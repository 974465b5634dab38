"""Contacts: the address that a process listens on, written `host:port`, and the checks of `bind` and `advertise`."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from typing import Final, NamedTuple

from pygroups.core.address import Address
from pygroups.core.errors import UsageError
from pygroups.core.limits import TEXT_MAX

from .resolver import RESOLVER

CHOSEN: Final = logging.getLogger("pygroups.drivers.chosen_address")
FAR: Final = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))  # addresses for documentation (RFC 5737)


class Contact(NamedTuple):
    """A host, by name or number, and a TCP port; port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only processes of this machine can reach the contact."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def is_number(self) -> bool:
        """Whether the host is a number, and no name that a lookup turns into one."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True

    @property
    def everywhere(self) -> bool:
        """Whether the host means all addresses of this machine (0.0.0.0), which no peer can dial."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False


def parse_contact(text: str, what: str = "contact") -> Contact:
    """The contact written as `host:port` or `[host]:port`.  Raises UsageError for other text; the message of the error
    contains `what`."""
    host, colon, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    known = colon and host and len(text) <= TEXT_MAX and port.isascii() and port.isdigit() and int(port) <= 65_535
    if not known or not host.isprintable() or " " in host:
        raise UsageError(
            f"{what} {text!r} is not an address to listen on: write it as host:port, for instance 127.0.0.1:0"
        )
    return Contact(host, int(port))


def checked_place(text: str, *, insecure: bool) -> Contact:
    """The contact of another process, from the application.  Raises UsageError for other text, and for a place on
    another machine without `insecure`."""
    try:
        contact = parse_contact(text, "to")
    except UsageError:
        raise UsageError(f"to {text!r} does not name a process: write host:port, for instance 127.0.0.1:7000") from None
    if not contact.loopback and not insecure:
        raise UsageError(
            f"to {text!r} is on another machine, and without secret= no encryption or authentication protects the "
            "messages: give secret=, or insecure=True, or use 127.0.0.1"
        )
    if not contact.port or contact.everywhere:
        raise UsageError(f"to {text!r} is not an address that this process can reach: name a host and its port")
    return contact


def checked_bind(text: str, *, insecure: bool) -> Contact:
    """The contact to listen on.  Raises UsageError if other machines could reach it."""
    contact = parse_contact(text, "bind")
    _refuse_scope(contact, f"bind {text!r}")
    if not contact.loopback and not contact.is_number and not insecure:
        raise UsageError(
            f"bind {text!r} is a name that may lead to an address for other machines, and without secret= no "
            "encryption or authentication protects the group: give secret=, or insecure=True, or bind to 127.0.0.1 or "
            "localhost"
        )
    if not contact.loopback and not insecure:
        raise UsageError(
            f"bind {text!r} can be reached from other machines, and without secret= no encryption or authentication "
            "protects the group: give secret=, or insecure=True, or bind to 127.0.0.1"
        )
    return contact


def _refuse_scope(contact: Contact, what: str) -> None:
    if "%" in contact.host:
        raise UsageError(
            f"{what} names a network interface of this machine ({contact.host.partition('%')[2]!r}), which other "
            "machines do not know: give an address without %, for instance a global or a unique local one"
        )


def checked_advertise(text: str) -> Contact:
    """The contact for the other members to dial.  Raises UsageError for an address that they cannot dial."""
    contact = parse_contact(text, "advertise")
    _refuse_scope(contact, f"advertise {text!r}")
    if contact.everywhere:
        raise UsageError(f"advertise {text!r} is not an address that other members can dial: name this machine")
    return contact


async def advertised(bound: Contact, advertise: str | None, loop: asyncio.AbstractEventLoop) -> Contact:
    """The contact for the other members to dial, of a process that listens on `bound`.  Port 0 in `advertise` means the
    port that the system chose.

    A process that listens on all addresses of its machine and has no `advertise` announces the address from which the
    machine sends to other networks.  Raises UsageError if there is none.
    """
    if advertise is None:
        return bound._replace(host=await own_address(bound, loop)) if bound.everywhere else bound
    contact = checked_advertise(advertise)
    return contact._replace(port=contact.port or bound.port)


async def announced(
    me: Address, bind: Contact, bound: Contact, advertise: str | None, loop: asyncio.AbstractEventLoop
) -> str:
    """The contact that the process `me` announces to the other members.  If pygroups chose the host, the log names it.
    Raises UsageError as `advertised` does."""
    contact = await advertised(bound, advertise, loop)
    if bind.everywhere and advertise is None:
        CHOSEN.info(
            "%s listens on all addresses of this machine (%s), and announces %s as the address for the other members; "
            "advertise= names another address",
            me,
            bind,
            contact,
        )
    return str(contact)


async def own_address(bound: Contact, loop: asyncio.AbstractEventLoop) -> str:
    """The address from which this machine sends to other networks.  No packet leaves: the kernel only picks a route.

    A process that listens on `::` also accepts IPv4, so an IPv4 address is enough if the machine has no other address.
    A machine without a route to other networks has the address of its name.
    """
    six = ":" in bound.host
    for far, family in sorted(FAR, key=lambda one: (one[1] == socket.AF_INET6) != six):
        if (family == socket.AF_INET or six) and (host := _routed(far, family)):
            return host
    try:
        found = await RESOLVER.look_up(socket.gethostname(), loop, socket.AF_UNSPEC if six else socket.AF_INET)
    except (OSError, UnicodeError):
        found = []
    for version, host in found:
        if not ipaddress.ip_address(host.partition("%")[0]).is_loopback and _is_here(host, version):
            return host
    raise UsageError(
        f"bind '{bound}' is every address of this machine, and none of them leads to other machines: "
        "give advertise='host:port', the address that other members connect to"
    )


def _routed(far: str, family: int) -> str:
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect((far, 9))
        except OSError:
            return ""
        return str(sock.getsockname()[0])


def _is_here(host: str, family: int) -> bool:
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind((host, 0))
        except OSError:
            return False
        return True
