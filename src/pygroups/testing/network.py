"""The members of one group that meet in memory: how frames, and the news of ends, come from one to another.

What may happen to a frame is the simulator's network; what the end of a process proves is as with TCP.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from pygroups.core.address import Address
from pygroups.core.driver_events import Answered, Dead, Ended
from pygroups.core.events import Event
from pygroups.core.limits import MILLISECOND
from pygroups.core.turn import Source
from pygroups.sim.world.directory import Directory
from pygroups.sim.world.network import Network

from .background import Background


class End:
    """One member's connections.  It has the interface of drivers/tcp.py."""

    def __init__(self, hub: Hub, me: Address) -> None:
        self.hub = hub
        self.me = me
        self.contact = me.name
        self.routes: dict[Address, None] = {}  # who can be reached: told of, or heard
        self.receive: Callable[[memoryview], None]
        self.happened: Callable[[Event], None]
        self.count: Callable[..., None]
        self.crashed: Callable[[BaseException], None]

    async def open(self) -> None:
        """Be there."""
        self.hub.ends[self.me] = self

    def close(self) -> None:
        """Be gone; peers see that the connections end."""
        self.hub.gone(self)

    async def drain(self, seconds: float) -> None:
        """What was sent is on its way already."""

    def waiting_bytes(self) -> int:
        return 0

    def send(self, frames: Iterable[tuple[Sequence[Address], Sequence[bytes]]]) -> None:
        for dests, bodies in frames:
            for dest in dests:
                if dest not in self.routes:
                    self.count("peers that nobody knows where to dial")
                    continue
                for body in bodies:
                    self.hub.carry(self.me, dest, body)

    def learn(self, contacts: Mapping[Address, str], source: Source) -> None:
        for peer in contacts:
            if peer != self.me:
                self.routes.setdefault(peer)

    def probe(self, peer: Address) -> None:
        self.hub.probe(self, peer)

    def disconnect(self, peer: Address) -> None:
        """A farewell, which means nothing to the peer."""


class Hub:
    """Everybody of one group.  `gone` is followed by `ended`, which is told who it was."""

    def __init__(self, background: Background, network: Network, ended: Callable[[Address], None]) -> None:
        self.background = background
        self.network = network
        self.directory = Directory()
        self.ended = ended
        self.ends: dict[Address, End] = {}  # of those who live
        self._mourned: dict[tuple[Address, Address], None] = {}  # who was told of whose end

    # -- frames

    def carry(self, src: Address, dest: Address, frame: bytes) -> None:
        """Send a frame on its way."""
        for delay, arriving, _ in self.network.arrivals(src.name, dest.name, frame):
            self.background.after(delay, self._arrive, src, dest, arriving)

    def _arrive(self, src: Address, dest: Address, frame: bytes) -> None:
        if not self.network.is_open(src.name, dest.name):
            self.network.counters["cut"] += 1
            return
        receiver, sender = self.ends.get(dest), self.ends.get(src)
        if receiver is not None:
            receiver.routes.setdefault(src)
            receiver.receive(memoryview(frame))
        elif sender is not None:  # the host is there and knows no such connection
            self.background.after(self.network.delay(dest.name, src.name), self._mourn, src, dest)

    # -- ends

    def gone(self, end: End) -> None:
        """This process ends: its kernel closes what it had open."""
        if self.ends.get(end.me) is not end:
            return
        del self.ends[end.me]
        self.directory.ended(end.me)
        for other in self.ends.values():
            if other.me in end.routes or end.me in other.routes:
                delay = self.network.delay(end.me.name, other.me.name) + MILLISECOND
                self.background.after(delay, self._mourn, other.me, end.me)
        self.ended(end.me)

    def _mourn(self, who: Address, dead: Address) -> None:
        """The connection with `dead` ends at `who`, if the news can reach it; once."""
        end = self.ends.get(who)
        if end is None or (who, dead) in self._mourned or not self.network.is_open(dead.name, who.name):
            return
        self._mourned[who, dead] = None
        end.happened(Ended(dead))

    # -- probes

    def probe(self, end: End, peer: Address) -> None:
        """Connect to where `peer` listened: if the network lets it, it answers, or its host says that it is gone."""
        self.background.after(self.network.delay(end.me.name, peer.name), self._probe_arrives, end, peer)

    def _probe_arrives(self, end: End, peer: Address) -> None:
        if self.network.connects(end.me.name, peer.name):
            answer = Answered(peer) if peer in self.ends else Dead(peer)
            self.background.after(self.network.delay(peer.name, end.me.name), self._answered, end, peer, answer)

    def _answered(self, end: End, peer: Address, answer: Event) -> None:
        if end.me in self.ends and self.network.connects(end.me.name, peer.name):
            end.happened(answer)


class Meeting:
    """How one member finds the others.  It has the interface of drivers/directory.py."""

    def __init__(self, hub: Hub, me: Address) -> None:
        self.hub = hub
        self.me = me
        self.contact = ""
        self.happened: Callable[[Event], None]
        self.count: Callable[[str], None]

    def open(self, contact: str) -> None:
        self.contact = contact

    def close(self) -> None:
        self.hub.directory.ended(self.me)

    def find(self) -> None:
        self.hub.background.after(MILLISECOND, self._found)

    def _found(self) -> None:
        if self.me in self.hub.ends:
            self.happened(self.hub.directory.find(self.me))

    def announce(self, member: bool, invited: bool = False) -> None:
        self.hub.directory.announce(self.me, self.contact, member, invited)

    def refresh(self) -> None:
        """An entry in memory does not get old."""

    def installed(self, members: Collection[Address]) -> None:
        """There is one group in memory."""
