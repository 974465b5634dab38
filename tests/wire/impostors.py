"""Every head that a group sends, at the moment at which it would be believed, from processes that may not send it.

Drawn heads (senders.py) are mostly about nothing.  Here a wrong sender says what the right one is about to say, just
before it: nothing may change, and the right one is then believed.  A few heads are rare in honest groups: those are
made from the state of their receiver (`invented`), so that they are about what it does at this moment.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import structs

from pygroups.core.address import Address
from pygroups.core.events import Leave
from pygroups.core.limits import MILLISECOND, SECOND
from pygroups.core.run import Run
from pygroups.core.view import Ballot
from pygroups.layers.gms import heads
from pygroups.layers.gms.layer import Gms
from pygroups.layers.hints.layer import Hints
from pygroups.layers.sequencer import Again, Sequencer
from tests.fuzz.receive import Stopped
from tests.wire.group import Process
from tests.wire.samples import a_codec
from tests.wire.senders import (
    ANYBODY,
    COORDINATOR,
    DEAF,
    MEMBER,
    NOBODY,
    OUTSIDER,
    PHASES,
    PLACES,
    Rows,
    connected,
    named,
)
from tests.wire.whole_state import remembered

CODEC: Final = a_codec()
LATE: Final = ("gms.Accept", "gms.CollectAck")
"""Answers that an honest member sends late, too: after the decision nobody counts them."""
DEAF_HEADS: Final = tuple(head for layer in DEAF for head in layer.heads)


class Impostors:
    """A group among processes that have its secret.  `rows`: the senders of each head, by phase."""

    def __init__(self, profile: str, rows: Rows, seed: int, tries: int) -> None:
        self.rows = rows
        self.tries = tries  # of each head in each phase from each place, at most
        self.tried: Counter[tuple[str, str, str]] = Counter()
        self.believed: list[str] = []
        self.uncounted: Counter[str] = Counter()
        self.connections = 0  # of the impostors
        self.sent: set[str] = set()  # the heads of the group
        self.loss = 0.0  # of the frames
        self.rng = random.Random(seed)
        self.gone: list[Address] = []
        self.group = Stopped("", profile=profile, seed=seed, tap=self._tap)

    def play(self) -> None:
        """A group is born, grows, talks, loses frames, loses members in every way, splits, and is one again."""
        group = self.group
        group.left = 1 << 30
        for name in "ABC":
            group.join(name)
            self._talk()
        first, second, third = group.processes.values()
        self.loss = 0.2
        group.join("D")
        self._talk()
        self._loses(third)
        self.loss = 0.0
        group.join("E")
        self._cut_off(second, 20 * SECOND)
        self.loss = 0.2
        self._cut_off(first, 4 * SECOND)
        second.asked(Leave())
        self._talk()
        self.loss = 0.0
        group.run(10 * SECOND)
        self._loses(first)

    def _loses(self, process: Process) -> None:
        self.group.lose(process)
        self.gone.append(process.address)
        self._talk()

    def _cut_off(self, process: Process, duration: int) -> None:
        """No frame passes between a process and the others for a while."""
        self.group.cut = frozenset([process.address])
        self._talk()
        self.group.run(duration)
        self.group.cut = frozenset()
        self.group.run(30 * SECOND)
        self._talk()

    def _talk(self) -> None:
        for process in list(self.group.processes.values()):
            if not process.top.stopped:
                self.group.send(process, b"to all", b"to all again", bytes(20_000))
        self.group.run(400 * MILLISECOND)

    def _tap(self, sender: Address, receiver: Process, frame: bytes) -> list[bytes]:
        if self.group.is_cut(sender, receiver.address) or self.rng.random() < self.loss:
            return []
        for run in CODEC.decode(frame, receiver.address):
            self.sent.update(named(type(head)) for head in run.heads)
            for end in range(1, len(run.heads) + 1):
                self._impersonate(sender, receiver, run, run.heads[:end])
        for said_by, head in invented(receiver):
            self._impersonate(said_by, receiver, Run(said_by, receiver.address), (head,))
        return [frame]

    def _impersonate(self, sender: Address, receiver: Process, run: Run, said: tuple[object, ...]) -> None:
        head = named(type(said[-1]))
        if isinstance(said[-1], DEAF_HEADS):
            return
        phase = PHASES[0] if receiver.env.view is not None else PHASES[2]
        past = getattr(said[-1], "view", receiver.env.view) != receiver.env.view
        for place, impostor in self._wrong(sender, receiver, self.rows[head][PHASES.index(phase)]):
            if past and impostor in self.gone:
                continue  # a former member may speak of its views
            if self.tried[head, phase, place] < self.tries:
                self.tried[head, phase, place] += 1
                spoken = structs.replace(run, src=impostor, heads=said)
                self.connections += 1
                self._try(receiver, connected(spoken, place, self.connections), f"{head}, {phase}: {place}")

    def _wrong(self, sender: Address, receiver: Process, least: str) -> Iterator[tuple[str, Address]]:
        """Processes that may not send a head, for which `least` is the sender with the least rights."""
        members = receiver.group.processes
        others = [one for one in members if one not in (sender, receiver.address)]
        first = next(iter(members))
        for place in PLACES[PLACES.index(least) + 1 :]:
            if place == COORDINATOR and first in others and least == NOBODY:
                yield place, first
            elif place == MEMBER:
                yield from ((place, one) for one in others[-1:] if one != first)
            elif place == ANYBODY:
                yield place, OUTSIDER
                yield from ((f"{place} that left", one) for one in self.gone[-1:] if one not in members_of(receiver))

    def _try(self, receiver: Process, run: Run, what: str) -> None:
        receiver.end_turn()
        layers = [layer for layer in receiver.stack.layers if not isinstance(layer, DEAF)]
        before, drops = remembered(layers), dropped(receiver)
        for frame in CODEC.encode(run.src, run.dest, [run]):
            receiver.stack.receive(frame, self.group.now)
        output = receiver.stack.end_turn(self.group.now)
        dests = {dest for dests, _ in output.frames for dest in dests}
        if before != remembered(layers) or dests - {run.src} or output.events:
            self.believed.append(what)
        elif not (dests or dropped(receiver) > drops or run.src in receiver.group.processes or what.startswith(LATE)):
            self.uncounted[what] += 1


def invented(receiver: Process) -> Iterator[tuple[Address, msgspec.Struct]]:
    """Rare heads about the present state of a receiver, each with a sender from which it would be believed."""
    layers = receiver.stack.layers
    (gms,) = (layer for layer in layers if isinstance(layer, Gms | Hints))
    if gms.view is None or len(gms.view.members) < 2:
        return
    view, first, last = gms.view, gms.view.members[0], gms.view.members[-1]
    yield first, heads.Refuse("name taken", "another process has it")
    yield first, heads.Refuse(heads.OTHER_SETTINGS, "another profile")
    if isinstance(gms, Hints):
        return
    attempt = gms.leading.change.attempt
    yield first, heads.Expel(view.id, last, "slow", False)
    yield last, heads.ViewReq(view.id, last)
    if any(isinstance(layer, Sequencer) for layer in layers):
        yield first, Again(view.id)
    if attempt is not None and attempt.asked:
        yield attempt.asked[-1], heads.Low(attempt.ballot, Ballot(attempt.ballot.number + 1, last))
        yield attempt.asked[-1], heads.Fetches(attempt.ballot)


def members_of(process: Process) -> tuple[Address, ...]:
    """The members of the view that its membership layer has."""
    (layer,) = (layer for layer in process.stack.layers if isinstance(layer, Gms | Hints))
    return () if layer.view is None else layer.view.members


def dropped(process: Process) -> int:
    """How much a process has dropped so far."""
    return sum(count for what, count in process.env.counters.items() if what.startswith("drop "))
