"""The state of a process in canonical form.

Two processes with the same canonical form go on in the same way from the same input.  The form contains all fields of
all layers.  It leaves out the fields that only count (statistics) and the parts that never change.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from types import FunctionType, MethodType
from typing import Any, Final

import msgspec

from pygroups.core.layer import Env
from pygroups.core.stack import Stack

COUNTED: Final = {
    "counters",
    "gauges",
    "records",
    "rng",
    "config",
    "now",
    "services",
    "contact",
    "fingerprint",
    "totals",
}  # of an Env
_FIELDS: dict[type, tuple[str, ...]] = {}


def digest_of(thing: object) -> bytes:
    """A digest of `thing` and of everything that it holds.  Dicts keep their order, because layers walk through
    them."""
    seen: dict[int, int] = {}  # objects with an identity, in the order in which the walk meets them

    def plain(one: Any) -> Any:
        number = seen.get(id(one))
        if number is not None:
            return number
        if isinstance(one, deque):
            return list(one)
        if isinstance(one, range):
            return (one.start, one.stop)
        if isinstance(one, FunctionType | type):
            return one.__qualname__
        if isinstance(one, MethodType):
            return (one.__func__.__qualname__, one.__self__)
        seen[id(one)] = len(seen)
        return (len(seen) - 1, type(one).__name__, _values(one))

    return blake2b(msgspec.msgpack.encode(thing, enc_hook=plain), digest_size=16).digest()


def _values(one: object) -> list[Any]:
    """The values of all fields of an object of a class of pygroups."""
    if type(one) is Stack:
        return [*one.layers, one.outlet]
    kind = type(one)
    assert kind.__module__.startswith(("pygroups", "tests")), f"no canonical form for {kind}"
    if kind not in _FIELDS:
        slots = [getattr(base, "__slots__", ()) for base in kind.__mro__]
        names = [name for some in slots for name in ((some,) if isinstance(some, str) else some)]
        left_out = COUNTED if kind is Env else ()
        _FIELDS[kind] = tuple(name for name in names if not name.startswith("__") and name not in left_out)
    values = [getattr(one, name, None) for name in _FIELDS[kind]]
    fields = getattr(one, "__dict__", None)
    return values if fields is None else [*values, *fields.items()]
