"""What a head changes at its receiver, by the place of its sender: drawn heads, and the state before and after.

The sender has the secret.  A *change* is one of the layers' state, an event for the program, or a message to a process
other than the sender; an answer to the sender is none.  UNICAST2 and FAILURE, which note every process they hear, are
left out.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from pygroups.core.address import Address
from pygroups.core.events import Join
from pygroups.core.limits import SECOND
from pygroups.core.run import Loose, Run
from pygroups.core.view import ViewId
from pygroups.layers.failure.layer import Failure
from pygroups.layers.profiles import PROFILES
from pygroups.layers.unicast2.heads import CONTROL, DATA, Data
from pygroups.layers.unicast2.layer import Unicast2
from pygroups.sim.world.forger import Forger
from tests.fuzz.receive import Stopped
from tests.wire.group import Process
from tests.wire.samples import a_codec
from tests.wire.whole_state import remembered

NOBODY, COORDINATOR, MEMBER, ANYBODY = "nobody", "coordinator", "member", "anybody"
PLACES: Final = (NOBODY, COORDINATOR, MEMBER, ANYBODY)
"""The senders of whose heads a receiver changes, each with those before it."""
Rows = dict[str, tuple[str, ...]]
"""For each head the senders by phase, and the reason of "anybody"."""
NOTE: Final = Path(__file__).parents[2] / "docs" / "layers" / "senders.md"
ROW: Final = re.compile(r"^\| `([\w.]+)` \| (\w+) \| (\w+) \| (\w+) \| (.+) \|$", re.MULTILINE)
OUTSIDER: Final = Address("Z", "f" * 16)
FAR: Final = 1 << 40  # above the connections of a young process
DRAWN: Final = 12  # heads of each kind from each sender to each receiver
CODEC: Final = a_codec()
DEAF: Final = (Unicast2, Failure)
PHASES: Final = ("in a view", "in a change", "joining")
"""In a view; while a member's view changes, after a drawn number of deliveries; without a view."""


def table() -> Rows:
    """The rows of the note."""
    return {head: row for head, *row in ROW.findall(NOTE.read_text())}


def heads_of(profile: str) -> list[type]:
    """The heads of a profile whose layers decide by the sender."""
    return [head for layer in PROFILES[profile].layers if layer not in DEAF for head in layer.heads]


def named(head: type) -> str:
    """A head as the table writes it."""
    return f"{head.__module__.split('.')[2]}.{head.__name__}"


CASES: Final = (
    *[("in a view", 1, place) for place in PLACES[1:]],
    *[("in a view", 0, place) for place in PLACES[2:]],
    *[("in a change", 1, place) for place in PLACES[1:]],
    *[("in a change", 0, place) for place in PLACES[2:]],
    *[("joining", 3, place) for place in PLACES[1:]],
)
"""The phase of a receiver, its number in the group, and the place of a sender."""


class Case:
    """A receiver in a phase, and a sender with a place."""

    def __init__(self, profile: str, phase: str, to: int, place: str, seed: int) -> None:
        group = Stopped("ABC", profile=profile, seed=seed, tap=lambda _, __, frame: [frame])
        for process in group.processes.values():
            group.send(process, b"to all", b"to all again")
        group.run(SECOND)
        if phase == "in a change":
            group.left = 3 + 7 * seed
            group.join("D")
            for process in group.processes.values():
                process.end_turn()
        processes = list(group.processes.values())
        if phase == "joining":
            processes.append(Process(group, "D", 9))
            processes[3].asked(Join())
            processes[3].stack.end_turn(group.now)
        self.now = group.now
        self.place = place
        self.heard = 0  # runs
        self.receiver = processes[to]
        self.sender = {COORDINATOR: processes[0].address, MEMBER: processes[2].address}.get(place, OUTSIDER)
        view = processes[0].env.view
        assert view is not None
        self.view = view
        self.layers = [layer for layer in self.receiver.stack.layers if not isinstance(layer, DEAF)]
        self.before = remembered(self.layers)
        self.addresses = tuple(dict.fromkeys([*group.processes, self.receiver.address, OUTSIDER]))

    def changes(self, head: type, rng: random.Random) -> bool:
        """Whether one of some drawn heads changes something.  No further one is drawn for this case then."""
        forger = Forger(rng, self.addresses, (self.view,))
        dests = (self.receiver.address, None)
        runs = [forged(forger, head, self.sender, dests[number % 2], self.view) for number in range(DRAWN)]
        self.heard += DRAWN
        return self.changed_by([connected(run, self.place, self.heard + at) for at, run in enumerate(runs)])

    def changed_by(self, runs: list[Run]) -> bool:
        """Whether these runs of one sender change something at the receiver; see the module."""
        for run in runs:
            for frame in CODEC.encode(run.src, run.dest, [run]):
                self.receiver.stack.receive(frame, self.now)
        output = self.receiver.stack.end_turn(self.now)
        others = {dest for dests, _ in output.frames for dest in dests} - {runs[0].src}
        return self.before != remembered(self.layers) or bool(others) or bool(output.events)


def changes(profile: str, seeds: range, rows: Rows | None = None) -> dict[str, dict[str, str]]:
    """For each head and each phase, the sender with the last of PLACES whose heads changed something.  With `rows` only
    the senders that may not change anything are heard."""
    found = {named(head): dict.fromkeys(PHASES, NOBODY) for head in heads_of(profile)}
    for phase, to, place in CASES:
        for seed in seeds:
            case = Case(profile, phase, to, place, seed)
            for head in heads_of(profile):
                if rows is not None and PLACES.index(rows[named(head)][PHASES.index(phase)]) >= PLACES.index(place):
                    continue
                if case.changes(head, random.Random(f"{seed} {head} {phase} {place}")):
                    found[named(head)][phase] = max(found[named(head)][phase], place, key=PLACES.index)
                    case = Case(profile, phase, to, place, seed)
    return found


def forged(forger: Forger, head: type, sender: Address, dest: Address | None, view: ViewId) -> Run:
    """A run with a drawn head, mostly of the view that the receiver is in."""
    value = forger.head(head)
    if "view" in head.__struct_fields__ and isinstance(value.view, ViewId) and forger.rng.random() < 0.8:  # type: ignore[attr-defined]
        value = structs.replace(value, view=view)
    payload: tuple[Any, ...] = forger.payload() if forger.rng.random() < 0.4 else ()
    return Run(sender, dest, (value,), *payload)


def connected(run: Run, place: str, number: int) -> Run:
    """A unicast that needs a connection, on a new one, so that UNICAST2 hands it up.  A member sends it to all instead,
    which needs none: a new connection would end its real one."""
    if run.dest is None or isinstance(run.head, Loose):
        return run
    if not place.startswith(ANYBODY):
        return structs.replace(run, dest=None)
    return run.push(Data(FAR + number, CONTROL if run.origin is None else DATA, 0, 0, opens=True))
