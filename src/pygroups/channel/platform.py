"""The platform of a session: it provides names, random numbers, clocks, the network, discovery and the journal.

An event loop can have a platform of its own, as the loop of pygroups.testing does.  All sessions on that loop use it.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from pygroups._version import __version__
from pygroups.core.address import INCARNATION_DIGITS, Address
from pygroups.core.errors import UsageError
from pygroups.core.events import Event
from pygroups.core.layer import Random
from pygroups.drivers.contacts import Contact
from pygroups.drivers.discovery.directory import Directory
from pygroups.drivers.discovery.no_discovery import NoDiscovery
from pygroups.drivers.handshake import Handshake
from pygroups.drivers.member import CLOCK, Clock, DriverDiscovery, DriverNetwork, Journal, Loop
from pygroups.drivers.tcp.tcp import TcpNetwork
from pygroups.journal.errors import JournalError

from .options import Options, boot_id, default_name

if TYPE_CHECKING:
    from pygroups.drivers.former_life import Former
    from pygroups.drivers.local_socket import LocalSocket
    from pygroups.drivers.taken_name import TakenName
    from pygroups.drivers.udp.udp import UdpNetwork
    from pygroups.journal.writer import JournalWriter

SessionType = TypeVar("SessionType", contravariant=True)
Ask = Callable[[Event], None]  # sends an event down the stack of a member
Members = Callable[[], Sequence[Address]]  # of the view
PLATFORM: Final = "pygroups_platform"  # the attribute of an event loop that has a platform


class Connections(DriverNetwork, Protocol):
    """A member's network, with the functions that open and drain it; see drivers/tcp/tcp.py."""

    bind: Contact
    contact: str
    lossless: bool  # the network reports every loss of frames
    receive: Callable[[memoryview], bool]
    happened: Callable[[Event], None]
    count: Callable[..., None]
    crashed: Callable[[BaseException], None]

    async def open(self) -> None: ...
    async def meet(self, place: str) -> Address:
        """The process without a group that listens at `place`.  Raises NotSent if none answers."""

    def knows(self, peer: Address) -> bool:
        """Whether some contact of `peer` is known."""

    async def drain(self, seconds: float) -> None: ...
    def waiting_bytes(self) -> int: ...


class SessionDiscovery(DriverDiscovery, Protocol):
    """The place where members find each other, with the function that opens it; see drivers/discovery/directory.py."""

    happened: Callable[[Event], None]
    count: Callable[[str], None]

    @property
    def asks(self) -> bool:
        """Whether the process asks others over the network."""

    def open(self, contact: str) -> None: ...


class Platform(Protocol[SessionType]):
    """The parts of the outside world that a session uses."""

    clock: Clock

    def name(self, options: Options) -> TakenName | None:
        """The name of a crashed process, or a new one, for a channel that takes it from the folder of its journal."""

    def address(self, options: Options) -> Address:
        """The address of a new member.  The name in the address is the option, or a unique name."""

    def chance(self, me: Address) -> Random: ...
    def lags(self, me: Address) -> Callable[[], bool]:
        """Whether the task that reads the events lets the loop run first, although its time is not over."""

    def loop(self) -> Loop:
        """The loop for the member's turns and timers."""

    def network(self, me: Address, options: Options) -> Connections: ...
    def discovery(self, me: Address, options: Options, network: Connections) -> SessionDiscovery: ...
    def journal(self, me: Address, options: Options) -> Journal | None:
        """The journal of the member, or None without the option.  Raises UsageError if it cannot be opened."""

    def former(self, me: Address, options: Options) -> Former | None:
        """The former incarnation of this process, as the folder of the journal shows it, where a majority decides."""

    def local(self, me: Address, options: Options, ask: Ask, members: Members) -> LocalSocket | None:
        """The socket for commands on this machine, for a member whose layers take an operator's word; or None."""

    def ready(self, session: SessionType) -> None:
        """Called when the session is complete, before the join."""


