"""All that a layer remembers, as a value that can be compared: found by reflection."""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import Any, Final

ELSEWHERE: Final = ("env", "above", "below")  # attributes that are no memory of a layer


def remembered(thing: Any, seen: set[int] | None = None) -> Any:
    """The state of `thing` and of all objects of pygroups that it reaches."""
    seen = set() if seen is None else seen
    if thing is None or isinstance(thing, int | str | bytes | float):
        return thing
    if isinstance(thing, dict):
        return tuple((repr(key), remembered(value, seen)) for key, value in thing.items())
    if isinstance(thing, list | tuple | deque):
        return tuple(remembered(one, seen) for one in thing)
    if isinstance(thing, set | frozenset):
        return tuple(sorted(map(repr, thing)))
    if not type(thing).__module__.startswith("pygroups.") or callable(thing) or id(thing) in seen:
        return type(thing).__name__
    seen.add(id(thing))
    names = dict.fromkeys((*_names_of(type(thing)), *getattr(thing, "__dict__", ())))
    return tuple((name, remembered(getattr(thing, name, None), seen)) for name in names if name not in ELSEWHERE)


@cache
def _names_of(kind: type) -> tuple[str, ...]:
    """The attributes that each object of this type may have."""
    slots = [vars(base).get("__slots__", ()) for base in kind.__mro__]
    names = [name for one in slots for name in ((one,) if isinstance(one, str) else one)]
    return tuple(name for name in (*names, *getattr(kind, "__struct_fields__", ())) if not name.startswith("__"))
