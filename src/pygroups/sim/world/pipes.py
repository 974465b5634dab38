"""Frames as over TCP: in order, and lost only with their connection, which the sender's driver reports (Lost).

A frame that the weather would lose or damage breaks the connection instead.  A cut delays frames, or breaks the
connection at some moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from pygroups.core.address import Address
from pygroups.core.limits import MILLISECOND

from .agenda import Agenda
from .network import SimulatedNetwork

AGAIN: Final = 50 * MILLISECOND  # between two tries of the kernel to get a frame through a cut
BREAKS: Final = 0.02  # chance at each of these tries that the connection breaks
NOTICED: Final = 3 * MILLISECOND  # until the sender's process learns of it


class Pipe:
    """The frames on their way from one process to another, oldest first."""

    __slots__ = ("frames", "last_at")

    def __init__(self) -> None:
        self.frames: deque[bytes] = deque()
        self.last_at = 0  # the arrival of the last one, unless something holds it up


class Pipes:
    """The connections of a world.  `arrived` takes a frame that arrives and returns whether its receiver runs; `lost`
    tells a process that frames to a peer may be lost; `clogged` returns how long a link is held up yet."""

    def __init__(
        self,
        agenda: Agenda,
        network: SimulatedNetwork,
        rng: Random,
        arrived: Callable[[Address, Address, bytes], bool],
        lost: Callable[[Address, Address], None],
    ) -> None:
        self.agenda = agenda
        self.network = network
        self.rng = rng
        self.arrived = arrived
        self.lost = lost
        self.pipes: dict[tuple[Address, Address], Pipe] = {}
        self.broken = 0
        self.in_flight = 0  # frames lost with their connections

    def send(self, src: Address, dest: Address, frames: Sequence[bytes]) -> None:
        """`src` writes these frames to its connection to `dest`."""
        pipe = self.pipes.setdefault((src, dest), Pipe())
        for frame in frames:
            delay = self._delay(src, dest, frame)
            if delay is None:
                self.breaks(src, dest)
                return  # the rest of the turn goes with the connection
            pipe.frames.append(frame)
            pipe.last_at = max(pipe.last_at, self.agenda.now + delay)
            self.agenda.at(pipe.last_at, self._next, src, dest)

    def _delay(self, src: Address, dest: Address, frame: bytes) -> int | None:
        """The delay of a frame; None if it breaks the connection."""
        if not self.network.is_open(src.name, dest.name):
            return AGAIN
        arrivals = self.network.arrivals(src.name, dest.name, frame)
        if not arrivals or arrivals[0][1] != frame:
            return None
        return arrivals[0][0]

    def _next(self, src: Address, dest: Address) -> None:
        """The oldest frame arrives or is held up.  The frame may also have been lost with its connection."""
        pipe = self.pipes[src, dest]
        if not pipe.frames:
            return
        if not self.network.is_open(src.name, dest.name):
            if self.rng.random() < BREAKS:
                self.breaks(src, dest)
            else:
                self.agenda.after(AGAIN, self._next, src, dest)
            return
        wait = self.network.held(src.name, dest.name, self.agenda.now) if self.network.clogs else None
        if wait is not None:
            self.agenda.after(min(wait, AGAIN), self._next, src, dest)  # a clog can end early
        elif not self.arrived(src, dest, pipe.frames.popleft()):
            self.breaks(src, dest)

    def breaks(self, src: Address, dest: Address) -> None:
        """The connection from `src` to `dest` ends, with the frames that are on their way."""
        pipe = self.pipes.setdefault((src, dest), Pipe())
        self.broken += 1
        self.in_flight += len(pipe.frames)
        pipe.frames.clear()
        self.agenda.after(self.rng.randint(0, NOTICED), self.lost, src, dest)
