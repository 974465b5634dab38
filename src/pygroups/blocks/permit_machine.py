"""The replicated part of a lock and of a semaphore: the holders, and the calls that wait in the order they came."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pygroups.core.address import Address

from .machine import Machine, Refusal, Tokens
from .news import Ended, News, Ticket
from .wire import BlockKey, Seconds, Time

Permits = Annotated[int, Meta(ge=1)]


class Acquire(msgspec.Struct, array_like=True, tag="a"):
    """Wait for one of `permits`.  The answer is the token, or None without `waits` if none is free."""

    permits: Permits
    lease: Seconds = 0.0
    waits: bool = True
    at_us: Time = 0  # at the sender


class Release(msgspec.Struct, array_like=True, tag="r"):
    """Give up what the member's `call` holds or waits for.  The answer says whether it held."""

    call: int


class Renew(msgspec.Struct, array_like=True, tag="n"):
    """Begin the lease of the member's `call` again.  The answer says whether it holds."""

    call: int


class Due(msgspec.Struct, array_like=True, tag="t"):
    """The lease of these holders is over, if they have not renewed it."""

    holders: list[tuple[Ticket, int]]


class Held(msgspec.Struct, array_like=True):
    token: int
    lease: Seconds
    version: int  # of the lease: changes when it is renewed


class Waiting(msgspec.Struct, array_like=True):
    ticket: Ticket
    lease: Seconds


class PermitState(msgspec.Struct, array_like=True):
    permits: Permits
    held: list[tuple[Ticket, Held]]
    waiting: list[Waiting]


class PermitMachine(Machine):
    """At most `permits` holders.  A holder that is not in the view holds no more."""

    ops = Acquire | Release | Renew | Due
    state = PermitState

    def __init__(self, key: BlockKey, tokens: Tokens, news: list[News]) -> None:
        super().__init__(key, tokens, news)
        self.permits = 1
        self.held: dict[Ticket, Held] = {}
        self.waiting: list[Waiting] = []

    def apply(self, ticket: Ticket, op: Acquire | Release | Renew | Due) -> None:
        if isinstance(op, Acquire):
            self._acquire(ticket, op)
        elif isinstance(op, Release):
            self.answer(ticket, self._release(Ticket(ticket.owner, op.call)))
        elif isinstance(op, Renew):
            self.answer(ticket, self._renew(Ticket(ticket.owner, op.call)))
        else:
            for holder, version in op.holders:
                if self.is_due(holder, version):
                    self._end(holder, "its lease is over")
        self._grant()

    def _acquire(self, ticket: Ticket, op: Acquire) -> None:
        self.tokens.reach(op.at_us)
        if self.is_empty:
            self.permits = op.permits
        if op.permits != self.permits:
            text = f"{self.key[0]} {self.key[1]!r} has {self.permits} permits in this group, and not {op.permits}"
            self.answer(ticket, Refusal(f"{text}: give the same number everywhere"))
        elif op.waits or (len(self.held) < self.permits and not self.waiting):
            self.waiting.append(Waiting(ticket, op.lease))
        else:
            self.answer(ticket, None)

    def _grant(self) -> None:
        while self.waiting and len(self.held) < self.permits:
            first = self.waiting.pop(0)
            token = self.tokens.next()
            self.held[first.ticket] = Held(token, first.lease, token)
            self.arm(first.ticket, token, first.lease)
            self.answer(first.ticket, token)

    def _release(self, ticket: Ticket) -> bool:
        if self.held.pop(ticket, None) is not None:
            return True
        self.waiting = [one for one in self.waiting if one.ticket != ticket]
        return False

    def _renew(self, ticket: Ticket) -> bool:
        held = self.held.get(ticket)
        if held is None:
            return False
        held.version = self.tokens.next()
        self.arm(ticket, held.version, held.lease)
        return True

    def _end(self, ticket: Ticket, reason: str) -> None:
        del self.held[ticket]
        self.news.append(Ended(self.key, ticket, reason))

    def on_view(self, members: Container[Address]) -> None:
        self.waiting = [one for one in self.waiting if one.ticket.owner in members]
        for ticket in [ticket for ticket in self.held if ticket.owner not in members]:
            self._end(ticket, "its member is not in the group any more")
        self._grant()

    @property
    def is_empty(self) -> bool:
        return not self.held and not self.waiting

    def saved(self) -> object:
        return PermitState(self.permits, list(self.held.items()), self.waiting)

    def load(self, state: PermitState) -> None:
        self.permits, self.held, self.waiting = state.permits, dict(state.held), state.waiting

    # -- deadlines

    def rearm(self) -> Iterable[tuple[object, int, float]]:
        return [(ticket, held.version, held.lease) for ticket, held in self.held.items() if held.lease]

    def is_due(self, key: Ticket, version: int) -> bool:
        held = self.held.get(key)
        return held is not None and held.version == version

    def due_op(self, due: list[tuple[Any, int]]) -> object:
        return Due(due)
