"""The network and the discovery of one process in virtual time, as its turns use them (core/turn.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic

from pygroups.core.address import Address
from pygroups.core.driver_events import Found
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.core.turn import NoQuestions, Source

from .virtual import P, VirtualWorld


class Wires(Generic[P]):
    """The network of `process`."""

    def __init__(self, world: VirtualWorld[P], process: P) -> None:
        self.world = world
        self.process = process

    def send(self, frames: Iterable[tuple[Sequence[Address], Sequence[bytes]]]) -> None:
        """Hand frames to the kernel."""
        process, send = self.process, self.world.send
        for dests, batch in frames:
            for dest in dests:
                send(process, dest, batch)

    def learn(self, contacts: Mapping[Address, str], source: Source) -> None:
        """Record that these peers can be reached from now on."""
        for peer in contacts:
            self.process.routes.setdefault(peer)

    def probe(self, peer: Address) -> None:
        """Open a new connection to `peer`, to test whether it runs."""
        self.world.probe(self.process, peer)

    def disconnect(self, peer: Address) -> None:
        """Do nothing: closing a connection in good order has no effect on the peer."""


class Finder(NoQuestions, Generic[P]):
    """The discovery of `process`; `tell` receives the answers."""

    def __init__(self, world: VirtualWorld[P], process: P, tell: Callable[[Found], None]) -> None:
        self.world = world
        self.process = process
        self.tell = tell

    def find(self, founding: bool) -> None:
        """Read the directory after a short delay: the answer shows the directory at that time."""
        self.world.agenda.after(self.delay(), self._looks, founding)

    def delay(self) -> int:
        """Return the time for reading the directory, in microseconds."""
        return self.world.rng.randint(200, 2 * MILLISECOND)

    def _looks(self, founding: bool) -> None:
        """Read the directory, and hand over the answer; a late answer is outdated on arrival."""
        process, world = self.process, self.world
        if process.ended:
            return
        now, directory = world.agenda.now, world.directory
        found = directory.told(process.address, now, world.rng, founding)
        late = world.rng.randrange(SECOND) if directory.is_wrong("late", now) else 0
        world.agenda.after(late, self._found, found)

    def _found(self, found: Found) -> None:
        if not self.process.ended:
            self.tell(found)

    def announce(self, member: bool, invited: bool = False) -> None:
        """Announce that this process is a member, or is no member, or that a group is admitting it."""
        me = self.process.address
        self.world.directory.announce(me, me.name, member, invited)

    def installed(self, members: Mapping[Address, str]) -> None:
        """Do nothing: this world has only one group."""
