"""The state of the application at one member, and how it is given to those who join.

The state is the simplest one that shows whether the cut is right: per origin, the number of the next message.
"""

from __future__ import annotations

from random import Random
from typing import Any, Protocol

import msgspec

from pygroups.core.address import Address
from pygroups.core.events import Event, Marks, StateArrived, StateChunk, StateFailed, StateWanted
from pygroups.core.layer import Env
from pygroups.core.limits import MILLISECOND
from pygroups.core.top import checksum
from pygroups.core.view import ViewId

from ..promises.judge import Judge
from ..schedules.schedule import Habits
from .agenda import Agenda


class Owner(Protocol):
    """What a state keeper needs of its process."""

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
    """Gives and takes states for `member`."""

    def __init__(self, member: Owner) -> None:
        self.member = member
        self.parts: list[bytes] = []  # of the state that arrives
        self.waits = False  # for a state, or for the news that there is none

    def wanted(self, event: StateWanted) -> None:
        """The state of now is asked for: it is taken now, and leaves a little later."""
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
        """The next part leaves, and the others after a while each: the provider may end in between."""
        member, apart = self.member, self.member.habits.state_apart
        while pieces and not member.ended:
            piece = pieces.pop(0)
            member.ask(StateChunk(event.view, joiner, piece, last=not pieces))
            if apart and pieces:
                member.agenda.after(member.rng.randint(0, apart), self._next, event, joiner, pieces)
                return

    def arrived(self, event: StateArrived) -> None:
        """A part of the state that this member begins with."""
        if self.member.habits.state == "keeps none":
            return
        if event.none:
            self.parts, self.waits = [], False
            if self.member.env.counters.get("state that did not come in time"):
                self.member.judge.keeps_no_state(self.member.address)  # others may have one: it was too slow
            else:
                self.member.judge.state_none(self.member.address, event.view)
            return
        self.parts.append(event.data)
        if event.last:
            data, self.parts, self.waits = b"".join(self.parts), [], False
            digest = _marks(data)
            self.member.judge.state_set(self.member.address, event.view, event.provider, digest, data)
            self._record("state_set", event.view, data, event.provider, digest)

    def begins(self) -> None:
        """The member begins a view with a given state: what had arrived of another one is dropped."""
        self.parts, self.waits = [], self.member.habits.state != "keeps none"

    def _record(self, kind: str, view: ViewId, data: bytes, peer: Address, digest: Marks) -> None:
        """The state is that of the start of `view`; the member may have gone on to the next one when it arrives."""
        last = {origin: mark - 1 for origin, mark in digest.items() if mark > 1}
        fields = {"bytes": len(data), "checksum": checksum(data), "position": 0, "peer": peer, "digest": last}
        self.member.note(kind, view, fields)


def _marks(data: bytes) -> Marks:
    """What a state says; nothing, if it is none that anybody gave."""
    try:
        return {Address(name, life): mark for name, life, mark in msgspec.msgpack.decode(data)}
    except (msgspec.DecodeError, ValueError):
        return {}
