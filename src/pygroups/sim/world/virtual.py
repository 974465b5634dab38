"""A world in virtual time: processes, the network between them, and the directory in which they find each other.

The simulator plays its schedules in such a world (world.py), and testing/ runs groups for users' tests in one.
network.py decides how each frame arrives.  Connections end and probes are answered as with TCP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from pygroups.core.address import Address
from pygroups.core.driver_events import Answered, Dead, Ended, Lost
from pygroups.core.events import Event
from pygroups.core.limits import MILLISECOND

from .agenda import Agenda
from .directory import Directory
from .network import BURST, SimulatedNetwork
from .pipes import Pipes

Waiting = tuple[Address, bytes] | Event | Callable[[], None]  # a frame and its sender, an event, or a function to call


class Process(Protocol):
    """A process, as far as the world uses it."""

    routes: dict[Address, None]  # reachable peers: those that the process learned of, or received from
    ended: str  # the reason, after the process has ended

    @property
    def address(self) -> Address: ...
    def arrive(self, item: Waiting) -> None:
        """Take this item, now or when the process runs again."""


P = TypeVar("P", bound=Process)


class HeldCall:
    """A call that waits behind a clog; it runs once."""

    __slots__ = ("args", "do")

    def __init__(self, do: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.do: Callable[..., None] | None = do
        self.args = args

    def let_go(self) -> None:
        (do, args), self.do, self.args = (self.do, self.args), None, ()  # frees the references
        if do is not None:
            do(*args)


class VirtualWorld(Generic[P]):
    """Carries frames, and news of ended connections, between processes.  A host has the name of its processes."""

    def __init__(self, agenda: Agenda, network: SimulatedNetwork, rng: Random) -> None:
        self.agenda = agenda
        self.network = network
        self.rng = rng
        self.directory = Directory()
        self.running: dict[str, P] = {}  # by name
        self.beside: dict[Address, P] = {}  # processes under a name in use, or with another profile
        self.lives: dict[Address, P] = {}  # all processes so far, by address
        self.counters: dict[str, int] = {}
        self.held: dict[tuple[str, str], list[HeldCall]] = {}  # by hosts, the calls that a clog holds or held
        self.pipes: Pipes | None = None  # in place of datagrams
        self._mourned: dict[tuple[Address, Address], None] = {}  # each process and the ended peer that it learned of

    def count(self, what: str, by: int = 1) -> None:
        """Add `by` to a counter of this world."""
        self.counters[what] = self.counters.get(what, 0) + by

    # -- processes

    def begins(self, process: P, *, beside: bool = False) -> None:
        """Add a process; `beside` means that its name is in use."""
        self.lives[process.address] = process
        if beside:
            self.beside[process.address] = process
        else:
            self.running[process.address.name] = process

    def end(self, process: P) -> bool:
        """End a process: its kernel closes the connections.  Returns False if the process had ended before."""
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
        if dest not in self.lives:
            return  # an answer to an attacker, who listens nowhere
        if self.pipes is not None:
            self.pipes.send(process.address, dest, frames)
            return
        src, agenda, arrivals = process.address, self.agenda, self.network.arrivals
        now = agenda.now
        for frame in frames:
            for delay, arriving, outlives in arrivals(src.name, dest.name, frame):
                agenda.at(now + delay, self.arrives, src, dest, arriving, outlives)

    def no_route(self, process: P, frames: int) -> None:
        """Count frames that `process` cannot send, because it does not know the peer's location."""
        self.count("no route", frames)

    def arrives(self, src: Address, dest: Address, frame: bytes, outlives: bool) -> None:
        """Deliver a frame to the host of `dest`.  A frame with `outlives` goes to the next process of that name, if
        its receiver has ended."""
        network = self.network
        if network.cuts and not network.is_open(src.name, dest.name):
            network.counters["cut"] += 1
            return
        if network.clogs and self.hold_if_clogged(src.name, dest.name, self.arrives, src, dest, frame, outlives):
            return
        if outlives and self.lives[dest].ended:
            dest = self.running[dest.name].address if dest.name in self.running else dest
        self.gets(src, dest, frame)

    def gets(self, src: Address, dest: Address, frame: bytes) -> bool:
        """Deliver a frame that has arrived at the host of `dest`.  Returns whether the process of `dest` runs.  If that
        process has ended, the sender of the frame learns this."""
        receiver = self.lives[dest]
        if not receiver.ended:
            receiver.arrive((src, frame))
            return True
        sender = self.lives[src]  # the host runs, but has no such connection
        if not sender.ended:
            self.agenda.after(self.network.delay(dest.name, src.name), self._mourn, sender, dest)
        return False

    def use_pipes(self) -> None:
        """From now on frames travel as over TCP."""
        self.pipes = Pipes(self.agenda, self.network, self.rng, self.gets, self._loses)

    def _loses(self, src: Address, dest: Address) -> None:
        """Report to the process `src` that frames to `dest` may be lost."""
        process = self.lives[src]
        if not process.ended:
            process.arrive(Lost(dest))
            if self.network.connects(src.name, dest.name):
                process.arrive(Ended(dest))

    def hold_if_clogged(self, src: str, dest: str, do: Callable[..., None], *args: Any) -> bool:
        """If the link is clogged, call `do` when the clog ends.  Returns whether it is clogged."""
        wait = self.network.held(src, dest, self.agenda.now) if self.network.clogs else None
        if wait is not None:
            held = HeldCall(do, args)
            self.held.setdefault((src, dest), []).append(held)
            self.agenda.after(wait, held.let_go)
        return wait is not None

    def release(self, links: Iterable[tuple[str, str]]) -> None:
        """End the clogs of these links; the held frames arrive in a burst."""
        for src, dest in links:
            chance = self.network.unclog(src, dest)
            for held in self.held.pop((src, dest), ()):
                self.agenda.after(int(chance.random() * BURST), held.let_go)

    # -- the ends of connections

    def _mourn(self, process: P, dead: Address) -> None:
        """Report the end of the connection with `dead` to `process`, once, if the network lets the news through."""
        if self.hold_if_clogged(dead.name, process.address.name, self._mourn, process, dead):
            return
        key = (process.address, dead)
        if key in self._mourned or not self.network.is_open(dead.name, process.address.name):
            return
        self._mourned[key] = None
        process.arrive(Ended(dead))

    def reset(self, src: str, dest: str) -> None:
        """Report the end of the connection to the process on host `src`; the process on host `dest` learns nothing."""
        process, peer = self.running.get(src), self.running.get(dest)
        if process is not None and peer is not None:
            self.agenda.after(self.rng.randint(0, 2 * MILLISECOND), self._hang_up, process, peer.address)

    def lose(self, one: P, other: P) -> None:
        """End the connection between two running processes; both can connect again."""
        for process, peer in ((one, other), (other, one)):
            if self.pipes is not None:
                self.pipes.breaks(process.address, peer.address)
            self.agenda.after(self.rng.randint(0, 2 * MILLISECOND), self._hang_up, process, peer.address)

    def _hang_up(self, process: P, peer: Address) -> None:
        if not process.ended and self.network.is_open(peer.name, process.address.name):
            process.arrive(Ended(peer))

    # -- probes

    def probe(self, process: P, peer: Address) -> None:
        """Connect to the location of `peer`: no answer comes, or a refusal, or the answer of a process there when it
        runs."""
        self.agenda.after(self.network.delay(process.address.name, peer.name), self._probe_arrives, process, peer)

    def _probe_arrives(self, process: P, peer: Address) -> None:
        me, network = process.address.name, self.network
        if self.hold_if_clogged(me, peer.name, self._probe_arrives, process, peer):
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
            answer = Answered(peer) if here.address == peer else Dead(peer, certain=True)
            here.arrive(lambda: self._answer_probe(process, answer))

    def _answer_probe(self, process: P, answer: Answered | Dead) -> None:
        delay = self.network.delay(answer.peer.name, process.address.name)
        self.agenda.after(delay, self._probe_answered, process, answer)

    def _probe_answered(self, process: P, answer: Answered | Dead) -> None:
        me, peer = process.address.name, answer.peer.name
        if self.hold_if_clogged(peer, me, self._probe_answered, process, answer):
            return
        if not process.ended and self.network.connects(me, peer):
            process.arrive(answer)

    def meet(self, process: P, name: str, met: Callable[[Address], None]) -> None:
        """Ask which process runs under `name`; without an answer nothing follows."""
        self.agenda.after(self.network.delay(process.address.name, name), self._asked_for_name, process, name, met)

    def _asked_for_name(self, process: P, name: str, met: Callable[[Address], None]) -> None:
        me = process.address.name
        if self.hold_if_clogged(me, name, self._asked_for_name, process, name, met):
            return
        here = self.running.get(name)
        if here is None or not self.network.connects(me, name) or self.network.refuses(me, name):
            self.count("places without a process")
            return
        here.arrive(lambda: self.agenda.after(self.network.delay(name, me), met, here.address))

    def _refused(self, process: P, peer: Address) -> None:
        """Report that no process listens at the location of `peer`."""
        if not process.ended and self.network.is_open(peer.name, process.address.name):
            process.arrive(Dead(peer))
