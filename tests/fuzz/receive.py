"""`receive` of a stack, in the middle of whatever a group does: it forms, talks, changes its view, splits, merges.

A *play* is a group of one profile that was stopped at a drawn moment, with frames still on their way.  Each input is a
frame for one of its processes.  The group goes on a little after some of them.  An input that ends a play is kept with
those before it.
"""

from __future__ import annotations

import random
from time import thread_time
from typing import Final

import msgspec

from pygroups.core.address import Address
from pygroups.core.limits import MEMBERS_MAX, MILLISECOND, SECOND
from pygroups.core.run import Run
from pygroups.core.view import ViewId
from pygroups.layers.profiles import PROFILES
from pygroups.layers.unicast2.heads import Data
from pygroups.sim.world.forger import Forger
from tests.channel.test_tables import TIGHT, offences, parts_of
from tests.fuzz.mutate import CODEC, Mutator, near
from tests.fuzz.targets import stranger
from tests.wire.group import Group, Process, Tap
from tests.wire.samples import A, packet_of, runs_of, sealed

GROUPS: Final = ("total", "fifo", "uniform", "uniform-fifo", "total1999", "gossip")
INPUTS: Final = 300  # of one play
RECENT: Final = 64  # frames of the group that inputs are made from
STEPS: Final = 60  # deliveries after one input, at most
HEADER: Final = 3  # bytes before the runs: the receiver, the sender, and what happens afterwards
TO_ALL: Final = 1  # the bit of the third one that sends the frame to all members
SETTLES, TIME_PASSES, ALL_TALK = 180, 215, 250  # values of the third one from which more happens than a turn
ENCODE: Final = msgspec.msgpack.Encoder().encode
OUTER: Final = b"\x93\xa1A\xa0"  # of a packet of A to all; its runs follow


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
        self.inputs: list[bytes] = []
        self.slowest = 0.0
        tap: Tap = self._tap
        self.group = Stopped("", profile=GROUPS[seed % len(GROUPS)], seed=seed, tap=tap, config=TIGHT)
        self.heads = PROFILES[self.group.profile].heads()
        for name in "ABC"[: rng.choice((1, 2, 3, 3, 3))]:
            self.group.join(name)
        self._talk()
        self.group.left = rng.choice((0, rng.randrange(30), rng.randrange(300)))
        self._something()

    def _tap(self, sender: Address, receiver: Process, frame: bytes) -> list[bytes]:
        self.recent = [*self.recent[1 - RECENT :], (sender, frame)]
        return [] if self.group.is_cut(sender, receiver.address) else [frame]

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
            group.cut = frozenset(list(group.processes)[:1])
            group.run(rng.choice((2, 10, 20)) * SECOND)
        elif what == 3:
            group.cut = frozenset(list(group.processes)[:1])
            group.left, left = 10_000, group.left
            group.run(20 * SECOND)
            group.cut, group.left = frozenset(), left
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
        """An input made from `data`, or from a frame of this group, mostly in the name of its sender, or from nothing.
        The heads are those of this group's profile: the stacks would drop others unread."""
        to, sender, after = rng.randrange(256), rng.randrange(256), rng.randrange(256)
        if not self.recent or rng.random() < 0.5:
            return bytes((to, sender, after)) + forged_runs(self.forger(rng), self.heads)
        known, frame = rng.choice(self.recent)
        if known in self.group.processes and rng.random() < 0.7:
            sender = list(self.group.processes).index(known)
        runs = data[HEADER:] if rng.random() < 0.2 else runs_of(frame)
        other = runs_of(rng.choice(self.recent)[1])
        return bytes((to, sender, after)) + mutator.with_lies(OUTER + runs, OUTER + other, rng)[len(OUTER) :]

    def near(self, data: bytes) -> list[bytes]:
        """The same runs of another sender, and to another receiver; cut off, with another byte, with another bit."""
        to, sender, after = data[:HEADER].ljust(HEADER, b"\0")
        runs, quiet = data[HEADER:], after % SETTLES
        return [
            bytes((to, sender + 1 & 255, quiet)) + runs,
            bytes((to + 1 & 255, sender, quiet)) + runs,
            *[bytes((to, sender, quiet)) + other for other in near(runs, 1)],
        ]

    def _sender(self, number: int, receiver: Address) -> Address:
        senders = [*self.group.processes, stranger()]
        sender, following = senders[number % len(senders)], senders[(number + 1) % len(senders)]
        return following if sender == receiver else sender  # a process drops frames of itself unread

    def receive(self, data: bytes) -> None:
        """Raises what a stack raises."""
        self.inputs.append(data)
        group = self.group
        to, number, after = data[:HEADER].ljust(HEADER, b"\0")
        receiver = list(group.processes.values())[to % len(group.processes)]
        sender = self._sender(number, receiver.address)
        dest = "" if after & TO_ALL else receiver.address.incarnation
        packet = b"\x93" + ENCODE(sender.name) + ENCODE(dest) + data[HEADER:]
        begun = thread_time()
        receiver.stack.receive(sealed(packet, sender), group.now)
        receiver.end_turn()
        self.slowest = max(self.slowest, thread_time() - begun)
        if after < SETTLES:
            return
        group.left = STEPS
        if after < TIME_PASSES:
            group.settle()
        elif after < ALL_TALK:
            group.run((1 + after % 8) ** 4 * MILLISECOND)
        else:
            self._talk()

    def finish(self) -> None:
        """The group goes on; no table is above its limit."""
        self.group.left = 10 * STEPS
        self._talk()
        self.group.run(3 * SECOND)
        for process in list(self.group.processes.values()):
            for _ in range(STEPS):  # the group may have stopped before the end of a turn, which may lead to another one
                self.group.due.pop(process, None)
                process.end_turn()
                if process not in self.group.due:
                    break
            found = offences(parts_of(process.stack), TIGHT, MEMBERS_MAX)
            assert not found, found


def forged_runs(forger: Forger, heads: list[type]) -> bytes:
    """Runs with drawn heads, mostly one, and sometimes that of a connection above it; with payloads or without."""
    rng, runs = forger.rng, []
    for _ in range(rng.choice((1, 1, 1, 2))):
        drawn = [forger.head(rng.choice(heads)) for _ in range(rng.choice((1, 1, 1, 2)))]
        if rng.random() < 0.3:
            drawn.append(forger.head(Data))
        runs.append(Run(A, None, tuple(drawn), *(forger.payload() if rng.random() < 0.4 else ())))
    return packet_of(CODEC.encode(A, None, runs)[0])[len(OUTER) :]