class LocalPlatform:
    """The real platform: TCP or UDP, a folder for discovery, the kernel's random numbers and clocks.

    A part that a channel over TCP with a folder does not need is imported when a channel needs it."""

    clock: Clock = CLOCK

    def name(self, options: Options) -> TakenName | None:
        if not options.takes_name:
            return None
        from pygroups.drivers.taken_name import take_name

        assert options.folder is not None
        try:
            return take_name(options.folder / options.journal_name, default_name)
        except OSError as error:
            raise UsageError(
                f"no name can be taken in the folder of the journal: {error}; give journal= a folder that this process "
                "may write to"
            ) from error

    def address(self, options: Options) -> Address:
        return Address(options.name or default_name(), secrets.token_hex(INCARNATION_DIGITS // 2))

    def chance(self, me: Address) -> Random:
        return random.Random(secrets.randbits(64))

    def lags(self, me: Address) -> Callable[[], bool]:
        return lambda: False

    def loop(self) -> Loop:
        return asyncio.get_running_loop()

    def network(self, me: Address, options: Options) -> Connections:
        common: dict[str, Any] = {
            "bind": options.bind,
            "advertise": options.advertise,
            "insecure": options.leaves_machine,
            "handshake": Handshake(me, options.keys),
        }
        if options.carrier.kind == "tcp":
            return TcpNetwork(me, options.greeting, options.limits, **common)
        from pygroups.drivers.udp.udp import UdpNetwork

        return UdpNetwork(me, options.greeting, options.limits, **common, to_all=options.carrier.to_all)

    def discovery(self, me: Address, options: Options, network: Connections) -> SessionDiscovery:
        if options.group is None:
            return NoDiscovery()
        network = cast("TcpNetwork | UdpNetwork", network)
        loop, transport, sources = asyncio.get_running_loop(), options.carrier.kind, options.sources
        if sources.folder is not None and not sources.asks:
            return Directory(
                sources.folder,
                options.journal_name,
                me,
                options.limits,
                loop,
                transport,
                network.unreachable,
                network.handshake,
            )
        from pygroups.drivers.discovery.network import NetworkDiscovery

        return NetworkDiscovery(
            sources,
            options.journal_name,
            me,
            options.limits,
            loop,
            network,
            transport=transport,
            insecure=options.leaves_machine,
        )

    def journal(self, me: Address, options: Options) -> Journal | None:
        return journal_on_disk(me, options, socket.gethostname(), boot_id())

    def former(self, me: Address, options: Options) -> Former | None:
        return former_on_disk(me, options, socket.gethostname(), boot_id())

    def local(self, me: Address, options: Options, ask: Ask, members: Members) -> LocalSocket:
        from pygroups.drivers.local_socket import LocalSocket

        return LocalSocket(options.journal_name, me, ask, members)

    def ready(self, session: object) -> None:
        """Do nothing."""


LOCAL: Final = LocalPlatform()


def platform_of_the_loop() -> Platform[Any]:
    """The platform of the running event loop."""
    found: Platform[Any] = getattr(asyncio.get_running_loop(), PLATFORM, LOCAL)
    return found


def journal_on_disk(me: Address, options: Options, host: str, boot: str) -> JournalWriter | None:
    """The journal in the folder that the options name, or None."""
    if options.folder is None:
        return None
    try:
        return _journal_of(me, options.folder, options, host, boot)
    except JournalError as error:
        raise UsageError(f"{error}; give journal= a folder that this process may write to") from error


def former_on_disk(me: Address, options: Options, host: str, boot: str) -> Former | None:
    """The former incarnation in the folder that the options name, or None."""
    folder = options.folder
    if folder is None or options.name is None:
        return None
    from pygroups.drivers.former_life import former_life

    def journal_of(life: Address) -> JournalWriter:
        return _journal_of(life, folder, options, host, boot, later=True)

    return former_life(folder, options.journal_name, me, options.profile, journal_of)


def _journal_of(
    life: Address, folder: Path, options: Options, host: str, boot: str, *, later: bool = False
) -> JournalWriter:
    from pygroups.journal.writer import JournalWriter

    return JournalWriter(
        folder,
        options.journal_name,
        life.name,
        life.incarnation,
        options.profile,
        host=host,
        boot_id=boot,
        version=__version__,
        services=options.chosen_profile.services,
        segment_bytes=options.limits.journal_segment,
        keep=options.limits.journal_keep,
        fsync=options.journal_fsync,
        later=later,
    )
