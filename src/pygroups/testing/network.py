"""The members of one group in memory: the simulator's virtual world, with the interfaces that a channel expects.

The simulator's network delays and loses frames.  The end of a process is proven to its peers as over TCP.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from pygroups.core.address import Address
from pygroups.core.events import Event
from pygroups.core.limits import MILLISECOND
from pygroups.drivers.contacts import Contact
from pygroups.sim.world.agenda import Agenda
from pygroups.sim.world.network import SimulatedNetwork
from pygroups.sim.world.outside import Finder, Wires
from pygroups.sim.world.virtual import VirtualWorld, Waiting


class MemberNetwork(Wires["MemberNetwork"]):
    """The connections and the process of one member, with the interface of drivers/tcp/tcp.py."""

    lossless = False

    def __init__(self, room: Room, me: Address) -> None:
        super().__init__(room, self)
        self.room = room
        self.address = me
        self.contact = me.name
        self.bind = Contact(me.name, 0)
        self.routes: dict[Address, None] = {}
        self.ended = ""
        self.receive: Callable[[memoryview], bool]
        self.happened: Callable[[Event], None]
        self.count: Callable[..., None]
        self.crashed: Callable[[BaseException], None]

    async def open(self) -> None:
        """Start the process: frames can reach it."""
        self.room.begins(self, beside=self.address.name in self.room.running)

    def close(self) -> None:
        """End the process.  The peers notice that the connections end."""
        self.room.gone(self)

    async def meet(self, place: str) -> Address:
        """No test in memory has a process without a group: see MemoryPlatform.address()."""
        raise AssertionError(place)

    def knows(self, peer: Address) -> bool:
        return peer in self.routes

    async def drain(self, seconds: float) -> None:
        """Nothing to do: every frame that was sent is already under way."""

    def waiting_bytes(self) -> int:
        return 0

    def arrive(self, item: Waiting) -> None:
        """Take `item` at once.  The turn of the member follows in the next pass of the loop."""
        if isinstance(item, tuple):
            sender, frame = item
            self.routes.setdefault(sender)
            self.receive(memoryview(frame))
        elif isinstance(item, Event):
            self.happened(item)
        else:
            item()


class Room(VirtualWorld[MemberNetwork]):
    """All members of one group.  `ended` is called with the address of each process that has ended."""

    def __init__(
        self, agenda: Agenda, network: SimulatedNetwork, rng: Random, ended: Callable[[Address], None]
    ) -> None:
        super().__init__(agenda, network, rng)
        self.ended = ended

    def no_route(self, process: MemberNetwork, frames: int) -> None:
        process.count("peers without a contact")

    def gone(self, end: MemberNetwork) -> None:
        """End the process of `end`, if that process still runs."""
        if self.end(end):
            self.ended(end.address)


class MemoryDiscovery(Finder[MemberNetwork]):
    """The discovery of one member, with the interface of drivers/discovery/directory.py."""

    def __init__(self, room: Room, end: MemberNetwork) -> None:
        super().__init__(room, end, self._tell)
        self.happened: Callable[[Event], None]
        self.count: Callable[[str], None]

    def delay(self) -> int:
        """Every member looks for the same time, so the member that starts first founds the group."""
        return MILLISECOND

    def _tell(self, found: Event) -> None:
        self.happened(found)

    def open(self, contact: str) -> None:
        """The contact of a process in memory is its name."""

    def close(self) -> None:
        self.world.directory.ended(self.process.address)

    def refresh(self) -> None:
        """Nothing to do: an entry in memory does not expire."""
