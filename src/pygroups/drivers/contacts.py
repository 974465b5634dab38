"""Contacts: the address that a process listens on, written `host:port`, and the checks of `bind` and `advertise`."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from pygroups.core.errors import UsageError
from pygroups.core.limits import TEXT_MAX


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
    def everywhere(self) -> bool:
        """Whether the host means all addresses of this machine (0.0.0.0), which no peer can dial."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False


def parse_contact(text: str, what: str = "contact") -> Contact:
    """The contact written as `host:port` or `[host]:port`.  Raises UsageError for other text; its message has
    `what`."""
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


def checked_bind(text: str, advertise: str | None, *, insecure: bool) -> Contact:
    """The contact to listen on.  Raises UsageError if other machines could reach it, or if no peer could dial it."""
    contact = parse_contact(text, "bind")
    if not contact.loopback and not insecure:
        raise UsageError(
            f"bind {text!r} can be reached from other machines, and no encryption or authentication protects the group "
            "yet: bind to 127.0.0.1, or give insecure=True"
        )
    if contact.everywhere and advertise is None:
        raise UsageError(f"bind {text!r} is not an address that other members can dial: give advertise='host:port' too")
    return contact


def advertised(bound: Contact, advertise: str | None) -> Contact:
    """The contact for the other members to dial.  Port 0 in `advertise` means the port that the system chose."""
    if advertise is None:
        return bound
    told = parse_contact(advertise, "advertise")
    if told.everywhere:
        raise UsageError(f"advertise {advertise!r} is not an address that other members can dial: name this machine")
    return told._replace(port=told.port or bound.port)
