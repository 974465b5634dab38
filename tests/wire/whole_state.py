"""All that a layer remembers, as a value that can be compared: found by reflection."""

from __future__ import annotations

from collections import deque
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
    names = [name for kind in type(thing).__mro__ for name in _slots(kind)]
    names += [*getattr(thing, "__dict__", ()), *getattr(type(thing), "__struct_fields__", ())]
    kept = [name for name in dict.fromkeys(names) if name not in ELSEWHERE and not name.startswith("__")]
    return tuple((name, remembered(getattr(thing, name, None), seen)) for name in kept)


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
