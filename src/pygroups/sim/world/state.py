"""The state of the application at one member, and its transfer to joiners.

This state is the simplest one that shows a wrong cut: the number of the next message of each origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Protocol

import msgspec

from pygroups.core.address import Address
from pygroups.core.columns import checksum, lack_columns
from pygroups.core.events import Event, Gap, Marks, Missing, NewView
from pygroups.core.layer import Env
from pygroups.core.limits import MILLISECOND
from pygroups.core.state_events import StateArrived, StateChunk, StateFailed, StateWanted
from pygroups.core.top import Delivered
from pygroups.core.view import ViewId
from pygroups.layers.streams.gaps import gaps_below

from ..promises.judge import Judge
from ..schedules.schedule import Habits
from .agenda import Agenda


class Owner(Protocol):
    """The parts of its process that a state keeper uses."""

    agenda: Agenda
    env: Env
    habits: Habits
    judge: Judge
    rng: Random
    ended: str

    @property
    def address(self) -> Address: ...
    def ask(self, event: Event) -> None: ...
    def count(self, what: str) -> None: ...
    def note(self, kind: str, view: ViewId, fields: dict[str, Any]) -> None: ...


class StateKeeper:
    """Provides and receives states for `member`."""

    def __init__(self, member: Owner) -> None:
        self.member = member
        self.parts: list[bytes] = []  # parts of a state that arrives
        self.waits = False  # whether a state, or the answer that there is none, is still to come
        self.held: list[Delivered | Gap] = []  # for the program, behind this state
        self.in_state = 0  # the state contains so many of them, and leaves `gaps`
        self.gaps: tuple[Gap, ...] = ()
        self.first: Marks = {}  # the marks of the first state that the program waits for
        self.again = False  # whether the program waited for another state before
        self.began = False  # whether the program has begun, with or without a state: another one replaces its state

    def wanted(self, event: StateWanted) -> None:
        """Take the state now, and send it a little later."""
        member = self.member
        if member.habits.state in ("raises", "hangs"):
            member.count("no state given")
            member.judge.state_refused(member.address)
            if member.habits.state == "raises":
                for joiner in event.joiners:
                    member.ask(StateFailed(event.view, joiner, "get_state() raised"))
            return
        if member.habits.state == "keeps none":
            for joiner in event.joiners:
                member.ask(StateChunk(event.view, joiner, b"", last=True, none=True))
            return
        data = msgspec.msgpack.encode([(*origin, mark) for origin, mark in sorted(event.digest.items())])
        member.judge.state_given(member.address, event.view, event.digest, data)
        for joiner in event.joiners:
            self._record_lacks("given", event.view, joiner, event.lacks)
            self._record("state_get", event.view, data, joiner, event.digest)
            delay = member.rng.randint(0, 10 * MILLISECOND)
            member.agenda.after(delay, self._give, event, joiner, data)

    def _give(self, event: StateWanted, joiner: Address, data: bytes) -> None:
        size = self.member.rng.randint(1, 50 + len(data))
        pieces = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
        pieces = pieces[: self.member.env.config.state_chunks_ahead - 1]
        pieces.append(data[sum(map(len, pieces)) :])
        self._next(event, joiner, pieces)

    def _next(self, event: StateWanted, joiner: Address, pieces: list[bytes]) -> None:
        """Send the next part, and each further part after a pause, so that the provider can crash in between."""
        member, apart = self.member, self.member.habits.state_apart
        while pieces and not member.ended:
            piece = pieces.pop(0)
            member.ask(StateChunk(event.view, joiner, piece, last=not pieces, lacks={} if pieces else event.lacks))
            if apart and pieces:
                member.agenda.after(member.rng.randint(0, apart), self._next, event, joiner, pieces)
                return

    def arrived(self, event: StateArrived) -> None:
        """Take a part of the state with which this member begins."""
        if self.member.habits.state == "keeps none":
            return
        if event.none:
            reason = "lost" if self.again else "none"
            self.member.note("state_lost", event.view, {"reason": reason, "digest": _last_numbers(self.first)})
            self._goes_on(has_state=False)
            if self.member.env.counters.get("state that did not come in time"):
                self.member.judge.state_late(self.member.address)  # other members may have a state
            else:
                self.member.judge.state_none(self.member.address, event.view)
            return
        self.parts.append(event.data)
        if event.last:
            data = b"".join(self.parts)
            digest = _marks(data)
            self.member.judge.state_set(self.member.address, event.view, event.provider, digest, data)
            self._record_lacks("set", event.view, event.provider, event.lacks)
            self._record("state_set", event.view, data, event.provider, digest)
            self.gaps = (*(gaps_below(event.lacks) if self.began else ()), *self.gaps)
            self._goes_on(has_state=True)

    # -- the program

    def viewed(self, event: NewView) -> None:
        """Give the gaps of a view to the program.  If a state comes with the view, drop the parts of an earlier one."""
        without = event.gaps if event.without_state is None else event.without_state
        if event.with_state and self.member.habits.state != "keeps none":
            self.again = self.waits
            if not self.waits:
                self.first = event.starts or {}
            self.parts, self.waits = [], True
        elif not self.waits:
            self.began = True
        self._to_program(without)
        if event.with_state:
            self.in_state, self.gaps = len(self.held), event.gaps

    def delivered(self, event: Delivered) -> None:
        """Give a run of multicasts to the program."""
        if event.position >= 0:
            self._to_program((event,))

    def _to_program(self, items: Sequence[Delivered | Gap]) -> None:
        if self.waits:
            self.held += items
            return
        judge, me = self.member.judge, self.member.address
        for item in items:
            if isinstance(item, Gap):
                judge.program_skips(me, item)
            elif item.run.origin is not None:
                judge.program_given(me, item.run.origin, item.run.first, item.run.count)

    def _goes_on(self, *, has_state: bool) -> None:
        """Give the program all events behind the state, or, without a state, all that were held."""
        held, self.held, self.parts, self.waits, self.began = self.held, [], [], False, True
        self._to_program([*self.gaps, *held[self.in_state :]] if has_state else held)

    def _record_lacks(self, reason: str, view: ViewId, peer: Address, lacks: Missing) -> None:
        for fields in lack_columns(reason, peer, lacks):
            self.member.note("lack", view, fields)

    def _record(self, kind: str, view: ViewId, data: bytes, peer: Address, digest: Marks) -> None:
        """Record the state of the start of `view`.  The member may have installed the next view when the state
        arrives."""
        last = _last_numbers(digest)
        fields = {"bytes": len(data), "checksum": checksum(data), "position": 0, "peer": peer, "digest": last}
        self.member.note(kind, view, fields)


def _last_numbers(digest: Marks) -> dict[Address, int]:
    return {origin: mark - 1 for origin, mark in digest.items() if mark > 1}


def _marks(data: bytes) -> Marks:
    """Decode a state; empty for bytes that are no state."""
    try:
        return {Address(name, life): mark for name, life, mark in msgspec.msgpack.decode(data)}
    except (msgspec.DecodeError, ValueError):
        return {}
