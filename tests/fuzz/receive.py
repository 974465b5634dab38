"""`receive` of a stack, in the middle of whatever a group does: it forms, talks, changes its view, splits, merges.

A *play* is a group of one profile that was stopped at a drawn moment, with frames still on their way.  Each input is a
frame for one of its processes.  The group goes on a little after some of them.  An input that ends a play is kept with
those before it.
"""

from __future__ import annotations

import random
from time import thread_time
from typing import Final

from pygroups.core.address import Address
from pygroups.core.limits import MEMBERS_MAX, MILLISECOND, SECOND
from pygroups.core.view import ViewId
from pygroups.sim.world.forger import Forger
from tests.channel.test_tables import TIGHT, offences, parts_of
from tests.fuzz.mutate import Mutator, forged_packet
from tests.fuzz.targets import stranger
from tests.wire.group import Group, Process, Tap
from tests.wire.samples import packet_of, sealed

PROFILES: Final = ("total", "fifo", "uniform", "uniform-fifo", "total1999", "gossip")
INPUTS: Final = 150  # of one play
RECENT: Final = 64  # frames of the group that inputs are made from
STEPS: Final = 60  # deliveries after one input, at most
HEADER: Final = 3  # bytes before the packet: the receiver, the sender, and what happens afterwards


class Stopped(Group):
    """A group that can be stopped in the middle of a conversation."""

    left = 10_000  # deliveries and turns until it stops

    def settle(self) -> None:
        while self.left and (self.due or self.flight):
            self.left -= 1
            if self.due:
                process = next(iter(self.due))
                del self.due[process]
                process.end_turn()
            else:
                sender, dest, frame = self.flight.popleft()
                receiver = self.processes.get(dest)
                if receiver is not None and self.tap is not None:
                    for arrives in self.tap(sender, receiver, frame):
                        receiver.stack.receive(arrives, self.now)
                    self.due[receiver] = None

    def run(self, duration: int) -> None:
        if self.left:
            super().run(duration)


class Play:
    """One group under attack."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.seed = seed
        self.recent: list[tuple[Address, bytes]] = []
        self.cut: frozenset[Address] = frozenset()  # no frame passes between these and the others
        self.inputs: list[bytes] = []
        self.slowest = 0.0
        tap: Tap = self._tap
        self.group = Stopped("", profile=PROFILES[seed % len(PROFILES)], seed=seed, tap=tap, config=TIGHT)
        for name in "ABC"[: rng.choice((1, 2, 3, 3, 3))]:
            self.group.join(name)
        self._talk()
        self.group.left = rng.choice((0, rng.randrange(30), rng.randrange(300)))
        self._something()

    def _tap(self, sender: Address, receiver: Process, frame: bytes) -> list[bytes]:
        self.recent = [*self.recent[1 - RECENT :], (sender, frame)]
        return [] if (sender in self.cut) != (receiver.address in self.cut) else [frame]

    def _talk(self) -> None:
        for process in list(self.group.processes.values()):
            if not process.top.stopped:
                self.group.send(process, b"to all", b"to all again")
        self.group.run(20 * MILLISECOND)

    def _something(self) -> None:
        """A change of the view begins."""
        group, rng = self.group, self.rng
        what = rng.randrange(6)
        if what == 0:
            group.join("D")
        elif what == 1 and len(group.processes) > 1:
            group.lose(rng.choice(list(group.processes.values())))
        elif what == 2:
            self.cut = frozenset(list(group.processes)[:1])
            group.run(rng.choice((2, 10, 20)) * SECOND)
        elif what == 3:
            self.cut = frozenset(list(group.processes)[:1])
            group.left, left = 10_000, group.left
            group.run(20 * SECOND)
            self.cut, group.left = frozenset(), left
            group.run(rng.choice((1, 5, 10)) * SECOND)
        self._talk()

    # -- inputs

    @property
    def over(self) -> bool:
        """Whether another play has to begin."""
        return len(self.inputs) >= INPUTS or len(self.group.processes) < 1

    def forger(self, rng: random.Random) -> Forger:
        """Forges with the addresses and views of this group."""
        processes = list(self.group.processes.values())
        views = [process.env.view for process in processes if process.env.view is not None]
        return Forger(rng, (*self.group.processes, stranger()), views or [ViewId(1, stranger())])

    def made(self, rng: random.Random, data: bytes, mutator: Mutator) -> bytes:
        """An input made from `data`, or from a frame of this group, or from nothing."""
        before = bytes([rng.randrange(256), rng.randrange(256), rng.randrange(256)])
        if rng.random() < 0.5:
            return before + forged_packet(self.forger(rng), self._sender(before[1]))
        if self.recent and rng.random() < 0.7:
            data = before + packet_of(rng.choice(self.recent)[1])
        others = [packet_of(frame) for _, frame in self.recent]
        return data[:HEADER] + mutator.mutated(data[HEADER:] or b"\x93", others, rng)

    def _sender(self, number: int) -> Address:
        senders = [*self.group.processes, stranger()]
        return senders[number % len(senders)]

    def receive(self, data: bytes) -> None:
        """Raises what a stack raises."""
        self.inputs.append(data)
        group = self.group
        receiver, sender, after, packet = *data[:HEADER].ljust(HEADER, b"\0"), data[HEADER:] or b"\0"
        process = list(group.processes.values())[receiver % len(group.processes)]
        begun = thread_time()
        process.stack.receive(sealed(packet, self._sender(sender)), group.now)
        process.end_turn()
        self.slowest = max(self.slowest, thread_time() - begun)
        if after < 120:
            return
        group.left = STEPS
        if after < 180:
            group.settle()
        elif after < 240:
            group.run((1 + after % 8) ** 4 * MILLISECOND)
        else:
            self._talk()

    def finish(self) -> None:
        """The group goes on; no table is above its limit."""
        self.group.left = 10 * STEPS
        for _ in range(3):
            self._talk()
            self.group.run(3 * SECOND)
        for process in list(self.group.processes.values()):
            process.end_turn()  # the group may have stopped before it
            found = offences(parts_of(process.stack), TIGHT, MEMBERS_MAX)
            assert not found, found
