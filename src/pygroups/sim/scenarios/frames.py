"""Rules of a scenario for single runs on the wire: lose, repeat or delay runs that carry a certain head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from pygroups.core.address import Address
from pygroups.core.errors import UsageError
from pygroups.core.layer import Layer
from pygroups.core.run import Run, unpack

Fate = Literal["drop", "repeat", "delay", "watch"]
Where = Callable[[Run], bool]
AGAIN: Final = ("low", "opens")  # fields that differ between a run and its retransmission


class Hit(NamedTuple):
    """A run in transit that a rule has matched."""

    at: int  # time of sending, in microseconds of virtual time
    src: Address
    dest: Address
    run: Run

    def __str__(self) -> str:
        heads = " | ".join(map(_text, reversed(self.run.heads)))
        return f"{self.src.name}>{self.dest.name} {heads}{self._body()[:100]}"

    def _body(self) -> str:
        """The payloads as text; of a piece of a large payload, which is no batch of payloads, its index and size."""
        run = self.run
        if run.index:
            return f" piece {run.index} with {len(run.body)} bytes"
        return f" {[payload.decode(errors='replace') for payload in unpack(run.body)]}" if run.body else ""


class FrameRule:
    """A rule for runs on the wire.  `hits` are the runs that it has matched so far, the oldest first."""

    def __init__(
        self,
        fate: Fate,
        heads: tuple[type, ...],
        *,
        src: Sequence[str],
        dest: Sequence[str],
        count: int | None,
        first: bool,
        where: Where | None,
        amount: int = 0,
    ) -> None:
        self.fate = fate
        self.amount = amount  # copies, or microseconds
        self.hits: list[Hit] = []
        self._heads = heads
        self._src = src
        self._dest = dest
        self._left = count
        self._first = first
        self._where = where
        self._seen: dict[tuple[Any, ...], None] = {}

    def stop(self) -> None:
        """End the rule: all runs pass from now on."""
        self._left = 0

    def take(self, hit: Hit) -> bool:
        """Record `hit` if the rule matches it.  Returns whether it does."""
        if self._left == 0 or not self._matches(hit):
            return False
        if self._left is not None:
            self._left -= 1
        self.hits.append(hit)
        return True

    def _matches(self, hit: Hit) -> bool:
        head = next((head for head in hit.run.heads if type(head) in self._heads), None)
        if head is None or (self._src and hit.src.name not in self._src):
            return False
        if self._dest and hit.dest.name not in self._dest:
            return False
        if self._where is not None and not self._where(hit.run):
            return False
        return not self._first or self._note_first(hit, head)

    def _note_first(self, hit: Hit, head: object) -> bool:
        """Note this run on this link.  Returns whether it has not been seen there before."""
        fields = [(name, getattr(head, name)) for name in _fields(head) if name not in AGAIN]
        key = (hit.dest, type(head), str(fields), hit.run.origin, hit.run.first)
        new = key not in self._seen
        self._seen[key] = None
        return new


class Heads:
    """The heads of a stack by name: `Data` is the head of every layer that has one, `nakack.Data` the head of one
    layer."""

    def __init__(self, layers: Sequence[type[Layer]]) -> None:
        self._named: dict[str, list[type]] = {}
        for layer in layers:
            for head in layer.heads:
                for name in (head.__name__, f"{layer.__name__.lower()}.{head.__name__}"):
                    self._named.setdefault(name, []).append(head)

    def of(self, names: Sequence[str | type]) -> tuple[type, ...]:
        """The heads of these names; all heads if `names` is empty.  Raises UsageError for a name that no layer has."""
        found: list[type] = []
        for name in names or self._named:
            if isinstance(name, type):
                found.append(name)
            elif name in self._named:
                found += self._named[name]
            else:
                raise UsageError(
                    f"no layer of this stack has a head named {name!r}; there are: {', '.join(self._named)}"
                )
        return tuple(dict.fromkeys(found))


def _fields(head: object) -> tuple[str, ...]:
    assert isinstance(head, msgspec.Struct)
    return head.__struct_fields__


def _text(value: object) -> str:
    if isinstance(value, Address):
        return value.name
    if isinstance(value, msgspec.Struct):
        fields = " ".join(f"{name}={_text(getattr(value, name))}" for name in value.__struct_fields__)
        return f"{type(value).__name__}({fields})"
    return str(value)
