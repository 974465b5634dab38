"""Real stacks of a profile in one process, over a network that brings everything at once, in simulated time."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from pygroups.core.address import Address
from pygroups.core.driver_events import Announce, Answered, Dead, Ended, Find, Found, Probe
from pygroups.core.events import Consumed, Event, Join, Marks
from pygroups.core.layer import NEVER, Env
from pygroups.core.limits import MILLISECOND, SECOND, Config
from pygroups.core.records import plain_records
from pygroups.core.state_events import StateChunk, StateWanted
from pygroups.core.top import Delivered, Top
from pygroups.layers.profiles import PROFILES, build_stack
from pygroups.wire.codec import Codec
from tests.wire.samples import GROUP

Tap = Callable[[Address, "Process", bytes], list[bytes]]


class Process:
    """One member: its stack and a small application that consumes all it gets."""

    def __init__(self, group: Group, name: str, number: int) -> None:
        self.group = group
        self.address = Address(name, f"{number:016x}")
        self.env = Env(self.address, group.now, random.Random(f"{group.seed} {name}"), group.config, journaling=True)
        self.env.archiving = True
        self.env.contact = f"{name}:1"
        self.stack = build_stack(PROFILES[group.profile], self.env, lambda heads: Codec(GROUP, heads))
        top = self.stack.layers[0]
        assert isinstance(top, Top)
        self.top = top
        self.delivered: list[Delivered] = []
        self.member = False

    def end_turn(self) -> None:
        """As a driver does it: journal, network, application."""
        output = self.stack.end_turn(self.group.now)
        plain_records(output.records)
        for dests, frames in output.frames:
            for dest in dests:
                self.group.flight.extend((self.address, dest, frame) for frame in frames)
        for command in output.commands:
            self._obey(command)
        marks: Marks = {}
        for event in output.events:
            if isinstance(event, Delivered):
                self.delivered.append(event)
                if event.position >= 0 and event.run.origin is not None:
                    marks[event.run.origin] = event.run.next
            elif isinstance(event, StateWanted):
                for joiner in event.joiners:
                    self.asked(StateChunk(event.view, joiner, b"state", last=True))
        if self.top.stopped:
            self.group.lose(self)
        elif marks:
            self.asked(Consumed(marks))

    def asked(self, event: Event) -> None:
        self.stack.asked(event, self.group.now)
        self.group.due[self] = None

    def _obey(self, command: Event) -> None:
        if isinstance(command, Announce):
            self.member = command.member
        elif isinstance(command, Find):
            members = {p.address: p.env.contact for p in self.group.processes.values() if p.member}
            self.group.happened(self, Found(members, may_found=not members))
        elif isinstance(command, Probe):
            peer = command.peer
            if not self.group.is_cut(self.address, peer):
                self.group.happened(self, Answered(peer) if peer in self.group.processes else Dead(peer))


class Group:
    """See the module.  `tap` is given each frame, with its sender and its receiver, and says what arrives instead."""

    def __init__(
        self,
        names: str,
        *,
        profile: str = "total",
        seed: int = 1,
        tap: Tap | None = None,
        config: Config | None = None,
    ) -> None:
        self.config = config or Config()
        self.profile = profile
        self.seed = seed
        self.now = 0
        self.births = 0
        self.flight: deque[tuple[Address, Address, bytes]] = deque()
        self.due: dict[Process, None] = {}
        self.tap = tap
        self.processes: dict[Address, Process] = {}
        self.cut: frozenset[Address] = frozenset()  # no answer passes between these and the others; frames: see `tap`
        for name in names:
            self.join(name)

    def join(self, name: str) -> None:
        self.births += 1
        process = Process(self, name, self.births)
        self.processes[process.address] = process
        process.asked(Join())
        self.run(SECOND)

    def is_cut(self, one: Address, other: Address) -> bool:
        return (one in self.cut) != (other in self.cut)

    def lose(self, lost: Process) -> None:
        """A process ends, which is proven to the others."""
        self.processes.pop(lost.address, None)
        self.due.pop(lost, None)
        for process in self.processes.values():
            self.happened(process, Ended(lost.address))

    def happened(self, process: Process, event: Event) -> None:
        process.stack.happened(event, self.now)
        self.due[process] = None

    def settle(self) -> None:
        """Until nobody has anything to say at this moment."""
        for _ in range(10_000):
            if self.due:
                process = next(iter(self.due))
                del self.due[process]
                process.end_turn()
            elif self.flight:
                sender, dest, frame = self.flight.popleft()
                receiver = self.processes.get(dest)
                if receiver is not None:
                    for arrives in [frame] if self.tap is None else self.tap(sender, receiver, frame):
                        receiver.stack.receive(arrives, self.now)
                    self.due[receiver] = None
            else:
                return
        raise AssertionError("a conversation that does not end")

    def run(self, duration: int) -> None:
        """Let so much time pass, at once where nobody waits for anything."""
        end = self.now + duration
        while True:
            self.settle()
            wake = min((process.stack.wake() for process in self.processes.values()), default=NEVER)
            if wake > end or wake >= NEVER:
                self.now = end
                return
            self.now = max(self.now, wake)
            for process in list(self.processes.values()):
                if process.stack.wake() <= self.now:
                    process.stack.advance(self.now)
                    self.due[process] = None

    def send(self, process: Process, *payloads: bytes, to: Address | None = None) -> None:
        for payload in payloads:
            process.top.accept(payload, to)
        self.due[process] = None


def warm(
    names: str = "ABC",
    *,
    profile: str = "total",
    seed: int = 1,
    tap: Tap | None = None,
    config: Config | None = None,
) -> Group:
    """A group that has talked for a while."""
    group = Group(names, profile=profile, seed=seed, tap=tap, config=config)
    for process in list(group.processes.values()):
        for other in list(group.processes):
            group.send(process, b"to all", b"to all again")
            if other != process.address:
                group.send(process, b"to one", to=other)
        group.run(50 * MILLISECOND)
    return group
