"""Heads with values of the right types that are not true: from the types of their fields, and from the addresses and
view ids of a group.

A process that has the secret of a group, or anybody where there is none, can send such heads.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from msgspec import inspect

from pygroups.core.address import Address
from pygroups.core.run import pack
from pygroups.core.view import AgreedView, ViewId

LENGTH_MAX: Final = 4  # of a forged list; the bounds of the wire have tests of their own
FAR: Final = 1 << 20  # a number that is far away from those of a young group
PAYLOADS: Final = 3  # of a forged run, at most


@cache
def _type_of(cls: type) -> inspect.StructType:
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    return info


class Forger:
    """Makes heads.  `addresses`: the processes that they may name.  `views`: the view ids, the current one first."""

    def __init__(self, rng: random.Random, addresses: Sequence[Address], views: Sequence[ViewId]) -> None:
        self.rng = rng
        self.addresses = addresses
        self.views = views

    def head(self, cls: type) -> Any:
        """A head of this type."""
        if cls is AgreedView:
            return self._view()
        return cls(**{field.name: self.value(field.type) for field in _type_of(cls).fields})

    def payload(self) -> tuple[Address, int, int, int, bytes]:
        """Origin, first, index, count and body of a run."""
        rng = self.rng
        body = pack([b"forged"] * rng.randint(1, PAYLOADS))
        index = rng.choice((0, 0, 0, rng.randint(1, 9)))
        return rng.choice(self.addresses), self._number(1, FAR), index, 1 if index else body[0] & 15, body

    def value(self, kind: inspect.Type) -> Any:
        """A value of this type."""
        rng = self.rng
        match kind:
            case inspect.IntType():
                return self._number(kind.ge or 0, FAR if kind.le is None else kind.le)
            case inspect.BoolType():
                return rng.random() < 0.5
            case inspect.NoneType():
                return None
            case inspect.StrType():
                return rng.choice(("127.0.0.1:1", "A:1", "x"))[: kind.max_length]
            case inspect.BytesType():
                return bytes(rng.randrange(LENGTH_MAX))
            case inspect.LiteralType():
                return rng.choice(kind.values)
            case inspect.EnumType():
                return rng.choice(list(kind.cls))
            case inspect.UnionType():
                return self.value(rng.choice(kind.types))
        return self._of_several(kind)

    def _of_several(self, kind: inspect.Type) -> Any:
        rng = self.rng
        match kind:
            case inspect.ListType():
                return [self.value(kind.item_type) for _ in range(self._length(kind.min_length))]
            case inspect.VarTupleType():
                return tuple(self.value(kind.item_type) for _ in range(self._length(kind.min_length)))
            case inspect.TupleType():
                return tuple(map(self.value, kind.item_types))
            case inspect.DictType():
                return {self.value(kind.key_type): self.value(kind.value_type) for _ in range(self._length(None))}
            case inspect.NamedTupleType():  # an address, or a number and the address of a leader
                return rng.choice(self.addresses) if kind.cls is Address else kind.cls(*self._view_id())
            case inspect.StructType():
                return self.head(kind.cls)
        raise AssertionError(f"no values of {kind}")

    def _length(self, least: int | None) -> int:
        return max(least or 0, self.rng.randrange(LENGTH_MAX))

    def _number(self, least: int, most: int) -> int:
        """Mostly a small number, as those of a young group are."""
        rng = self.rng
        far = rng.choice((least, most, rng.randrange(least, min(most, FAR) + 1)))
        return min(most, far if rng.random() < 0.2 else rng.randrange(least, least + 40))

    def _view_id(self) -> ViewId:
        view = self.rng.choice(self.views)
        return self.rng.choice((view, view, view, ViewId(view.number + 1, self.rng.choice(self.addresses))))

    def _view(self) -> AgreedView:
        rng = self.rng
        members = rng.sample(self.addresses, rng.randint(1, min(LENGTH_MAX, len(self.addresses))))
        return AgreedView(self._view_id(), tuple(members), ("127.0.0.1:1",) * len(members))
