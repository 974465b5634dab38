"""All containers that are reachable from some objects, found by reflection: each with its path and its size."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from pygroups.core.address import Address
from pygroups.core.limits import Config
from pygroups.core.run import Run
from pygroups.core.view import AgreedView, Ballot, ViewId

SIZED: Final = (dict, list, deque, set, frozenset, tuple, bytes, bytearray, memoryview, str)
LEAVES: Final = (Address, Config, Run, AgreedView, Ballot, ViewId, enum.Enum, str, bytes, bytearray, memoryview)


class Container(NamedTuple):
    """One container, at the shortest path that leads to it."""

    path: str  # of attributes; [] stands for each element
    size: int
    kind: type


def containers(roots: Mapping[str, object]) -> Iterator[Container]:
    """Every container that is reachable from `roots` through attributes and elements of objects of pygroups.

    The walk goes breadth first and looks at each object once.  It does not look into addresses, views, runs and the
    configuration, which never change, nor into functions.
    """
    waiting: deque[tuple[str, object]] = deque(roots.items())
    seen: dict[int, object] = {id(thing): thing for thing in roots.values()}
    while waiting:
        path, thing = waiting.popleft()
        for name, value in _parts(path, thing):
            if isinstance(value, SIZED) and not _is_record(value):
                yield Container(name, value.nbytes if isinstance(value, memoryview) else len(value), type(value))
            if _is_looked_into(value) and id(value) not in seen:
                seen[id(value)] = value
                waiting.append((name, value))


def _parts(path: str, thing: object) -> Iterator[tuple[str, object]]:
    """The attributes of an object, or the elements of a container, with the path of each."""
    if isinstance(thing, Mapping):
        yield from ((f"{path}[]", value) for value in thing.values())
    elif isinstance(thing, list | deque | set | tuple) and not _is_record(thing):
        yield from ((f"{path}[]", value) for value in thing)
    else:
        yield from ((f"{path}.{name}", value) for name, value in _attributes(thing))


def _attributes(thing: object) -> Iterator[tuple[str, Any]]:
    names = {*getattr(thing, "__dict__", ()), *_names_of(type(thing))}
    for name in sorted(names):
        if hasattr(thing, name) and not name.startswith("__"):
            yield name, getattr(thing, name)


@cache
def _names_of(kind: type) -> tuple[str, ...]:
    """The attributes that each object of this type may have: its slots, or the fields of its tuple."""
    slots = [base.__dict__.get("__slots__", ()) for base in kind.__mro__]
    fields = kind._fields if issubclass(kind, tuple) and hasattr(kind, "_fields") else ()
    return (*fields, *(name for one in slots for name in ((one,) if isinstance(one, str) else one)))


def _is_record(value: object) -> bool:
    """Whether the value has named fields, and is no container although it may be a tuple."""
    return _is_type_of_record(type(value))


@cache
def _is_type_of_record(kind: type) -> bool:
    return hasattr(kind, "_fields") or issubclass(kind, msgspec.Struct)


def _is_looked_into(value: object) -> bool:
    if isinstance(value, LEAVES):
        return False
    if isinstance(value, dict | list | deque | set | tuple):
        return bool(value)
    return type(value).__module__.startswith("pygroups.") and not callable(value)
