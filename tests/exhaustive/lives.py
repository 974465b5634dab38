"""The states that a process can have, each stored once, and the step from one to another.

A process is deterministic and sees only its own input.  Its step from one state with one input at one time is
therefore computed once, however many states of the whole group contain it.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import zlib
from hashlib import blake2b
from typing import Any, ClassVar, Final, NamedTuple

from pygroups.core.address import Address
from pygroups.core.driver_events import Announce, Find, Probe
from pygroups.core.events import Event
from pygroups.core.layer import NEVER
from pygroups.layers.failure.layer import Failure
from pygroups.layers.gms.decisions.quorum import EVERYBODY, MAJORITY, Quorum
from pygroups.layers.merge2.layer import Merge2
from pygroups.sim.promises.broken import Broken

from .process import CODECS, CONFIG, STEADY, Process, Turn, Unnumbered
from .state import digest_of

_BY_NAME: Final[dict[str, object]] = {
    "config": CONFIG,
    "random": STEADY,
    "everybody": EVERYBODY,
    "majority": MAJORITY,
    **CODECS,
}

Told = tuple[tuple[str, Any], ...]


def _shared(name: str) -> object:
    return _BY_NAME[name]


class _Pickler(pickle.Pickler):
    """Objects that never change are not copied."""

    dispatch_table: ClassVar = {
        **copyreg.dispatch_table,
        type(CONFIG): lambda _: (_shared, ("config",)),
        type(STEADY): lambda _: (_shared, ("random",)),
        Unnumbered: lambda codec: (_shared, (codec.profile,)),
        Quorum: lambda quorum: (_shared, ("majority" if quorum is MAJORITY else "everybody",)),
    }


def packed(process: Process) -> bytes:
    """A copy of `process`, as bytes."""
    into = io.BytesIO()
    _Pickler(into, 5).dump(process)
    return zlib.compress(into.getvalue(), 1)


def unpacked(data: bytes) -> Process:
    process = pickle.loads(zlib.decompress(data))
    assert isinstance(process, Process)
    return process


PERIODIC: Final = (Failure, Merge2)
"""Layers that act at intervals for ever: heartbeats, and questions to processes outside of the view."""


class Life(NamedTuple):
    """A state of one process, with the facts about it that the group needs."""

    data: bytes  # the process; empty after its end
    history: bytes  # a digest of all that the judge has heard of it
    wake: int
    works_at: int  # the same without the layers that are never at rest
    next: int  # the place of its next action
    may_act: bool  # whether it is in a view and does not leave
    rest: tuple[int, dict[str, int], bool, bool]  # the first unused number, the gauges, blocked, leaving
    delivered: dict[Address, int]  # per origin, the number after the last delivered multicast
    view: Any
    stable: int  # own multicasts below this are delivered everywhere, as its application knows


class Step(NamedTuple):
    """One input of one process: the state after it, and what leaves the process."""

    life: int
    crashed: int  # the state after a crash that follows the steps of the network: the application saw nothing
    sent: tuple[tuple[int, tuple[int, ...]], ...]  # per receiver, the items
    announces: bool | None
    finds: int
    probes: tuple[int, ...]
    ended: bool
    told: Told  # to the judge
    told_crashed: Told  # the same without the application's step


class Lives:
    """All states of all processes, and all items that were ever on their way, by number."""

    def __init__(self, addresses: tuple[Address, ...]) -> None:
        self.addresses = addresses
        self.place = {address: number for number, address in enumerate(addresses)}
        self.lives: list[Life] = []
        self.items: list[tuple[int, Any]] = []  # a sender and a frame, or -1 and an event
        self.steps: dict[tuple[int, int, int], Step] = {}
        self._numbers: dict[tuple[bytes, bytes], int] = {}
        self._item_numbers: dict[Any, int] = {}

    # -- items

    def item(self, src: int, what: bytes | Event) -> int:
        """The number of a frame from the process `src`, or of an event of the network (`src` is -1)."""
        key = (src, what if isinstance(what, bytes) else repr(what))
        number = self._item_numbers.get(key)
        if number is None:
            number = self._item_numbers[key] = len(self.items)
            self.items.append((src, what))
        return number

    # -- states

    def first(self, process: Process) -> int:
        return self._number(process, b"", None, ())

    def _number(self, process: Process, history: bytes, before: Life | None, told: Told) -> int:
        key = (digest_of(process), history)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.lives)
            self.lives.append(_life(process, packed(process), history, before, told))
        return number

    def dead(self, history: bytes) -> int:
        """The state of a process that has ended."""
        number = self._numbers.get((b"", history))
        if number is None:
            number = self._numbers[b"", history] = len(self.lives)
            self.lives.append(Life(b"", history, NEVER, NEVER, 0, False, (0, {}, False, False), {}, None, 0))
        return number

    def frozen(self, life: int) -> int:
        """The state of a process that is cut off: only what the judge has heard of it makes a difference."""
        one = self.lives[life]
        key = (b"cut off", one.history)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.lives)
            self.lives.append(one._replace(data=b"", wake=NEVER, works_at=NEVER, may_act=False))
        return number

    # -- steps

    def step(self, life: int, what: int, now: int, action: str = "") -> Step:
        """The step of a process: with item number `what`, or with its next action (-1), or with its timers (-2)."""
        key = (life, what, now)
        step = self.steps.get(key)
        if step is None:
            step = self.steps[key] = self._step(self.lives[life], what, now, action)
        return step

    def _step(self, life: Life, what: int, now: int, action: str) -> Step:
        process = unpacked(life.data)
        try:
            turns = self._turns(process, what, now, action)
        except Exception as error:
            raise Broken("no-exception", repr(error), member=process.me) from error
        told = tuple(one for turn in turns for one in (*turn.told, *turn.events))
        seen = tuple(one for turn in turns[:-1] for one in (*turn.told, *turn.events))
        told_crashed = (*seen, *(turns[-1].told if turns else ()))
        history = _chained(life.history, told)
        number = self.dead(history) if process.ended else self._number(process, history, life, told)
        crashed = self.dead(_chained(life.history, told_crashed))
        return self._left(process, turns, number, crashed, told, told_crashed)

    def _turns(self, process: Process, what: int, now: int, action: str) -> list[Turn]:
        if what == -1:
            return process.act(action, now)
        if what == -2:
            return process.turns(now, [])
        src, item = self.items[what]
        return process.event(item, now) if src < 0 else process.frame(self.addresses[src], item, now)

    def _left(
        self, process: Process, turns: list[Turn], life: int, crashed: int, told: Told, told_crashed: Told
    ) -> Step:
        me = self.place[process.me]
        sent: dict[int, list[int]] = {}
        finds, announces, probes = 0, None, []
        for turn in turns:
            for dests, frames in turn.frames:
                for dest in dests:
                    if dest in process.routes:
                        sent.setdefault(self.place[dest], []).extend(self.item(me, frame) for frame in frames)
            for command in turn.commands:
                if isinstance(command, Find):
                    finds += 1
                elif isinstance(command, Announce):
                    announces = command.member
                elif isinstance(command, Probe):
                    probes.append(self.place[command.peer])
        out = tuple((dest, tuple(items)) for dest, items in sorted(sent.items()))
        return Step(life, crashed, out, announces, finds, tuple(probes), bool(process.ended), told, told_crashed)


def _chained(history: bytes, told: Told) -> bytes:
    if not told:
        return history
    return blake2b(history + digest_of(told), digest_size=12).digest()


def _life(process: Process, data: bytes, history: bytes, before: Life | None, told: Told) -> Life:
    delivered, stable = (dict(before.delivered), before.stable) if before is not None else ({}, 1)
    for kind, what in told:
        if kind == "viewed":
            delivered.update(what[0].starts or {})
        elif kind == "delivered":
            run = what[0].run
            delivered[run.origin] = run.next
        elif kind == "reached":
            stable = what[1]
    rest = (process.top.unknown().stop, process.stack.gauges(), process.blocked, process.leaving)
    layers = process.stack.layers
    works_at = min(layer.wake for layer in layers if not isinstance(layer, PERIODIC))
    return Life(
        data,
        history,
        process.stack.wake(),
        works_at,
        process.next,
        process.may("send"),
        rest,
        delivered,
        process.view,
        stable,
    )
