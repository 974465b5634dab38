"""The replicated part of a dict: entries of encoded keys and values.  See machine.py."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from .machine import Machine, Tokens
from .news import Changed, News, Ticket
from .wire import BlockKey, Seconds


class Entry(msgspec.Struct, array_like=True):
    value: bytes
    version: int  # a token: of the write, or of the last one that set the ttl
    ttl: Seconds = 0.0  # 0: no end


class Put(msgspec.Struct, array_like=True, tag="p"):
    """Write all items; the answer is None."""

    items: list[tuple[bytes, bytes]]
    ttl: Seconds = 0.0


class Swap(msgspec.Struct, array_like=True, tag="s"):
    """Write `value` if the key has the value `expected`; None: the key is absent.  The answer says whether it did."""

    key: bytes
    expected: bytes | None
    value: bytes | None
    ttl: Seconds = 0.0
    keeps_ttl: bool = False  # instead: the key goes when it would have gone


class Drop(msgspec.Struct, array_like=True, tag="d"):
    """Delete keys; the answer has the value of each, None for an absent one."""

    keys: list[bytes]


class Clear(msgspec.Struct, array_like=True, tag="c"):
    """Delete all keys; the answer is None."""


class Due(msgspec.Struct, array_like=True, tag="t"):
    """The time of these keys is over, if they have not been written since."""

    keys: list[tuple[bytes, int]]


class DictMachine(Machine):
    """Entries in the order in which their keys came."""

    ops = Put | Swap | Drop | Clear | Due
    state = list[tuple[bytes, Entry]]

    def __init__(self, key: BlockKey, tokens: Tokens, news: list[News]) -> None:
        super().__init__(key, tokens, news)
        self.entries: dict[bytes, Entry] = {}

    def apply(self, ticket: Ticket, op: Put | Swap | Drop | Clear | Due) -> None:
        answer: object = None
        if isinstance(op, Put):
            for key, value in op.items:
                self._write(key, value, op.ttl)
        elif isinstance(op, Swap):
            answer = self._swap(op)
        elif isinstance(op, Drop):
            answer = [self._delete(key) for key in op.keys]
        elif isinstance(op, Clear):
            for key in list(self.entries):
                self._delete(key)
        else:
            for key, version in op.keys:
                if self.is_due(key, version):
                    self._delete(key)
        self.answer(ticket, answer)

    def _swap(self, op: Swap) -> bool:
        entry = self.entries.get(op.key)
        if (None if entry is None else entry.value) != op.expected:
            return False
        if op.value is None:
            self._delete(op.key)
        elif op.keeps_ttl and entry is not None:
            self._put(op.key, Entry(op.value, entry.version, entry.ttl))
        else:
            self._write(op.key, op.value, op.ttl)
        return True

    def _write(self, key: bytes, value: bytes, ttl: float) -> None:
        entry = Entry(value, self.tokens.next(), ttl)
        self._put(key, entry)
        self.arm(key, entry.version, ttl)

    def _put(self, key: bytes, entry: Entry) -> None:
        before = self.entries.get(key)
        self.entries[key] = entry
        self.news.append(Changed(self.key, key, None if before is None else before.value, entry.value))

    def _delete(self, key: bytes) -> bytes | None:
        entry = self.entries.pop(key, None)
        if entry is None:
            return None
        self.news.append(Changed(self.key, key, entry.value, None))
        return entry.value

    @property
    def is_empty(self) -> bool:
        return not self.entries

    def saved(self) -> object:
        return list(self.entries.items())

    def load(self, state: Any) -> None:
        self.entries = dict(state)

    # -- deadlines

    def rearm(self) -> Iterable[tuple[object, int, float]]:
        return [(key, entry.version, entry.ttl) for key, entry in self.entries.items() if entry.ttl]

    def is_due(self, key: bytes, version: int) -> bool:
        entry = self.entries.get(key)
        return entry is not None and entry.version == version

    def due_op(self, due: list[tuple[Any, int]]) -> object:
        return Due(due)
