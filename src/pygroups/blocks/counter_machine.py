"""The replicated part of a counter.  See machine.py."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from .machine import Machine, Refusal, Tokens
from .news import News, Ticket
from .wire import BlockKey

LIMIT = 1 << 63
Number = Annotated[int, Meta(ge=-LIMIT, le=LIMIT - 1)]


class Add(msgspec.Struct, array_like=True, tag="a"):
    """The answer is the new value."""

    amount: Number


class Swap(msgspec.Struct, array_like=True, tag="s"):
    """Set the value if it is `expected` (None: any).  The answer says whether it was set."""

    expected: Number | None
    value: Number


class CounterMachine(Machine):
    """A number, at first 0."""

    ops = Add | Swap
    state = Number

    def __init__(self, key: BlockKey, tokens: Tokens, news: list[News]) -> None:
        super().__init__(key, tokens, news)
        self.value = 0

    def apply(self, ticket: Ticket, op: Add | Swap) -> None:
        if isinstance(op, Swap):
            fits = op.expected in (None, self.value)
            self.value = op.value if fits else self.value
            self.answer(ticket, fits)
        elif -LIMIT <= self.value + op.amount < LIMIT:
            self.value += op.amount
            self.answer(ticket, self.value)
        else:
            self.answer(ticket, Refusal(f"counter {self.key[1]!r} would leave the range of 64 bits"))

    @property
    def is_empty(self) -> bool:
        return self.value == 0

    def saved(self) -> object:
        return self.value

    def load(self, state: int) -> None:
        self.value = state
