"""The option `discovery`: the sources by which members find each other.  A source is a folder, a list of addresses, a
DNS name, an IP multicast address, or a folder that remembers addresses."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pygroups.core.errors import UsageError

from ..contacts import Contact, parse_contact

# The environment has no influence: processes of one user must find each other even if their environments differ.
# Other users may write to /tmp too, so the folder below it is used only if it is a real folder of this user alone.
MEETING_ROOT: Final = Path("/tmp")
LISTED_MAX: Final = 256  # addresses and names together
KINDS: Final = (
    "dir:/path/to/folder, host:port,host:port, dns:name:port, udp:239.1.2.3:7001, or cache:/path/to/folder beside one "
    "of these"
)


class GroupsFolder(NamedTuple):
    """A folder with one folder for each group."""

    root: Path
    private: bool  # only this user may have access; not required of a folder that the user chose


class DiscoverySources(NamedTuple):
    """All sources by which one process finds others."""

    folder: GroupsFolder | None = None
    listed: tuple[Contact, ...] = ()  # processes may listen there
    names: tuple[Contact, ...] = ()  # DNS names: processes may listen at each of their addresses
    to_all: tuple[Contact, ...] = ()  # multicast addresses
    cache: Path | None = None  # the folder that remembers the contacts of members

    @property
    def asks(self) -> bool:
        """Whether the process asks others over the network."""
        return bool(self.listed or self.names or self.to_all or self.cache)


def default_folder() -> GroupsFolder:
    """The folder of this user on this machine, which does not depend on the environment."""
    return GroupsFolder(MEETING_ROOT / f"pygroups-{os.geteuid()}", private=True)


def parse_discovery(given: str | Sequence[str] | None, *, insecure: bool = True) -> DiscoverySources:
    """The sources that `discovery` names, in one text or several.  Raises UsageError for invalid text, and without
    `insecure` for addresses of other machines."""
    if given is None:
        return DiscoverySources(folder=default_folder())
    sources = DiscoverySources()
    for text in [given] if isinstance(given, str) else given:
        sources = _with(sources, text)
    if sources == DiscoverySources():
        raise UsageError(f"discovery {given!r} names no source of members: write {KINDS}")
    if sources.cache is not None and sources == DiscoverySources(cache=sources.cache):
        raise UsageError(
            "discovery 'cache:' alone finds no process before the first group: give another source beside it, for "
            "instance discovery=['cache:/path', 'udp:239.1.2.3:7001']"
        )
    if len(sources.listed) + len(sources.names) + len(sources.to_all) > LISTED_MAX:
        raise UsageError(f"discovery names more than {LISTED_MAX} addresses: use dns:name:port for so many")
    if not insecure:
        _refuse_other_machines(sources)
    return sources


def _with(sources: DiscoverySources, text: object) -> DiscoverySources:
    if not isinstance(text, str):
        raise UsageError(f"discovery {text!r} is not text: write {KINDS}")
    kind, colon, rest = text.partition(":")
    if colon and kind in ("dir", "cache"):
        return _with_folder(sources, kind, rest)
    if colon and kind == "dns":
        return sources._replace(names=(*sources.names, _contact(rest, text, "dns:name:port")))
    if colon and kind == "udp":
        contact = _contact(rest, text, "udp:239.1.2.3:7001")
        if not is_multicast(contact.host):
            raise UsageError(f"discovery {text!r} has no IPv4 multicast address: write udp:239.1.2.3:7001")
        return sources._replace(to_all=(*sources.to_all, contact))
    listed = [_contact(one.strip(), text, KINDS) for one in text.split(",")]
    return sources._replace(listed=tuple(dict.fromkeys([*sources.listed, *listed])))


def _with_folder(sources: DiscoverySources, kind: str, path: str) -> DiscoverySources:
    if not path:
        raise UsageError(f"discovery {kind + ':'!r} names no folder: write {kind}:/path/to/folder")
    if (sources.folder if kind == "dir" else sources.cache) is not None:
        raise UsageError(f"discovery names two folders with {kind}: leave one out")
    folder = absolute(path, f"discovery '{kind}:{path}'")
    if kind == "dir":
        return sources._replace(folder=GroupsFolder(folder, private=False))
    return sources._replace(cache=folder)


def absolute(path: str | os.PathLike[str], what: str) -> Path:
    """The path as an absolute one, so that a later change of the current folder has no effect.  Raises UsageError if
    the path is relative to a folder that is gone; the message contains `what`."""
    try:
        return Path(path).absolute()
    except FileNotFoundError:
        raise UsageError(f"{what} is relative, and the current folder is gone: give an absolute path") from None


def _contact(text: str, whole: str, form: str) -> Contact:
    try:
        contact = parse_contact(text)
    except UsageError:
        contact = None
    if contact is None or not contact.port or contact.everywhere:
        raise UsageError(f"discovery {whole!r} names no address that a process can listen on: write {form}")
    return contact


def _refuse_other_machines(sources: DiscoverySources) -> None:
    for contact in sources.listed:
        if not contact.loopback and contact.is_number:
            raise UsageError(
                f"discovery names {contact}, an address of another machine, and without secret= no encryption or "
                "authentication protects the group: give bind= an address that other machines can reach, and secret= "
                "or insecure=True"
            )


def is_multicast(host: str) -> bool:
    """Whether `host` is an IPv4 multicast address."""
    try:
        return ipaddress.IPv4Address(host).is_multicast
    except ValueError:
        return False
