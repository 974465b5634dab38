"""The members of one group that meet in memory: the simulator's virtual world, with the interfaces of a channel's.

What may happen to a frame is the simulator's network; what the end of a process proves is as with TCP.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from pygroups.core.address import Address
from pygroups.core.events import Event
from pygroups.core.limits import MILLISECOND
from pygroups.sim.world.agenda import Agenda
from pygroups.sim.world.network import SimulatedNetwork
from pygroups.sim.world.outside import Finder, Wires
from pygroups.sim.world.virtual import VirtualWorld, Waiting


class End(Wires["End"]):
    """One member's connections, and its process.  It has the interface of drivers/tcp.py."""

    def __init__(self, room: Room, me: Address) -> None:
        super().__init__(room, self)
        self.room = room
        self.address = me
        self.contact = me.name
        self.routes: dict[Address, None] = {}
        self.ended = ""
        self.receive: Callable[[memoryview], None]
        self.happened: Callable[[Event], None]
        self.count: Callable[..., None]
        self.crashed: Callable[[BaseException], None]

    async def open(self) -> None:
        """Be there."""
        self.room.begins(self, beside=self.address.name in self.room.running)

    def close(self) -> None:
        """Be gone; peers see that the connections end."""
        self.room.gone(self)

    async def drain(self, seconds: float) -> None:
        """What was sent is on its way already."""

    def waiting_bytes(self) -> int:
        return 0

    def arrive(self, item: Waiting) -> None:
        """The loop of a test takes in at once what has come; the turn is in its next pass."""
        if isinstance(item, tuple):
            sender, frame = item
            self.routes.setdefault(sender)
            self.receive(memoryview(frame))
        elif isinstance(item, Event):
            self.happened(item)
        else:
            item()


class Room(VirtualWorld[End]):
    """All members of one group.  `ended` is told of each process that is gone."""

    def __init__(
        self, agenda: Agenda, network: SimulatedNetwork, rng: Random, ended: Callable[[Address], None]
    ) -> None:
        super().__init__(agenda, network, rng)
        self.ended = ended

    def no_route(self, process: End, frames: int) -> None:
        process.count("peers that nobody knows where to dial")

    def gone(self, end: End) -> None:
        """This process ends, if it has not."""
        if self.ends(end):
            self.ended(end.address)


class Meeting(Finder[End]):
    """How one member finds the others.  It has the interface of drivers/directory.py."""

    def __init__(self, room: Room, end: End) -> None:
        super().__init__(room, end, self._tell)
        self.happened: Callable[[Event], None]
        self.count: Callable[[str], None]

    def delay(self) -> int:
        """All take as long: so whoever is started first founds the group."""
        return MILLISECOND

    def _tell(self, found: Event) -> None:
        self.happened(found)

    def open(self, contact: str) -> None:
        """The contact of a process in memory is its name."""

    def close(self) -> None:
        self.world.directory.ended(self.process.address)

    def refresh(self) -> None:
        """An entry in memory does not get old."""
