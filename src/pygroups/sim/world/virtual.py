"""A world in virtual time: processes, the network between them, and the place where they find each other.

The simulator plays its schedules in one (world.py), and so do the groups in memory of users' tests (testing/).  What
becomes of a frame is decided in network.py.  The ends of connections and the answers to probes are those of TCP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from pygroups.core.address import Address
from pygroups.core.driver_events import Answered, Dead, Ended
from pygroups.core.events import Event
from pygroups.core.limits import MILLISECOND

from .agenda import Agenda
from .directory import Directory
from .network import BURST, SimulatedNetwork

Waiting = tuple[Address, bytes] | Event | Callable[[], None]  # a frame and its sender; an event; what is to be done


class Process(Protocol):
    """What the world knows of a process."""

    routes: dict[Address, None]  # the peers that it can reach: it was told of them, or has heard them
    ended: str  # why, once it has

    @property
    def address(self) -> Address: ...
    def arrive(self, item: Waiting) -> None:
        """Take this in, now or when the process runs again."""


P = TypeVar("P", bound=Process)


class Held:
    """Something that waits behind a clog, to be done once."""

    __slots__ = ("args", "do")

    def __init__(self, do: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.do: Callable[..., None] | None = do
        self.args = args

    def let_go(self) -> None:
        (do, args), self.do, self.args = (self.do, self.args), None, ()  # nothing of it is kept
        if do is not None:
            do(*args)


class VirtualWorld(Generic[P]):
    """Carries frames, and the news of ends, between processes.  A host is called by the name of its processes."""

    def __init__(self, agenda: Agenda, network: SimulatedNetwork, rng: Random) -> None:
        self.agenda = agenda
        self.network = network
        self.rng = rng
        self.directory = Directory()
        self.running: dict[str, P] = {}  # by name
        self.beside: dict[Address, P] = {}  # processes under a name that another one had, or of another profile
        self.lives: dict[Address, P] = {}  # all there ever were, by address
        self.counters: dict[str, int] = {}
        self.held: dict[tuple[str, str], list[Held]] = {}  # by hosts, what a clog holds, or held before
        self._mourned: dict[tuple[Address, Address], None] = {}  # who was told of whose end

    def count(self, what: str, by: int = 1) -> None:
        """Add to a counter of this world."""
        self.counters[what] = self.counters.get(what, 0) + by

    # -- processes

    def begins(self, process: P, *, beside: bool = False) -> None:
        """A process begins; `beside`: its name belongs to another one."""
        self.lives[process.address] = process
        if beside:
            self.beside[process.address] = process
        else:
            self.running[process.address.name] = process

    def ends(self, process: P) -> bool:
        """A process ends: its kernel closes what it had open.  False when it has ended before."""
        process.ended = process.ended or "crashed"
        address = process.address
        if self.running.get(address.name) is process:
            del self.running[address.name]
        elif self.beside.pop(address, None) is None:
            return False
        self.directory.ended(address)
        for other in list(self.running.values()):
            if other.address in process.routes or address in other.routes:
                delay = self.network.delay(address.name, other.address.name)
                self.agenda.after(delay + self.rng.randint(0, 3 * MILLISECOND), self._mourn, other, address)
        return True

    # -- frames

    def send(self, process: P, dest: Address, frames: Sequence[bytes]) -> None:
        """`process` hands frames for `dest` to its kernel."""
        if dest not in process.routes:
            self.no_route(process, len(frames))
            return
        src, agenda, arrivals = process.address, self.agenda, self.network.arrivals
        now = agenda.now
        for frame in frames:
            for delay, arriving, outlives in arrivals(src.name, dest.name, frame):
                agenda.at(now + delay, self.arrives, src, dest, arriving, outlives)

    def no_route(self, process: P, frames: int) -> None:
        """`process` cannot send these: it does not know where the peer listens."""
        self.count("no route", frames)

    def arrives(self, src: Address, dest: Address, frame: bytes, outlives: bool) -> None:
        """A frame comes to the host of `dest`; what `outlives` its receiver is for the next process of that name."""
        network = self.network
        if network.cuts and not network.is_open(src.name, dest.name):
            network.counters["cut"] += 1
            return
        if network.clogs and self.waits(src.name, dest.name, self.arrives, src, dest, frame, outlives):
            return
        receiver = self.lives[dest]
        if outlives and receiver.ended:
            receiver = self.running.get(dest.name, receiver)
        if not receiver.ended:
            receiver.arrive((src, frame))
            return
        sender = self.lives[src]  # the host is there and knows no such connection
        if not sender.ended:
            self.agenda.after(self.network.delay(dest.name, src.name), self._mourn, sender, dest)

    def waits(self, src: str, dest: str, do: Callable[..., None], *args: Any) -> bool:
        """Whether the link is clogged: `do` is then called when that is over."""
        wait = self.network.held(src, dest, self.agenda.now) if self.network.clogs else None
        if wait is not None:
            held = Held(do, args)
            self.held.setdefault((src, dest), []).append(held)
            self.agenda.after(wait, held.let_go)
        return wait is not None

    def release(self, links: Iterable[tuple[str, str]]) -> None:
        """These are not clogged any more; what they held arrives in a burst."""
        for src, dest in links:
            chance = self.network.unclog(src, dest)
            for held in self.held.pop((src, dest), ()):
                self.agenda.after(int(chance.random() * BURST), held.let_go)

    # -- the ends of connections

    def _mourn(self, process: P, dead: Address) -> None:
        """The connection of `process` with `dead` ends, if the news can reach it; once."""
        if self.waits(dead.name, process.address.name, self._mourn, process, dead):
            return
        key = (process.address, dead)
        if key in self._mourned or not self.network.is_open(dead.name, process.address.name):
            return
        self._mourned[key] = None
        process.arrive(Ended(dead))

    def reset(self, src: str, dest: str) -> None:
        """The process that sends from one host to another learns that its connection has ended."""
        process, peer = self.running.get(src), self.running.get(dest)
        if process is not None and peer is not None:
            self.agenda.after(self.rng.randint(0, 2 * MILLISECOND), self._hang_up, process, peer.address)

    def lose(self, one: P, other: P) -> None:
        """The connection between two that live ends; both can connect again."""
        for process, peer in ((one, other), (other, one)):
            self.agenda.after(self.rng.randint(0, 2 * MILLISECOND), self._hang_up, process, peer.address)

    def _hang_up(self, process: P, peer: Address) -> None:
        if not process.ended and self.network.is_open(peer.name, process.address.name):
            process.arrive(Ended(peer))

    # -- probes

    def probe(self, process: P, peer: Address) -> None:
        """Connect to where `peer` listened: nothing, a refusal, or the process there answers when it runs."""
        self.agenda.after(self.network.delay(process.address.name, peer.name), self._probe_arrives, process, peer)

    def _probe_arrives(self, process: P, peer: Address) -> None:
        me, network = process.address.name, self.network
        if self.waits(me, peer.name, self._probe_arrives, process, peer):
            return
        if network.refuses(me, peer.name):
            self.agenda.after(network.delay(peer.name, me), self._refused, process, peer)
            return
        here = self.beside.get(peer) or self.running.get(peer.name)
        if not network.connects(me, peer.name):
            return
        if here is None:
            self._answer_probe(process, Dead(peer))
        else:
            answer = Answered(peer) if here.address == peer else Dead(peer)
            here.arrive(lambda: self._answer_probe(process, answer))

    def _answer_probe(self, process: P, answer: Answered | Dead) -> None:
        delay = self.network.delay(answer.peer.name, process.address.name)
        self.agenda.after(delay, self._probe_answered, process, answer)

    def _probe_answered(self, process: P, answer: Answered | Dead) -> None:
        me, peer = process.address.name, answer.peer.name
        if self.waits(peer, me, self._probe_answered, process, answer):
            return
        if not process.ended and self.network.connects(me, peer):
            process.arrive(answer)

    def _refused(self, process: P, peer: Address) -> None:
        """Nobody listens where `peer` does, it seems."""
        if not process.ended and self.network.is_open(peer.name, process.address.name):
            process.arrive(Dead(peer))
