"""What a session has of the machine it runs on: a name, chance, clocks, a network, other members, a journal.

An event loop may bring another machine, as the one of pygroups.testing does: what runs on it has no other.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from pygroups._version import __version__
from pygroups.core.address import INCARNATION_DIGITS, Address
from pygroups.core.errors import UsageError
from pygroups.core.events import Event
from pygroups.core.layer import Random
from pygroups.drivers.directory import Directory
from pygroups.drivers.member import CLOCK, Clock, Discovery, Journal, Loop, Network
from pygroups.drivers.tcp import TcpNetwork
from pygroups.journal.writer import JournalError, JournalWriter

from .options import Options, boot_id, default_name

if TYPE_CHECKING:
    from .session import Session

MACHINE: Final = "pygroups_machine"  # the attribute of an event loop that brings its own


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


class Machine(Protocol):
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

    def ready(self, session: Session) -> None:
        """The session is put together, and has not joined."""


class ThisMachine:
    """The real one: TCP, a folder, the kernel's chance and clocks."""

    clock: Clock = CLOCK

    def address(self, options: Options) -> Address:
        return Address(options.name or default_name(), secrets.token_hex(INCARNATION_DIGITS // 2))

    def chance(self, me: Address) -> Random:
        return random.Random(secrets.randbits(64))

    def loop(self) -> Loop:
        return asyncio.get_running_loop()

    def network(self, me: Address, options: Options) -> Connections:
        bind, advertise = options.bind, options.advertise
        return TcpNetwork(me, options.group, options.config, bind=bind, advertise=advertise, insecure=options.insecure)

    def meeting(self, me: Address, options: Options) -> Meeting:
        return Directory(options.place, options.group, me, options.config, asyncio.get_running_loop())

    def journal(self, me: Address, options: Options) -> Journal | None:
        return journal_on_disk(me, options, socket.gethostname(), boot_id())

    def ready(self, session: Session) -> None:
        """There is nothing to add."""


THIS_MACHINE: Final = ThisMachine()


def machine() -> Machine:
    """The machine of the running event loop."""
    found: Machine = getattr(asyncio.get_running_loop(), MACHINE, THIS_MACHINE)
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
