"""What a session gets from its surroundings: a name, randomness, clocks, a network, discovery, a journal.

An event loop may carry a platform of its own, as the loop of pygroups.testing does.  All sessions on that loop use it.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from pygroups._version import __version__
from pygroups.core.address import INCARNATION_DIGITS, Address
from pygroups.core.errors import UsageError
from pygroups.core.events import Event
from pygroups.core.layer import Random
from pygroups.drivers.directory import Directory
from pygroups.drivers.member import CLOCK, Clock, Discovery, Journal, Loop, Network
from pygroups.drivers.tcp import TcpNetwork
from pygroups.drivers.udp import UdpNetwork
from pygroups.journal.writer import JournalError, JournalWriter

from .options import Options, boot_id, default_name

SessionType = TypeVar("SessionType", contravariant=True)
PLATFORM: Final = "pygroups_platform"  # the attribute of an event loop that carries a platform


class Connections(Network, Protocol):
    """A member's network, with its beginning and its end; see drivers/tcp.py."""

    contact: str
    receive: Callable[[memoryview], None]
    happened: Callable[[Event], None]
    count: Callable[..., None]
    crashed: Callable[[BaseException], None]

    async def open(self) -> None: ...
    async def drain(self, seconds: float) -> None: ...
    def waiting_bytes(self) -> int: ...


class Meeting(Discovery, Protocol):
    """Where members find each other, with its beginning; see drivers/directory.py."""

    happened: Callable[[Event], None]
    count: Callable[[str], None]

    def open(self, contact: str) -> None: ...


class Platform(Protocol[SessionType]):
    """What a session needs of where it runs."""

    clock: Clock

    def address(self, options: Options) -> Address:
        """The address of a new life; its name is the option, or one that nobody else has."""

    def chance(self, me: Address) -> Random: ...
    def loop(self) -> Loop:
        """Where a member's turns and timers run."""

    def network(self, me: Address, options: Options) -> Connections: ...
    def meeting(self, me: Address, options: Options) -> Meeting: ...
    def journal(self, me: Address, options: Options) -> Journal | None:
        """The journal of this life, if there is to be one; UsageError when it cannot be had."""

    def ready(self, session: SessionType) -> None:
        """The session is put together, and has not joined."""


class LocalPlatform:
    """The real platform: TCP or UDP, a folder for discovery, the kernel's randomness and clocks."""

    clock: Clock = CLOCK

    def address(self, options: Options) -> Address:
        return Address(options.name or default_name(), secrets.token_hex(INCARNATION_DIGITS // 2))

    def chance(self, me: Address) -> Random:
        return random.Random(secrets.randbits(64))

    def loop(self) -> Loop:
        return asyncio.get_running_loop()

    def network(self, me: Address, options: Options) -> Connections:
        bind, advertise, insecure = options.bind, options.advertise, options.insecure
        if options.transport.kind == "tcp":
            return TcpNetwork(me, options.group, options.config, bind=bind, advertise=advertise, insecure=insecure)
        to_all = options.transport.to_all
        return UdpNetwork(
            me, options.group, options.config, bind=bind, advertise=advertise, insecure=insecure, to_all=to_all
        )

    def meeting(self, me: Address, options: Options) -> Meeting:
        loop, transport = asyncio.get_running_loop(), options.transport.kind
        return Directory(options.place, options.group, me, options.config, loop, transport)

    def journal(self, me: Address, options: Options) -> Journal | None:
        return journal_on_disk(me, options, socket.gethostname(), boot_id())

    def ready(self, session: object) -> None:
        """There is nothing to add."""


LOCAL: Final = LocalPlatform()


def platform_of_the_loop() -> Platform[Any]:
    """The platform of the running event loop."""
    found: Platform[Any] = getattr(asyncio.get_running_loop(), PLATFORM, LOCAL)
    return found


def journal_on_disk(me: Address, options: Options, host: str, boot: str) -> JournalWriter | None:
    """The journal in the folder that the options name, if they do."""
    if options.journal is None:
        return None
    try:
        return JournalWriter(
            options.journal,
            options.group,
            me.name,
            me.incarnation,
            options.profile.name,
            host=host,
            boot_id=boot,
            version=__version__,
            fsync=options.journal_fsync,
        )
    except JournalError as error:
        raise UsageError(f"{error}; give journal= a folder that this process may write to") from error
